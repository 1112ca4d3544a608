"""Losses of answers on the scale from 0 to 1, and the label of an abstention."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._kernels.costs import realized_costs
from calibrant._typing import AnyArray, BoolArray, FloatArray, IntArray
from calibrant._validation import check_costs, check_share, shortened


def scaled_losses(
    loss: Any, risk: float, predicted: IntArray, y: IntArray, classes: AnyArray
) -> tuple[FloatArray, float]:
    """Return losses between 0 and 1 of predicted classes, and the risk on this scale."""
    if isinstance(loss, str):
        return (predicted != y).astype(np.float64), check_share(risk, "risk")
    cost = _check_loss(loss, classes)
    largest = float(cost.max())
    is_number = isinstance(risk, int | float | np.number) and not isinstance(risk, bool)
    if not is_number or not 0 < risk < largest:
        raise ValueError(
            f"risk must be between 0 and the largest cost {largest:g}, got {risk!r}. For example, "
            f"pass risk={0.05 * largest:g}."
        )
    return realized_costs(cost, predicted, y) / largest, float(risk) / largest


def _check_loss(loss: Any, classes: AnyArray) -> FloatArray:
    n_classes = len(classes)
    cost = check_costs(loss, n_classes, name="loss", classes=classes, actions=classes)
    if cost.shape[1] != n_classes or cost.min() < 0 or not cost.max() > 0:
        raise ValueError(
            f"loss must have one column per class ({n_classes}) and costs of at least 0, got shape "
            f"{cost.shape} with costs from {cost.min():g} to {cost.max():g}. For example, pass "
            f"1 - np.eye({n_classes})."
        )
    return cost


def is_text(classes: AnyArray) -> bool:
    """Return whether labels are text."""
    return isinstance(classes.tolist()[0], str)


def abstention_label(abstain: Any, classes: AnyArray) -> Any:
    """Return the prediction for rows without an answer, and raise if it is a class."""
    text = is_text(classes)
    label = ("" if text else -1) if abstain is None else abstain
    if np.ndim(label):
        raise ValueError(
            f"abstain must be a single label, got {abstain!r:.80}. For example, pass "
            f"abstain={'unknown' if text else -1!r}."
        )
    if label in classes.tolist():
        raise ValueError(
            f"The label for abstentions is {label!r}, but {label!r} is also one of the classes "
            f"{shortened(classes)}. Pass another label, for example "
            f"abstain={'unknown' if text else -999!r}."
        )
    return label


def with_abstentions(labels: AnyArray, is_answered: BoolArray, abstention: Any) -> AnyArray:
    """Replace the labels of rows without an answer.

    NumPy would convert numbers to text if only one of labels and abstention is text.
    """
    if isinstance(abstention, str) != is_text(labels):
        labels = labels.astype(object)
    return np.where(is_answered, labels, np.asarray(abstention))
