"""A fitted calibrator in words: what kind of map it is, what it has learned, and what that did."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

FEW_NUMBERS = 4
"""Fitted arrays of more are not shown in a sentence."""

_FEW_PARTS = 5
"""Folds, members or claims that have a line each."""

_ABOUT_THE_FIT = frozenset(
    {"classes_", "class_prior_", "class_weights_", "converged_", "n_classes_", "n_features_in_"}
    | {"n_iter_", "objective_", "training_"}
)


def explain_map(model: Any) -> str:
    """What a fitted calibrator is and has learned; a line for each of the calibrators inside."""
    said = [
        f"{type(model).__name__}: {_kind(model)}",
        sentence("Settings", settings(model)),
        sentence("Fitted", fitted_numbers(model)),
        _effect(model),
    ]
    parts = list(model._parts()) if hasattr(model, "_parts") else []
    return "\n".join([" ".join(filter(None, said)), *list_parts(parts)])


def explain_one(model: Any) -> str:
    """As a calibrator explains itself, or as is said of any estimator."""
    return str(model.explain()) if hasattr(model, "explain") else explain_map(model)


def list_parts(parts: list[Any]) -> list[str]:
    """A line for each of the first calibrators inside another."""
    lines = [f"  {explain_one(part).splitlines()[0]}" for part in parts[:_FEW_PARTS]]
    rest = len(parts) - _FEW_PARTS
    return [*lines, f"  {rest:,} others"] if rest > 0 else lines


def _kind(model: Any) -> str:
    """The first paragraph of the docstring, without its formulas."""
    first = " ".join((type(model).__doc__ or "A calibrator.").strip().split("\n\n")[0].split())
    return re.sub(r"[:,]? ?:math:`[^`]*`", "", first)


def _effect(model: Any) -> str:
    training = vars(model).get("training_")
    if training is None:
        return ""
    return (
        f"On rows of the fit the log-loss is {training.log_loss_after:.4f} instead of "
        f"{training.log_loss_before:.4f}; on others it gains less."
    )


def sentence(title: str, values: dict[str, str]) -> str:
    """Names and values after a title; nothing where there are none."""
    shown = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{title}: {shown}." if shown else ""


def settings(model: Any) -> dict[str, str]:
    """Parameters but for those that say what the data are."""
    given = model.get_params(deep=False)
    return {k: repr(v) for k, v in given.items() if k not in ("classes", "inputs")}


def fitted_numbers(model: Any) -> dict[str, str]:
    """Fitted attributes that are a number or a few, and not about the data or the fit."""
    numbers = {}
    for name, value in vars(model).items():
        is_own = name.endswith("_") and not name.startswith("_") and name not in _ABOUT_THE_FIT
        if is_own and isinstance(value, int | float | np.number | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind in "fiu" and array.ndim < 2 and array.size <= FEW_NUMBERS:
                numbers[name] = ", ".join(f"{number:.4g}" for number in array.ravel().tolist())
    return numbers
