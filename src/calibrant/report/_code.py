"""Python code that reproduces the figures of a report on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._validation import printable
from calibrant.base import Calibrator
from calibrant.report._request import Request

_COMMAND = "# Command of this report:"

_DEFAULTS = {"cv": 5, "n_bins": 15, "n_resamples": 1000, "min_rows": 0}
"""Defaults of `calibrant.report.summarize`, which the code does not repeat."""


def code_lines(request: Request, *, is_held_out: bool, is_weighted: bool = False) -> str:
    """Return code that users can paste. The command and class names cannot add lines of code.

    The first block, up to the first empty line, is a comment with the variables that the user must
    define. `with_loading` replaces this comment by code that reads files.
    """
    return "\n".join(
        [
            *_variable_comment(request, is_held_out=is_held_out, is_weighted=is_weighted),
            "",
            *_imports(request),
            "",
            *_evaluation(request, is_held_out=is_held_out, is_weighted=is_weighted),
            *([] if request.is_fitted else _final_fit(request, is_held_out, is_weighted)),
        ]
    )


def with_loading(code: str, loading: Sequence[str]) -> str:
    """Replace the comment about undefined variables by code that reads the data."""
    comment, _, body = code.partition("\n\n")
    command = [line for line in comment.splitlines() if line.startswith(_COMMAND)]
    return "\n".join([*command, *loading, "", body])


def _variable_comment(request: Request, *, is_held_out: bool, is_weighted: bool) -> Iterator[str]:
    if request.command:
        yield f"{_COMMAND} {printable(request.command)}"
    yield "# Define these variables first:"
    kind = {"proba": "probabilities", "logits": "logits", "log_proba": "log-probabilities"}
    yield f"# scores: {kind[request.inputs]} of shape (n_rows, n_classes); labels: true labels"
    if is_weighted:
        yield "# weight: sample weights of shape (n_rows,)"
    if request.has_groups:
        yield "# by: dict or data frame with the group columns of the rows"
    if request.is_fitted:
        yield "# model: the fitted calibrator"
    elif is_held_out:
        kinds = "scores, labels and weights" if request.has_fit_weights else "scores and labels"
        yield f"# {_fit_rows(request)}: {kinds} of the rows to fit on"


def _imports(request: Request) -> Iterator[str]:
    yield "import calibrant"
    if not request.is_fitted:
        names = _class_names(request.calibrator)
        yield from [f"from calibrant import {names}"] if names else []
    yield "from calibrant.report import summarize"


def _evaluation(request: Request, *, is_held_out: bool, is_weighted: bool) -> Iterator[str]:
    """Yield the lines of code that compute the report again."""
    options = _options(request, is_held_out=is_held_out, is_weighted=is_weighted)
    if request.classes is not None:
        yield f"classes = {spelled(np.asarray(request.classes).tolist())}"
    if request.is_fitted:
        yield "# The figures are held-out only if the model was not fitted on these rows."
    else:
        yield f"calibrator = {clone(request.calibrator).set_params(classes=None)!r}"
        yield "# Every row is evaluated with a calibrator that was fitted on other rows."
    yield f"report = summarize(labels, scores, {', '.join(options)}, rng={request.seed})"
    yield "for row in report.metrics:"
    yield "    print(row.title, row.before.value, row.after.value)"


def _options(request: Request, *, is_held_out: bool, is_weighted: bool) -> Iterator[str]:
    """Yield the keyword arguments of `calibrant.report.summarize`."""
    yield "model=model" if request.is_fitted else "calibrator=calibrator"
    if is_held_out and not request.is_fitted:
        yield f"calibration=({_fit_rows(request)})"
    if request.inputs != "proba":
        yield f'inputs="{request.inputs}"'
    if is_weighted:
        yield "sample_weight=weight"
    if request.has_groups:
        yield "by=by"
    if request.classes is not None:
        yield "classes=classes"
    for name, default in _DEFAULTS.items():
        if getattr(request, name) != default:
            yield f"{name}={getattr(request, name)}"


def _fit_rows(request: Request) -> str:
    return "fit_scores, fit_labels" + (", fit_weight" if request.has_fit_weights else "")


def _final_fit(request: Request, is_held_out: bool, is_weighted: bool) -> Iterator[str]:
    """Yield the lines of code that fit and save the calibrator for new data."""
    rows = "fit_scores, fit_labels" if is_held_out else "scores, labels"
    has_weights = request.has_fit_weights if is_held_out else is_weighted
    weight = f", sample_weight={'fit_weight' if is_held_out else 'weight'}" if has_weights else ""
    uses_groups = request.has_groups and getattr(request.calibrator, "_uses_columns", False)
    by = ", by=by" if uses_groups and not is_held_out else ""
    yield ""
    yield "# Fit the calibrator for new data."
    if request.classes is not None:
        yield "calibrator.set_params(classes=classes)"
    yield f"model = calibrator.fit({rows}{weight}{by})"
    yield 'calibrant.save(model, "model.json")'


def spelled(value: Any) -> str:
    """Format a value as Python code.

    Characters that would end a code block or begin an HTML tag are escaped.
    """
    return repr(value).replace("<", "\\x3c").replace("`", "\\x60")


def _class_names(calibrator: Any) -> str:
    """Return the classes that the code imports: the calibrator and its inner calibrators."""
    return ", ".join(sorted({type(part).__name__ for part in _calibrators_in(calibrator)}))


def _calibrators_in(value: Any) -> Iterator[Any]:
    """Yield a calibrator and the calibrators among its parameters, which may be lists or dicts."""
    if isinstance(value, Calibrator):
        yield value
        value = value.get_params(deep=False)
    parts = value.values() if isinstance(value, Mapping) else value
    if isinstance(parts, Iterable) and not isinstance(parts, str | np.ndarray):
        for part in parts:
            yield from _calibrators_in(part)
