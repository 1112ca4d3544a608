"""A summary of the training data, which stays with a calibrator and is saved with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import log_true_class, weighted_sum
from calibrant._typing import FloatArray, IntArray


@dataclass(frozen=True)
class TrainingSummary:
    """A summary of the data that a calibrator was fitted to.

    Attributes
    ----------
    n_samples : float
        Sum of the weights.
    n_classes : int
        Number of columns.
    class_weights : tuple of float
        Sum of the weights of each class, 0.0 for a class without rows.
    log_loss_before, log_loss_after : float
        Mean log-loss of the scores and of the calibrated probabilities over ``n_rows`` of these
        rows.
    n_rows : int
        Number of rows of positive weight in the log-losses: all rows, or, for more than about
        16,000 scores, at least 1,000 evenly spaced rows.
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


def summarize_training(
    sample: Sample,
    inputs: str,
    log_true_of: Callable[[FloatArray, IntArray], FloatArray],
) -> TrainingSummary | None:
    """Summarize a fit to checked scores; None if only top scores are available.

    ``log_true_of`` gives logarithms of the calibrated probabilities of the true classes.
    """
    rows = sample.summary_rows()
    if rows is None:
        return None
    before, after = map(
        np.concatenate, zip(*_log_true_blocks(rows, inputs, log_true_of), strict=True)
    )
    return TrainingSummary(
        n_samples=float(sample.class_weights.sum()),
        n_classes=sample.n_columns,
        class_weights=tuple(sample.class_weights.tolist()),
        log_loss_before=-weighted_sum(rows.weight, before) / rows.total,
        log_loss_after=-weighted_sum(rows.weight, after) / rows.total,
        n_rows=rows.shape[0],
    )


def _log_true_blocks(
    rows: ArraySample,
    inputs: str,
    log_true_of: Callable[[FloatArray, IntArray], FloatArray],
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Logarithms of the probabilities of true classes before and after, block by block."""
    for part in row_blocks(*rows.shape, elements=READ_BLOCK):
        block, y = rows.u[part], rows.y[part]
        yield log_true_class(block, y, inputs), log_true_of(block, y)
