"""Functions of probabilities and logits of a block of rows.

Only this module defines how zeros are handled. Functions take and return plain ``(m, K)`` arrays
and compute in float64. Only functions with ``in_place`` in their name change their input.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray

EPS = 1e-12
"""Default floor of probabilities before their logarithm is taken."""

TINY = 1e-300
"""The smallest positive probability in use. It represents an impossible class, but its logarithm
and its reciprocal are finite."""

LOG_ZERO = float(np.log(TINY))
"""The logarithm of `TINY`."""

ABSENT = -(2.0**100)
"""The log-probability that marks an option which a question does not have (`OptionScores`). This
number is finite, so products with it are not NaN. It is far below every score, so its exponential
is exactly 0."""

MODERATE = 300.0
"""Exponentials of numbers of at most this size, and their sums, are far from overflow, because
exp(300) is about 1e130."""

# On short rows, row sums as a matrix product and row maxima column by column are faster than
# NumPy's reductions with axis=1. Row maxima are faster only from _FEW_ROWS rows on.
SHORT_ROW = 32
_FEW_ROWS = 32


def row_sum(block: FloatArray) -> FloatArray:
    """Sum of each row in float64."""
    # NumPy sums long rows pairwise. A matrix product adds a thousand equal probabilities one by
    # one, and each addition loses the same bits. The error of softmax was 26 units in the last
    # place.
    if block.shape[1] > SHORT_ROW:
        return np.asarray(block.sum(axis=1, dtype=np.float64))
    return block @ ones(block.shape[1])


def rough_row_sum(block: FloatArray) -> FloatArray:
    """Compute `row_sum` with an error of about 1e-12. A matrix product is faster for long rows."""
    return block @ ones(block.shape[1]) if block.dtype == np.float64 else row_sum(block)


@lru_cache(maxsize=16)
def ones(size: int, dtype: np.dtype[Any] | None = None) -> FloatArray:
    """Return a cached, read-only vector of ones.

    A product with this vector sums the entries of short rows.
    """
    vector = np.ones(size, dtype=dtype)
    vector.flags.writeable = False
    return vector


def weighted_sum(weight: FloatArray, values: FloatArray) -> float:
    """Return ``sum_i w_i x_i``. For equal weights (a stride-0 array), only one weight is read."""
    if weight.strides == (0,) and weight.size:
        return float(weight[0] * np.add.reduce(values))
    return float(weight @ values)


def total_weight(weight: FloatArray) -> float:
    """Return ``sum_i w_i``. For equal weights (a stride-0 array), only one weight is read."""
    if weight.strides == (0,) and weight.size:
        return float(weight[0]) * weight.size
    return float(weight.sum())


def effective_weights(weight: FloatArray) -> FloatArray:
    """Rescale weights to sum to the effective number of rows, ``(sum w)^2 / sum w^2`` (Kish 1965).

    The mean over weighted rows has about the variance of a mean over this number of unweighted
    rows. If all weights are equal, each weight becomes one.
    """
    if is_unit(weight):
        return weight
    ratio = weight / weight.max()  # squares of tiny or huge weights would underflow or overflow
    return ratio * (ratio.sum() / (ratio @ ratio))


def is_unit(weight: FloatArray) -> bool:
    """Return whether all weights are one. For equal weights (stride 0), only one weight is read."""
    return bool(weight[0] == 1.0 if weight.strides == (0,) and weight.size else (weight == 1).all())


def class_sums(y: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Sum the weights of each class, (K,).

    For equal weights (stride 0), only one weight is read.
    """
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
    """Compute `softmax` of float64 logits in place."""
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
    # Exponentials of moderate logits cannot overflow. So only other logits need the subtraction of
    # the row maximum, which takes time and makes a copy.
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
    """Return ``log(p)`` of calibrated probabilities for users. The logarithm of zero is -inf."""
    with np.errstate(divide="ignore"):
        return np.log(proba)


