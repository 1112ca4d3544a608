"""What a fitted calibrator says of itself where its method has no better words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.base._training import TrainingSummary

_FEW_NUMBERS = 4
"""Fitted arrays of more are not shown in a sentence."""

_FEW_MEMBERS = 5
"""Folds, members or claims that have a line each."""

CHI2_95 = 3.84
"""The 95% quantile of chi-squared with one degree of freedom: twice the logarithm of a likelihood
ratio exceeds it in 5% of the cases by chance."""

_ABOUT_THE_FIT = frozenset(
    {"classes_", "class_prior_", "class_weights_", "converged_", "n_classes_", "n_features_in_"}
    | {"n_iter_", "n_passes_", "objective_", "out_of_fold_", "training_"}
)


def plain_words(model: Any) -> str:
    """Settings of a calibrator, and the few numbers that it has fitted."""
    sentences = [
        _sentence("Settings", _settings(model)),
        _sentence("Fitted", _fitted_numbers(model)),
    ]
    return " ".join(filter(None, sentences))


def words_of_fit(training: TrainingSummary | None) -> str:
    """On what a map was fitted, and what it changed there; nothing of one inside another, which
    keeps no summary.
    """
    if training is None:
        return ""
    seen = sum(weight > 0 for weight in training.class_weights)
    falls = training.log_loss_after < training.log_loss_before
    return (
        f"Fitted on {training.n_samples:,.6g} rows of {seen} of {training.n_classes} classes, "
        f"whose log-loss went from {training.log_loss_before:.4f} to "
        f"{training.log_loss_after:.4f}{'; on new rows it falls less' if falls else ''}."
    )


def lines_of_members(members: Sequence[Any]) -> list[str]:
    """A line for each of the first calibrators inside another."""
    lines = [f"  {type(member).__name__}. {_words_of(member)}" for member in members[:_FEW_MEMBERS]]
    rest = len(members) - _FEW_MEMBERS
    return [*lines, f"  {rest:,} others"] if rest > 0 else lines


def _words_of(part: Any) -> str:
    """Ours have words; of others, settings and numbers are said."""
    return str(part._words()) if hasattr(part, "_words") else plain_words(part)


def likelihood_ratio(training: TrainingSummary | None) -> float:
    """Twice the logarithm of the likelihood ratio of a fit on the rows of its summary; 0 if it has
    none.
    """
    if training is None:
        return 0.0
    return 2 * training.n_rows * (training.log_loss_before - training.log_loss_after)


def _sentence(title: str, values: dict[str, str]) -> str:
    shown = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{title}: {shown}." if shown else ""


def _settings(model: Any) -> dict[str, str]:
    """Parameters but for those that say what the data are."""
    given = model.get_params(deep=False)
    return {k: repr(v) for k, v in given.items() if k not in ("classes", "inputs")}


def _fitted_numbers(model: Any) -> dict[str, str]:
    """Fitted attributes that are a number or a few, and not about the data or the fit."""
    numbers = {}
    for name, value in vars(model).items():
        is_own = name.endswith("_") and not name.startswith("_") and name not in _ABOUT_THE_FIT
        if is_own and isinstance(value, int | float | np.number | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind in "fiu" and array.ndim < 2 and array.size <= _FEW_NUMBERS:
                numbers[name] = ", ".join(f"{number:.4g}" for number in array.ravel().tolist())
    return numbers
