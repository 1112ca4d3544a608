"""Probabilities and logits of a block of rows: their highest entries, their logarithms and the zero
policy, whose only home it is.

Every function takes and returns plain ``(m, K)`` arrays, computes in float64 and leaves its input
alone.
"""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, IntArray

EPS = 1e-12
"""Default floor of probabilities before their logarithm is taken."""

TINY = 1e-300
"""The least positive number that is worked with: "impossible", yet its logarithm and its reciprocal
are finite."""

LOG_ZERO = float(np.log(TINY))
"""The logarithm of `TINY`."""

# On many short rows a pass over the columns beats argmax, which pays for a call a row.
_SHORT_TOP_ROW = 16
_MANY_ROWS = 2048

# Repeated argmax beats a full sort of the row up to about this many ranks.
_FEW_RANKS = 4

# Row sums as a matrix product and row maxima column by column beat NumPy's axis=1 reductions on
# short rows.
SHORT_ROW = 32


def row_sum(block: FloatArray) -> FloatArray:
    """Sum of each row in float64.

    Long rows by halves, as NumPy sums: one after the other, a thousand classes of the same small
    probability lose the same bits each time, and softmax was off by 26 units in the last place.
    """
    if block.shape[1] > SHORT_ROW:
        return np.asarray(block.sum(axis=1, dtype=np.float64))
    return block @ np.ones(block.shape[1])


def row_max(block: FloatArray) -> FloatArray:
    """Largest entry of each row."""
    n_columns = block.shape[1]
    if n_columns > SHORT_ROW:
        return block.max(axis=1)
    largest = block[:, 0].copy()
    for k in range(1, n_columns):
        np.maximum(largest, block[:, k], out=largest)
    return largest


def softmax(logits: FloatArray) -> FloatArray:
    """``exp(z_k) / sum_l exp(z_l)`` by row."""
    out = np.subtract(logits, row_max(logits)[:, None], dtype=np.float64)
    np.exp(out, out=out)
    out /= row_sum(out)[:, None]
    return out


def log_softmax(logits: FloatArray) -> FloatArray:
    """``z_k - log sum_l exp(z_l)`` by row."""
    out = np.subtract(logits, row_max(logits)[:, None], dtype=np.float64)
    out -= np.log(row_sum(np.exp(out)))[:, None]
    return out


def log_clipped(proba: FloatArray, eps: float) -> FloatArray:
    """``log(clip(p, eps, 1 - eps))``, not renormalised."""
    out = np.clip(np.asarray(proba, dtype=np.float64), eps, 1.0 - eps)
    return np.log(out, out=out)


def log_floored(proba: FloatArray, eps: float) -> FloatArray:
    """``log(max(p, eps))``: the logarithm of a predicted probability in a loss."""
    out = np.maximum(np.asarray(proba, dtype=np.float64), eps)
    return np.log(out, out=out)


def log_of(proba: FloatArray) -> FloatArray:
    """``log(p)`` of final probabilities, for people to read: zero has the logarithm -inf."""
    with np.errstate(divide="ignore"):
        return np.log(proba)


def finite_logits(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Logits in float64 with -inf replaced by the logit of probability ``eps``: the floor that a
    probability of zero has. Where a finite logit of the row is lower, that one is taken, so that
    what is impossible never outranks what is not.
    """
    out = np.array(logits, dtype=np.float64)
    impossible = np.isneginf(out)
    rows = np.flatnonzero(impossible.any(axis=1))
    if rows.size:
        block, gone = out[rows], impossible[rows]
        top = row_max(block)
        floor = top + np.log(row_sum(np.exp(block - top[:, None]))) + np.log(eps)
        least = np.where(gone, np.inf, block).min(axis=1)
        out[rows] = np.where(gone, np.minimum(floor, least)[:, None], block)
    return out


def centred(logits: FloatArray, eps: float = EPS) -> FloatArray:
    """Finite logits minus their row mean: the form in which a constant added to a row is gone."""
    out = finite_logits(logits, eps)
    out -= (row_sum(out) / out.shape[1])[:, None]
    return out


def log_odds(proba: FloatArray, eps: float) -> FloatArray:
    """``log(p / (1 - p))`` of probabilities clipped to ``[eps, 1 - eps]``."""
    p = np.clip(np.asarray(proba, dtype=np.float64), eps, 1.0 - eps)
    return np.log(p) - np.log1p(-p)


def normalized(rows: FloatArray) -> FloatArray:
    """Rows divided by their sum; a row of zeros becomes uniform."""
    total = rows.sum(axis=1, keepdims=True)
    return np.divide(rows, total, out=np.full(rows.shape, 1.0 / rows.shape[1]), where=total > 0)


def as_proba(scores: FloatArray, inputs: str) -> FloatArray:
    """Probabilities of checked scores in float64: as they are, or the softmax of logits and of
    log-probabilities.
    """
    return np.asarray(scores, dtype=np.float64) if inputs == "proba" else softmax(scores)


def log_true_class(scores: FloatArray, y: IntArray, inputs: str, eps: float = EPS) -> FloatArray:
    """The logarithm of the probability of the true class of each row, not below that of ``eps``:
    the same number whether a forecast comes as probabilities, logits or log-probabilities.
    """
    if inputs == "proba":
        return log_floored(true_class(scores, y), eps)
    return np.maximum(true_class(log_softmax(scores), y), np.log(eps))


def true_class(scores: FloatArray, y: IntArray) -> FloatArray:
    """The entry of the true class of each row, (n,)."""
    return scores[np.arange(len(y)), y]


def log_losses(proba: FloatArray, y: IntArray, eps: float = EPS) -> FloatArray:
    """Log-loss of each row, ``-log max(p_y, eps)``."""
    return -log_floored(true_class(proba, y), eps)


def brier_scores(proba: FloatArray, y: IntArray) -> FloatArray:
    """Brier score of each row, ``sum_k (p_k - 1[y = k])^2``."""
    residual = np.array(proba, dtype=np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    return np.einsum("ij,ij->i", residual, residual)


def top_labels(block: FloatArray, n_ranks: int) -> IntArray:
    """Columns of the ``n_ranks`` largest entries of each row, ``(m, n_ranks)``; ties go to the
    lowest column.
    """
    if n_ranks == 1:
        return _top_label(block)[:, None]
    if n_ranks > _FEW_RANKS:
        return np.argsort(-block, axis=1, kind="stable")[:, :n_ranks]
    left = np.array(block)
    labels = np.empty((len(block), n_ranks), dtype=np.intp)
    rows = np.arange(len(block))
    for rank in range(n_ranks):
        labels[:, rank] = left.argmax(axis=1)
        left[rows, labels[:, rank]] = -np.inf
    return labels


def _top_label(block: FloatArray) -> IntArray:
    n_rows, n_columns = block.shape
    if n_rows < _MANY_ROWS or n_columns > _SHORT_TOP_ROW:
        return block.argmax(axis=1)
    columns = np.ascontiguousarray(block.T)
    largest = columns[0].copy()
    label = np.zeros(n_rows, dtype=np.int8)
    for k in range(1, n_columns):
        is_larger = (columns[k] > largest).view(np.int8)
        # k grows: without a branch, the last column that was larger
        np.maximum(label, is_larger * np.int8(k), out=label)
        np.maximum(largest, columns[k], out=largest)
    return label.astype(np.intp)


def entries(block: FloatArray, label: IntArray) -> FloatArray:
    """Entries of each row in the columns ``label`` (m, J), in float64."""
    rows = np.arange(len(block))[:, None]
    return np.asarray(block[rows, label], dtype=np.float64)