def finite_logits(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Return logits in float64 with -inf replaced by the logit of probability ``eps``.

    `ABSENT` becomes the logit of `TINY`, so an absent option has no mass at any temperature. If a
    finite logit of the row is lower, -inf becomes the lowest finite logit. So an impossible class
    never outranks a possible class. Logits without -inf are not copied.
    """
    array = np.asarray(logits, dtype=np.float64)
    if not (array.size and array.min() <= ABSENT):
        return array
    out, impossible = np.array(array), array <= ABSENT
    rows = np.flatnonzero(impossible.any(axis=1))
    block, is_impossible = out[rows], impossible[rows]
    top = row_max(block)
    floor = top + np.log(row_sum(np.exp(block - top[:, None]))) + np.log(eps)
    least = np.where(is_impossible, np.inf, block).min(axis=1)
    out[rows] = np.where(is_impossible, np.minimum(floor, least)[:, None], block)
    out[array == ABSENT] += LOG_ZERO - np.log(eps)
    return out


def centered(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Subtract the row mean from finite logits, which removes a constant added to the row."""
    out = finite_logits(logits, eps)
    if not _has_absent(logits):
        return out - (row_sum(out) / out.shape[1])[:, None]
    # Subtract the mean over present options, so absent options do not shift the present options.
    is_present = logits != ABSENT
    return out - (row_sum(out * is_present) / is_present.sum(axis=1))[:, None]


def _has_absent(scores: FloatArray) -> bool:
    return bool(scores.size and scores.min() <= ABSENT and (scores == ABSENT).any())


def absent_as_impossible(scores: FloatArray) -> FloatArray:
    """Mark absent options by -inf, for methods that need scores of moderate size."""
    return np.where(scores == ABSENT, -np.inf, scores) if _has_absent(scores) else scores


def zero_absent(proba: FloatArray, scores: FloatArray) -> FloatArray:
    """Set probabilities to exactly 0 for options that the scores mark as absent.

    The probabilities of present options are divided by their sum. Without absent options, the
    probabilities are not copied.
    """
    if not _has_absent(scores):
        return proba
    is_present = scores != ABSENT
    mass = np.where(is_present, proba, 0.0)
    total = row_sum(mass)
    # If all mass was on absent options, the present options are equally likely.
    mass = np.where((total > 0)[:, None], mass, is_present)
    return mass / row_sum(mass)[:, None]


def uniform_proba(scores: FloatArray) -> FloatArray:
    """The uniform forecast for rows of scores. Absent options have probability 0."""
    return zero_absent(np.full(scores.shape, 1.0 / scores.shape[1]), scores)


def score_logits(scores: FloatArray, inputs: str) -> FloatArray:
    """Logits of scores: log-probabilities with the floor of the log-loss, or centered logits."""
    return log_clipped(scores, EPS) if inputs == "proba" else centered(scores)


def log_odds(proba: FloatArray, eps: float) -> FloatArray:
    """``log(p / (1 - p))`` of probabilities clipped to ``[eps, 1 - eps]``."""
    out = np.clip(np.asarray(proba, dtype=np.float64), eps, 1.0 - eps)
    # 1 - p is exact for p above 1/2. For smaller p, 1 - p is above 1/2, so rounding changes its
    # logarithm by at most about 1e-16.
    complement = 1.0 - out
    np.log(out, out=out)
    out -= np.log(complement, out=complement)
    return out


def log_sigmoids(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``log p`` and ``log(1 - p)`` of log-odds, with an absolute error of 1e-16."""
    # log p = min(z, 0) - log(1 + exp(-|z|)), which cannot overflow. log p and log(1 - p) share the
    # last term.
    log_term = np.abs(odds)
    np.negative(log_term, out=log_term)
    np.exp(log_term, out=log_term)
    log_term += 1.0
    np.log(log_term, out=log_term)
    return np.minimum(odds, 0.0) - log_term, np.minimum(-odds, 0.0) - log_term


def sigmoid(odds: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))``."""
    out = np.negative(odds)
    with np.errstate(over="ignore"):  # exp(800) is infinite, and its reciprocal 0
        np.exp(out, out=out)
    out += 1.0
    return np.divide(1.0, out, out=out)


def normalized(rows: FloatArray) -> FloatArray:
    """Divide rows by their sum. A row of zeros becomes uniform."""
    total = rows.sum(axis=1, keepdims=True)
    if total.min() > 0:
        return rows / total
    return np.divide(rows, total, out=np.full(rows.shape, 1.0 / rows.shape[1]), where=total > 0)


def as_proba(scores: FloatArray, inputs: str) -> FloatArray:
    """Convert checked scores to probabilities in float64."""
    return np.asarray(scores, dtype=np.float64) if inputs == "proba" else softmax(scores)


def log_true_class(scores: FloatArray, y: IntArray, inputs: str, eps: float = EPS) -> FloatArray:
    """Return the log-probability of the true class of each row, at least ``log(eps)``.

    The result is the same for probabilities, logits and log-probabilities of a prediction.
    """
    if inputs == "proba":
        return log_floored(true_class(scores, y), eps)
    return np.maximum(log_softmax_at(scores, y), np.log(eps))


def true_class(scores: FloatArray, y: IntArray) -> FloatArray:
    """The entry of the true class of each row, (n,)."""
    if not scores.flags.c_contiguous:
        return scores[np.arange(len(y)), y]
    # A single flat index per entry takes half the time of two indices.
    return scores.reshape(-1).take(np.arange(0, scores.size, scores.shape[1]) + y)


def log_losses(proba: FloatArray, y: IntArray, eps: float = EPS) -> FloatArray:
    """Log-loss of each row, ``-log max(p_y, eps)``."""
    return -log_floored(true_class(proba, y), eps)


def brier_scores(proba: FloatArray, y: IntArray) -> FloatArray:
    """Brier score of each row, ``sum_k (p_k - 1[y = k])^2``."""
    residual = np.array(proba, dtype=np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    return np.einsum("ij,ij->i", residual, residual)
