"""Functions of probabilities and logits of a block of rows.

This module alone defines how zeros are handled. Every function takes and returns plain ``(m, K)``
arrays, computes in float64 and does not change its input, unless its name says so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray

EPS = 1e-12
"""Default floor of probabilities before their logarithm is taken."""

TINY = 1e-300
"""The smallest positive number in use. It means "impossible", but its logarithm and its reciprocal
are finite."""

LOG_ZERO = float(np.log(TINY))
"""The logarithm of `TINY`."""

MODERATE = 300.0
"""Exponentials of numbers of at most this size, and their sums, are far from overflow: exp(300) is
about 1e130."""

# On short rows, row sums as a matrix product and row maxima column by column are faster than
# NumPy's reductions with axis=1. Row maxima need at least _FEW_ROWS rows for that.
SHORT_ROW = 32
_FEW_ROWS = 32


def row_sum(block: FloatArray) -> FloatArray:
    """Sum of each row in float64."""
    # NumPy sums long rows pairwise. Added one after the other, a thousand equal probabilities lose
    # the same bits each time, and softmax was off by 26 units in the last place.
    if block.shape[1] > SHORT_ROW:
        return np.asarray(block.sum(axis=1, dtype=np.float64))
    return block @ ones(block.shape[1])


def rough_row_sum(block: FloatArray) -> FloatArray:
    """`row_sum` with an error of about 1e-12, faster for long rows by a matrix product."""
    return block @ ones(block.shape[1]) if block.dtype == np.float64 else row_sum(block)


@lru_cache(maxsize=16)
def ones(size: int, dtype: np.dtype[Any] | None = None) -> FloatArray:
    """A cached, read-only vector of ones; a product with it sums the entries of short rows."""
    vector = np.ones(size, dtype=dtype)
    vector.flags.writeable = False
    return vector


def weighted_sum(weight: FloatArray, values: FloatArray) -> float:
    """``sum_i w_i x_i``; equal weights (a stride-0 array) are a factor of the sum."""
    if weight.strides == (0,) and weight.size:
        return float(weight[0] * np.add.reduce(values))
    return float(weight @ values)


def total_weight(weight: FloatArray) -> float:
    """``sum_i w_i``; equal weights (a stride-0 array) are not read."""
    if weight.strides == (0,) and weight.size:
        return float(weight[0]) * weight.size
    return float(weight.sum())


def effective_weights(weight: FloatArray) -> FloatArray:
    """Weights that sum to the effective number of rows, ``(sum w)^2 / sum w^2`` (Kish 1965).

    A mean over rows with unequal weights varies like one over this number of rows with weight one.
    Weights of one, and all multiples of them, become one.
    """
    if is_unit(weight):
        return weight
    scaled = weight / weight.max()  # squares of tiny or huge weights would underflow or overflow
    return scaled * (scaled.sum() / (scaled @ scaled))


def is_unit(weight: FloatArray) -> bool:
    """Whether all weights are one; default weights (a stride-0 array) are not read."""
    return bool(weight[0] == 1.0 if weight.strides == (0,) and weight.size else (weight == 1).all())


def class_sums(y: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Sum of the weights of each class, (K,); equal weights (a stride-0 array) are not read."""
    if weight.strides == (0,) and weight.size:
        return np.bincount(y, minlength=n_classes) * weight[0]
    return np.bincount(y, weight, minlength=n_classes)


def row_max(block: FloatArray) -> FloatArray:
    """Largest entry of each row."""
    n_rows, n_columns = block.shape
    if n_columns > SHORT_ROW or n_rows < _FEW_ROWS:
        return block.max(axis=1)
    largest = block[:, 0].copy()
    for k in range(1, n_columns):
        np.maximum(largest, block[:, k], out=largest)
    return largest


def softmax(logits: FloatArray) -> FloatArray:
    """``exp(z_k) / sum_l exp(z_l)`` by row."""
    # Subtracting the row maximum avoids overflow and does not change the result.
    out = np.subtract(logits, row_max(logits)[:, None], dtype=np.float64)
    return _normalized_exp(out)


def softmax_in_place(out: FloatArray) -> FloatArray:
    """`softmax` of float64 logits that are no longer needed, written over them."""
    out -= row_max(out)[:, None]
    return _normalized_exp(out)


def _normalized_exp(out: FloatArray) -> FloatArray:
    np.exp(out, out=out)
    out /= row_sum(out)[:, None]
    return out


def log_softmax(logits: FloatArray) -> FloatArray:
    """``z_k - log sum_l exp(z_l)`` by row."""
    out = np.subtract(logits, row_max(logits)[:, None], dtype=np.float64)
    out -= np.log(row_sum(np.exp(out)))[:, None]
    return out


def log_softmax_at(logits: FloatArray, y: IntArray) -> FloatArray:
    """`log_softmax` at the column ``y`` of each row, (n,)."""
    z = np.asarray(logits, dtype=np.float64)
    # Moderate logits cannot overflow, so their copy without the row maximum is not needed.
    if not (z.min(initial=0.0) >= -MODERATE and z.max(initial=0.0) <= MODERATE):
        z = z - row_max(z)[:, None]
    return true_class(z, y) - np.log(row_sum(np.exp(z)))


