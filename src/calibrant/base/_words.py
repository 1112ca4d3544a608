"""Default descriptions of fitted calibrators, for methods without their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.base._training import TrainingSummary

_FEW_NUMBERS = 4
"""Larger fitted arrays are not shown in a sentence."""

_FEW_MEMBERS = 5
"""Number of folds, members or claims that get a line each."""

CHI2_95 = 3.84
"""The 95% quantile of chi-squared with one degree of freedom. Twice the log-likelihood ratio of one
superfluous parameter exceeds it with probability 5%."""

_ABOUT_THE_FIT = frozenset(
    {"classes_", "class_prior_", "class_weights_", "converged_", "n_classes_", "n_features_in_"}
    | {"n_iter_", "n_passes_", "objective_", "out_of_fold_", "training_"}
)


def plain_words(model: Any) -> str:
    """The settings of a calibrator, and its fitted numbers if they are few."""
    sentences = [
        _sentence("Settings", _settings(model)),
        _sentence("Fitted", _fitted_numbers(model)),
    ]
    return " ".join(filter(None, sentences))


def words_of_fit(training: TrainingSummary | None) -> str:
    """A sentence about the training data and the change in log-loss; empty without a summary.

    Inner calibrators have no summary.
    """
    if training is None:
        return ""
    n_seen = sum(weight > 0 for weight in training.class_weights)
    is_lower = training.log_loss_after < training.log_loss_before
    caveat = " Expect a smaller reduction on new rows." if is_lower else ""
    losses = training.log_loss_before, training.log_loss_after
    # Three digits are enough unless both losses look equal.
    style = ".3g" if len({f"{loss:.3g}" for loss in losses}) == 2 else "#.5g"
    before, after = (f"{loss:{style}}" for loss in losses)
    change = f"changed from {before} to {after}.{caveat}"
    if before == after:
        change = f"is {training.log_loss_after:.3g} before and after."
    return (
        f"Fitted on {training.n_samples:,.6g} rows of {n_seen} of {training.n_classes} classes. "
        f"Their log-loss {change}"
    )


def lines_of_members(members: Sequence[Any]) -> list[str]:
    """A line for each of the first inner calibrators, and how many more there are."""
    lines = [f"  {type(member).__name__}. {_words_of(member)}" for member in members[:_FEW_MEMBERS]]
    n_more = len(members) - _FEW_MEMBERS
    return [*lines, f"  {n_more:,} more"] if n_more > 0 else lines


def _words_of(member: Any) -> str:
    """The description of a calibrator, or the settings of an estimator of another package."""
    return str(member._words()) if hasattr(member, "_words") else plain_words(member)


def likelihood_ratio(training: TrainingSummary | None) -> float:
    """Twice the log-likelihood ratio of a fit on the rows of its summary; 0 without a summary."""
    if training is None:
        return 0.0
    return 2 * training.n_rows * (training.log_loss_before - training.log_loss_after)


def _sentence(title: str, values: dict[str, str]) -> str:
    shown = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{title}: {shown}." if shown else ""


def _settings(model: Any) -> dict[str, str]:
    """Parameters except for those that describe the data."""
    parameters = model.get_params(deep=False)
    return {k: repr(v) for k, v in parameters.items() if k not in ("classes", "inputs")}


def _fitted_numbers(model: Any) -> dict[str, str]:
    """Fitted attributes of the method that are one or a few numbers."""
    numbers = {}
    for name, value in vars(model).items():
        is_fitted = name.endswith("_") and not name.startswith("_") and name not in _ABOUT_THE_FIT
        if is_fitted and isinstance(value, int | float | np.number | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind in "fiu" and array.ndim < 2 and array.size <= _FEW_NUMBERS:
                numbers[name] = ", ".join(f"{number:.4g}" for number in array.ravel().tolist())
    return numbers
