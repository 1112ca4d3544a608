"""Python code that repeats the fit of a report."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._validation import printable
from calibrant.report._request import Request


def code_lines(request: Request, *, is_held_out: bool) -> str:
    """Lines to paste. Neither the command nor names of classes can end a line."""
    calibrator, classes, command = request.calibrator, request.classes, request.command
    fit = "val_scores, val_labels" if is_held_out else "scores, labels"
    plain = clone(calibrator).set_params(classes=None)
    named = [] if classes is None else [f"classes = {_spelled(np.asarray(classes).tolist())}"]
    also = ", classes=classes" if named else ""
    fitting = [
        f"model = {plain!r}",
        *(["model.set_params(classes=classes)"] if named else []),
        f"model.fit({fit})",
    ]
    if request.is_fitted:
        fitting = ['model = calibrant.load("model.json")']
    return "\n".join(
        [
            *([f"# {printable(command)}", "# and the calibrator in Python:"] if command else []),
            "import calibrant",
            *([] if request.is_fitted else [f"from calibrant import {_class_names(calibrator)}"]),
            "",
            *named,
            *fitting,
            f'print(calibrant.evaluate(labels, scores, inputs="{request.inputs}"{also}))',
            f"print(calibrant.evaluate(labels, model.predict_proba(scores){also}))",
            *([] if request.is_fitted else ['calibrant.save(model, "model.json")']),
        ]
    )


def _spelled(values: list[Any]) -> str:
    """Values as Python, without letters that would end a block of code or begin a tag."""
    return repr(values).replace("<", "\\x3c").replace("`", "\\x60")


def _class_names(calibrator: Any) -> str:
    """The classes to import: that of the calibrator, and that of the calibrator inside it."""
    inner = calibrator.get_params(deep=False).get("calibrator")
    parts = [calibrator] if inner is None else [calibrator, inner]
    return ", ".join(sorted(type(part).__name__ for part in parts))
