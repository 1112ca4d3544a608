"""Calibration metrics as computed by other tools.

Reports show these metrics under the names of the tools, because the metrics are not comparable with
the figures of this package. Sampling noise biases these metrics upward, and some metrics leave out
rows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from calibrant._typing import BoolArray, FloatArray

_HLE_BIN = 100
"""Rows per bin of the calibration error of Humanity's Last Exam."""

_HELM_BINS = 10


def hle_figures(correct: BoolArray, confidence: FloatArray) -> dict[str, float]:
    """Calibration errors of Humanity's Last Exam for a run with stated confidences.

    ``hle/cerr`` is the error as computed by inspect_evals. ``hle/cerr (CAIS)`` is the error as
    computed by the authors' script, which leaves out the bin with the highest confidences.
    ``hle/cerr without 100%`` leaves out rows with confidence 1, because the scorer stores a missing
    confidence as 100%.
    """
    is_stated = confidence < 1.0
    figures = {"hle/cerr": hle_error(correct, confidence)}
    if len(correct) >= 2 * _HLE_BIN:
        figures["hle/cerr (CAIS)"] = hle_error(correct, confidence, drops_last=True)
    if 0 < is_stated.sum() < len(is_stated):
        figures["hle/cerr without 100%"] = hle_error(correct[is_stated], confidence[is_stated])
    return figures


def hle_error(correct: BoolArray, confidence: FloatArray, *, drops_last: bool = False) -> float:
    """Compute the root mean squared gap over bins of 100 rows in the order of confidence."""
    n_rows = len(correct)
    if not n_rows:
        return float("nan")
    # As in the original implementation, NumPy's default sort determines the order of ties.
    order = np.argsort(confidence)
    outcome, score = np.asarray(correct, dtype=np.float64)[order], confidence[order]
    size = min(_HLE_BIN, n_rows)
    starts = np.arange(n_rows // size) * size
    ends = np.append(starts[1:], n_rows)
    total = 0.0
    for start, end in list(zip(starts, ends, strict=True))[: -1 if drops_last else None]:
        gap = np.abs(score[start:end].mean() - outcome[start:end].mean())
        total += (end - start) / n_rows * gap**2
    return float(np.sqrt(total))


def helm_ece(correct: BoolArray, confidence: FloatArray) -> float:
    """Compute ``ece_10_bin`` of HELM, the mean absolute gap over ten quantile bins."""
    edges = _helm_edges(confidence)
    bins = np.searchsorted(edges, confidence)
    total = 0.0
    for number in np.unique(bins):
        rows = bins == number
        gap = abs(float(confidence[rows].mean()) - float(np.mean(correct[rows])))
        total += rows.sum() / len(bins) * gap
    return total


def _helm_edges(confidence: FloatArray) -> FloatArray:
    """Return upper edges of bins, halfway between neighboring rows. Equal edges are merged."""
    parts = np.array_split(np.sort(confidence), _HELM_BINS)
    if len(confidence) < _HELM_BINS:
        parts = [part for part in parts if len(part)]
    inner = [(a[-1] + b[0]) / 2.0 for a, b in pairwise(parts)]
    return np.unique(np.array([*inner, 1.0]))
