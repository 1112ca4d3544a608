"""Distinct scores with the sums of their rows, and sums over bins."""

from __future__ import annotations

import numpy as np

from calibrant._kernels import ordered_pairs
from calibrant._kernels.simplex import is_unit
from calibrant._typing import FloatArray, IntArray


def distinct_sums(
    score: FloatArray, outcome: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct scores in increasing order, with their sums of weights and weighted outcomes.

    Rows with weight zero are excluded. All methods that sort scores use distinct scores, so they
    treat ties in the same way.
    """
    if is_unit(weight) and score.size and score.min() >= 0.0 and score.max() <= 1.0:
        return pair_sums(*ordered_pairs(score, outcome))
    score, outcome, weight = present_rows(score, outcome, weight)
    order = np.argsort(score, kind="stable")
    values, starts = _steps(score[order])
    if not values.size:
        return values, np.empty(0), np.empty(0)
    total, hits = weight[order], (weight * outcome)[order]
    if values.size == total.size:
        return values, total, hits
    return values, np.add.reduceat(total, starts), np.add.reduceat(hits, starts)


def _steps(score: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct values of sorted scores, and the index at which each begins."""
    is_new = np.empty(score.size, dtype=bool)
    is_new[:1] = True
    np.not_equal(score[1:], score[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    return (score if starts.size == score.size else score[starts]), starts


def pair_sums(score: FloatArray, hit: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute `distinct_sums` of sorted scores with unit weights."""
    values, starts = _steps(score)
    if values.size == score.size:
        return values, np.ones(score.size), hit.astype(np.float64)
    ends = np.append(starts[1:], score.size)
    hits = np.add.reduceat(hit, starts)
    return values, (ends - starts).astype(np.float64), hits.astype(np.float64)


def present_rows(
    score: FloatArray, outcome: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Select rows with positive weight. For several claims, rows are on the last axis."""
    if is_unit(weight) or weight.all():
        return score, outcome, weight
    is_present = weight > 0
    return score[..., is_present], outcome[..., is_present], weight[is_present]


def sum_steps(part: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Sum ``part`` over the increasing ``values`` in each right-closed bin."""
    starts = np.append(0, np.searchsorted(values, edges[:-1], side="right"))
    # reduceat needs valid indices, so empty bins at the end begin at the appended zero.
    sums = np.add.reduceat(np.append(part, 0.0), starts)
    # For other empty bins, reduceat returns the next value instead of 0.
    sums[:-1][starts[1:] == starts[:-1]] = 0.0
    return sums


def interpolated(score: FloatArray, places: FloatArray, values: FloatArray) -> FloatArray:
    """Evaluate the linear interpolation of ``values`` at ``places`` for each score.

    The slope between two adjacent points below 1e-300 can be infinite. The result is then the value
    of one of the two points.
    """
    result = np.interp(score, places, values)
    is_infinite = ~np.isfinite(result)
    if is_infinite.any():
        result[is_infinite] = values[np.searchsorted(places, score[is_infinite])]
    return result
