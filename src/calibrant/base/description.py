"""Default descriptions of fitted calibrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant._output.numbers import format_number
from calibrant.base.training import TrainingSummary

_FEW_NUMBERS = 4
"""Largest size of a fitted array that a description shows."""

_FEW_MEMBERS = 5
"""Maximum number of inner calibrators that a description lists."""

CHI2_95 = 3.84
"""The 95% quantile of chi-squared with one degree of freedom. Twice the log-likelihood ratio of a
superfluous parameter exceeds this value with probability 5%."""

_ABOUT_THE_FIT = frozenset(
    {"classes_", "class_prior_", "class_weights_", "converged_", "n_classes_", "n_features_in_"}
    | {"n_iter_", "n_passes_", "objective_", "out_of_fold_", "training_"}
)


def describe_settings(model: Any) -> str:
    """List the settings of a calibrator, and its fitted numbers if there are only a few."""
    sentences = [
        _sentence("Settings", _settings(model)),
        _sentence("Fitted", _fitted_numbers(model)),
    ]
    return " ".join(filter(None, sentences))


def _format_losses(before: float, after: float) -> list[str]:
    """Format losses with three digits, or with five if both losses would look equal."""
    digits = 3 if format_number(before) != format_number(after) else 5
    return [format_number(loss, digits=digits) for loss in (before, after)]


def describe_fit(training: TrainingSummary | None) -> str:
    """Describe the training data and the change in log-loss.

    The text is empty if there is no summary, as for inner calibrators.
    """
    if training is None:
        return ""
    n_seen = sum(weight > 0 for weight in training.class_weights)
    is_lower = training.log_loss_after < training.log_loss_before
    caveat = " Expect a smaller reduction on new rows." if is_lower else ""
    before, after = _format_losses(training.log_loss_before, training.log_loss_after)
    change = f"changed from {before} to {after}.{caveat}"
    if before == after:
        change = f"is {format_number(training.log_loss_after)} before and after calibration."
    return (
        f"Fitted on {training.n_samples:,.6g} rows of {n_seen} of {training.n_classes} classes. "
        f"The log-loss of these rows {change}"
    )


def describe_members(members: Sequence[Any]) -> list[str]:
    """Write a line for each of the first inner calibrators, and the number of other calibrators."""
    lines = [
        f"  {type(member).__name__}. {_describe_member(member)}"
        for member in members[:_FEW_MEMBERS]
    ]
    n_more = len(members) - _FEW_MEMBERS
    return [*lines, f"  {n_more:,} more"] if n_more > 0 else lines


def _describe_member(member: Any) -> str:
    """Describe a calibrator, or list the settings of an estimator of another package."""
    return (
        str(member._description()) if hasattr(member, "_description") else describe_settings(member)
    )


def likelihood_ratio(training: TrainingSummary | None) -> float:
    """Return twice the log-likelihood ratio of a fit on its training rows, or 0 if unknown."""
    if training is None:
        return 0.0
    return 2 * training.n_rows * (training.log_loss_before - training.log_loss_after)


def _sentence(title: str, values: dict[str, str]) -> str:
    text = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{title}: {text}." if text else ""


def _settings(model: Any) -> dict[str, str]:
    """Return the parameters except those that describe the data."""
    parameters = model.get_params(deep=False)
    return {k: repr(v) for k, v in parameters.items() if k not in ("classes", "inputs")}


def _fitted_numbers(model: Any) -> dict[str, str]:
    """Return the fitted attributes that consist of a few numbers."""
    numbers = {}
    for name, value in vars(model).items():
        is_fitted = name.endswith("_") and not name.startswith("_") and name not in _ABOUT_THE_FIT
        if is_fitted and isinstance(value, int | float | np.number | np.ndarray):
            array = np.asarray(value)
            if array.dtype.kind in "fiu" and array.ndim < 2 and array.size <= _FEW_NUMBERS:
                numbers[name] = ", ".join(f"{number:.4g}" for number in array.ravel().tolist())
    return numbers