def log_clipped(proba: FloatArray, eps: float) -> FloatArray:
    """``log(clip(p, eps, 1 - eps))``, not renormalized."""
    out = np.clip(np.asarray(proba, dtype=np.float64), eps, 1.0 - eps)
    return np.log(out, out=out)


def log_floored(proba: FloatArray, eps: float) -> FloatArray:
    """``log(max(p, eps))``: the logarithm of a predicted probability in a loss."""
    out = np.maximum(np.asarray(proba, dtype=np.float64), eps)
    return np.log(out, out=out)


def log_of(proba: FloatArray) -> FloatArray:
    """``log(p)`` of calibrated probabilities for users; zero has the logarithm -inf."""
    with np.errstate(divide="ignore"):
        return np.log(proba)


def finite_logits(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Logits in float64 with -inf replaced by the logit of probability ``eps``.

    This is the floor of a probability of zero. If a finite logit of the row is lower, its value is
    used, so an impossible class never outranks a possible one. Without -inf, the logits are not
    copied.
    """
    array = np.asarray(logits, dtype=np.float64)
    if not (array.size and array.min() == -np.inf):
        return array
    out, impossible = np.array(array), np.isneginf(array)
    rows = np.flatnonzero(impossible.any(axis=1))
    block, is_impossible = out[rows], impossible[rows]
    top = row_max(block)
    floor = top + np.log(row_sum(np.exp(block - top[:, None]))) + np.log(eps)
    least = np.where(is_impossible, np.inf, block).min(axis=1)
    out[rows] = np.where(is_impossible, np.minimum(floor, least)[:, None], block)
    return out


def centered(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Finite logits minus their row mean, which removes a constant that was added to a row."""
    out = finite_logits(logits, eps)
    return out - (row_sum(out) / out.shape[1])[:, None]


def log_odds(proba: FloatArray, eps: float) -> FloatArray:
    """``log(p / (1 - p))`` of probabilities clipped to ``[eps, 1 - eps]``."""
    out = np.clip(np.asarray(proba, dtype=np.float64), eps, 1.0 - eps)
    # 1 - p is exact for p above 1/2. Below, its rounding error is that of the result.
    complement = 1.0 - out
    np.log(out, out=out)
    out -= np.log(complement, out=complement)
    return out


def log_sigmoids(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``log p`` and ``log(1 - p)`` of log-odds, with an absolute error of 1e-16."""
    # log p = min(z, 0) - log(1 + exp(-|z|)), which cannot overflow; both share the last term.
    common = np.abs(odds)
    np.negative(common, out=common)
    np.exp(common, out=common)
    common += 1.0
    np.log(common, out=common)
    return np.minimum(odds, 0.0) - common, np.minimum(-odds, 0.0) - common


def sigmoid(odds: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))``."""
    out = np.negative(odds)
    with np.errstate(over="ignore"):  # exp(800) is infinite, and its reciprocal 0
        np.exp(out, out=out)
    out += 1.0
    return np.divide(1.0, out, out=out)


def normalized(rows: FloatArray) -> FloatArray:
    """Rows divided by their sum; a row of zeros becomes uniform."""
    total = rows.sum(axis=1, keepdims=True)
    if total.min() > 0:
        return rows / total
    return np.divide(rows, total, out=np.full(rows.shape, 1.0 / rows.shape[1]), where=total > 0)


def as_proba(scores: FloatArray, inputs: str) -> FloatArray:
    """Probabilities of checked scores in float64; the softmax of logits and log-probabilities."""
    return np.asarray(scores, dtype=np.float64) if inputs == "proba" else softmax(scores)


def log_true_class(scores: FloatArray, y: IntArray, inputs: str, eps: float = EPS) -> FloatArray:
    """The logarithm of the probability of the true class of each row, at least ``log(eps)``.

    The result is the same for probabilities, logits and log-probabilities of a prediction.
    """
    if inputs == "proba":
        return log_floored(true_class(scores, y), eps)
    return np.maximum(log_softmax_at(scores, y), np.log(eps))


def true_class(scores: FloatArray, y: IntArray) -> FloatArray:
    """The entry of the true class of each row, (n,)."""
    if not scores.flags.c_contiguous:
        return scores[np.arange(len(y)), y]
    # One flat index per entry instead of two takes half the time.
    return scores.reshape(-1).take(np.arange(0, scores.size, scores.shape[1]) + y)


def log_losses(proba: FloatArray, y: IntArray, eps: float = EPS) -> FloatArray:
    """Log-loss of each row, ``-log max(p_y, eps)``."""
    return -log_floored(true_class(proba, y), eps)


def brier_scores(proba: FloatArray, y: IntArray) -> FloatArray:
    """Brier score of each row, ``sum_k (p_k - 1[y = k])^2``."""
    residual = np.array(proba, dtype=np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    return np.einsum("ij,ij->i", residual, residual)
