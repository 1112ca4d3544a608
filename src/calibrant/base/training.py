"""A summary of the training data, which is saved with a calibrator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._data.row_sketch import Hashes, row_hashes, sketch_rows
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import log_true_class, weighted_sum
from calibrant._typing import FloatArray

_MOST_HASHED = 256
"""Approximate number of rows to hash. The sketch keeps 64 of the hashes. Hashing more rows would
slow down fits of many classes."""


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
        Number of rows with positive weight in the log-losses. For up to about 8,000 scores, all
        rows are used. For more scores, at least 1,000 evenly spaced rows are used.
    row_sketch : str
        Hashes of up to 64 of these rows in hexadecimal. `calibrant.decisions` compares the hashes
        with the rows that are meant to be held out from the fit.
    """

    n_samples: float
    n_classes: int
    class_weights: tuple[float, ...]
    log_loss_before: float
    log_loss_after: float
    n_rows: int
    row_sketch: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, without the hashes of rows."""
        fields = {**asdict(self), "class_weights": list(self.class_weights)}
        del fields["row_sketch"]
        return fields


def summarize_training(
    sample: Sample,
    inputs: str,
    log_true_of: Callable[..., FloatArray],
    *,
    with_columns: bool = False,
) -> TrainingSummary | None:
    """Summarize a fit to checked scores, or return None for top scores.

    ``log_true_of`` returns logarithms of the calibrated probabilities of the true classes. The
    arguments of this function are scores and column codes, and also the additional columns if
    ``with_columns`` is True.
    """
    rows = sample.summary_rows()
    if rows is None:
        return None
    blocks = _summary_blocks(rows, inputs, log_true_of, with_columns)
    before, after, hashes = map(np.concatenate, zip(*blocks, strict=True))
    return TrainingSummary(
        n_samples=float(sample.class_weights.sum()),
        n_classes=sample.n_columns,
        class_weights=tuple(sample.class_weights.tolist()),
        log_loss_before=-weighted_sum(rows.weight, before) / rows.total,
        log_loss_after=-weighted_sum(rows.weight, after) / rows.total,
        n_rows=rows.shape[0],
        row_sketch=sketch_rows(hashes),
    )


def _summary_blocks(
    rows: ArraySample,
    inputs: str,
    log_true_of: Callable[..., FloatArray],
    with_columns: bool,
) -> Iterator[tuple[FloatArray, FloatArray, Hashes]]:
    """Logarithms of the probabilities of true classes before and after, and hashes, by block."""
    step = -(-rows.shape[0] // _MOST_HASHED)
    for part in row_blocks(*rows.shape, elements=READ_BLOCK):
        block, y = rows.u[part], rows.y[part]
        columns = [column[part] for column in rows.columns] if with_columns else []
        after = log_true_of(block, y, *columns)
        yield log_true_class(block, y, inputs), after, row_hashes(block[::step])
