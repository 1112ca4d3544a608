"""Hot loops in NumPy: the definition that every other version is tested against."""

from __future__ import annotations

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray

# On many short rows a pass over the columns beats argmax, which pays for a call a row.
_SHORT_ROW = 16
_MANY_ROWS = 2048

# Repeated argmax beats a full sort of the row up to about this many ranks.
_FEW_RANKS = 4


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
    if n_rows < _MANY_ROWS or n_columns > _SHORT_ROW:
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


def cell_sums(
    cell: IntArray, score: FloatArray, hit: IntArray, weight: FloatArray, n_cells: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums per cell of the weight, of weight times score and of weight times outcome.

    ``cell`` and ``score`` have shape (m, J); ``hit`` are flat indices into them where the outcome
    is 1; ``weight`` has shape (m,). Unit weights, a stride-0 array, take a shorter way.
    """
    flat = cell.ravel()
    is_unit = weight.strides == (0,) and weight[0] == 1.0
    if is_unit:
        return (
            np.bincount(flat, minlength=n_cells).astype(np.float64),
            np.bincount(flat, score.ravel(), minlength=n_cells),
            np.bincount(flat[hit], minlength=n_cells).astype(np.float64),
        )
    each = np.repeat(weight, cell.shape[1])
    return (
        np.bincount(flat, each, minlength=n_cells),
        np.bincount(flat, each * score.ravel(), minlength=n_cells),
        np.bincount(flat[hit], each[hit], minlength=n_cells),
    )


def ordered_pairs(score: FloatArray, outcome: AnyArray) -> tuple[FloatArray, IntArray]:
    """Scores in [0, 1] in increasing order, with their outcomes (0 or 1), misses first among ties.

    The bits of a float that is not negative are ordered as it is, and those up to one leave a bit
    free: the outcome is packed into it, so that one plain sort takes the place of an indirect one.
    """
    key = (score + 0.0).view(np.uint64)  # a copy, in which -0.0 is 0.0
    key <<= np.uint64(1)
    key |= outcome.astype(np.uint64)
    key.sort()
    hit = (key & np.uint64(1)).view(np.int64)
    key >>= np.uint64(1)
    return key.view(np.float64), hit
