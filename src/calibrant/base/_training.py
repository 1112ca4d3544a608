"""What a fit has seen: the few numbers that stay with a calibrator, and are written to its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._blocks import READ_ELEMENTS, row_blocks
from calibrant._simplex import log_true_class, weighted_sum
from calibrant._typing import FloatArray, IntArray

LEAST_ROWS = 1000
"""Rows that log-losses are taken over, at least, where there are as many."""

SAMPLE_SCORES = 2**14
"""Scores that log-losses are taken over, so that a fit to many rows takes no longer for them: half
a millisecond, which is much beside a fit of two."""


@dataclass(frozen=True)
class TrainingSummary:
    """The data that a calibrator was fitted to.

    Attributes
    ----------
    n_samples : float
        Sum of the weights.
    n_classes : int
    class_weights : tuple of float
        Sum of the weights of each class, 0.0 for a class that was never seen.
    log_loss_before, log_loss_after : float
        Mean log-loss of the scores and of the calibrated probabilities over ``n_rows`` of these
        rows.
    n_rows : int
        Rows of positive weight: all of them, or of more than about 16,000 scores some that are
        evenly spaced, at least 1,000.
    """

    n_samples: float
    n_classes: int
    class_weights: tuple[float, ...]
    log_loss_before: float
    log_loss_after: float
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {**asdict(self), "class_weights": list(self.class_weights)}


def training_summary(
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray,
    class_weights: FloatArray,
    inputs: str,
    log_true_of: Callable[[FloatArray, IntArray], FloatArray],
    known: tuple[float, float] | None = None,
) -> TrainingSummary:
    """The summary of a fit to checked data; ``log_true_of`` are logarithms of the fitted map at the
    true classes. Costs a millisecond of predictions; nothing where the losses of all rows are
    ``known``.
    """
    if known is None:
        n_rows, before, after = _mean_losses(scores, y, weight, inputs, log_true_of)
    else:
        n_rows = len(y) if weight.strides == (0,) else int(np.count_nonzero(weight))
        before, after = known
    return TrainingSummary(
        n_samples=float(class_weights.sum()),
        n_classes=scores.shape[1],
        class_weights=tuple(class_weights.tolist()),
        log_loss_before=before,
        log_loss_after=after,
        n_rows=n_rows,
    )


def _mean_losses(
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray,
    inputs: str,
    log_true_of: Callable[[FloatArray, IntArray], FloatArray],
) -> tuple[int, float, float]:
    """How many rows were looked at, and their mean log-losses before and after."""
    n_classes = scores.shape[1]
    rows = _some_rows(weight, max(LEAST_ROWS, SAMPLE_SCORES // n_classes))
    is_all = len(rows) == len(scores)
    own = weight if is_all else weight.take(rows)
    total = float(own.sum())

    def of_block(part: slice) -> tuple[FloatArray, FloatArray]:
        chosen = part if is_all else rows[part]
        block = scores[part] if is_all else scores.take(rows[part], axis=0)
        truth = y[chosen]
        return log_true_class(block, truth, inputs), log_true_of(block, truth)

    blocks = row_blocks(len(rows), n_classes, elements=READ_ELEMENTS)
    before, after = map(np.concatenate, zip(*map(of_block, blocks), strict=True))
    return len(rows), -weighted_sum(own, before) / total, -weighted_sum(own, after) / total


def _some_rows(weight: FloatArray, most: int) -> IntArray:
    """All rows that count, or ``most`` of them, evenly spaced."""
    is_unit = weight.strides == (0,)  # of which all count: there is no need to look
    rows = None if is_unit else np.flatnonzero(weight)
    n_rows = len(weight) if rows is None else len(rows)
    chosen = np.arange(n_rows) if n_rows <= most else np.arange(most) * n_rows // most
    return chosen if rows is None else rows[chosen]
