"""NumPy versions of frequently used loops. Tests compare them with the compiled versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from calibrant._kernels.blocks import row_blocks
from calibrant._kernels.simplex import ones
from calibrant._typing import AnyArray, FloatArray, IntArray

# For many short rows, a loop over the columns is faster than argmax, which has a fixed cost per
# row.
_SHORT_ROW = 16
_MANY_ROWS = 2048

# Number of slots of the alias tables that are processed together. These slots take 200 kB, which
# fits the cache.
_TILE = 2**14

# Number of byte draws that are processed together. The table indices of these draws take 1 MB.
_TILE_DRAWS = 2**17

# The constants of SplitMix64.
MIX_STEP, MIX_FIRST, MIX_SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

# Up to about this many ranks, repeated argmax is faster than a full sort of the row.
_FEW_RANKS = 4


def top_labels(block: FloatArray, n_ranks: int) -> IntArray:
    """Return the columns of the ``n_ranks`` largest entries of each row, ``(m, n_ranks)``.

    Ties go to the first column, as in ``argmax``.
    """
    if n_ranks == 1:
        return _top_label(block)[:, None]
    if n_ranks > _FEW_RANKS:
        # The stable sort of negative entries keeps the tie rule.
        return np.argsort(-block, axis=1, kind="stable")[:, :n_ranks]
    entries_left = np.array(block)
    labels = np.empty((len(block), n_ranks), dtype=np.intp)
    rows = np.arange(len(block))
    for rank in range(n_ranks):
        labels[:, rank] = entries_left.argmax(axis=1)
        entries_left[rows, labels[:, rank]] = -np.inf
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
        # The maximum avoids a branch. k increases, so the maximum is the last column that was
        # larger than all earlier columns. Strict comparison assigns ties to the first column.
        np.maximum(label, is_larger * np.int8(k), out=label)
        np.maximum(largest, columns[k], out=largest)
    return label.astype(np.intp)


def entries(block: FloatArray, label: IntArray) -> FloatArray:
    """Return the entries of each row in the columns ``label`` (m, J), in float64."""
    rows = np.arange(len(block))[:, None]
    return np.asarray(block[rows, label], dtype=np.float64)


def cell_sums(
    cell: IntArray, score: FloatArray, hit: IntArray, weight: FloatArray, n_cells: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum weight, weight times score and weight times outcome per cell.

    ``cell`` and ``score`` have shape (m, J), ``hit`` contains flat indices of the entries with
    outcome 1, and ``weight`` has shape (m,). Unit weights (a stride-0 array) need no products.
    """
    flat = cell.ravel()
    is_unit = weight.strides == (0,) and weight[0] == 1.0
    if is_unit:
        return (
            np.bincount(flat, minlength=n_cells).astype(np.float64),
            np.bincount(flat, score.ravel(), minlength=n_cells),
            np.bincount(flat[hit], minlength=n_cells).astype(np.float64),
        )
    entry_weight = np.repeat(weight, cell.shape[1])
    return (
        np.bincount(flat, entry_weight, minlength=n_cells),
        np.bincount(flat, entry_weight * score.ravel(), minlength=n_cells),
        np.bincount(flat[hit], entry_weight[hit], minlength=n_cells),
    )


def ordered_pairs(score: FloatArray, outcome: AnyArray) -> tuple[FloatArray, IntArray]:
    """Sort scores in [0, 1] with their outcomes (0 or 1).

    Among equal scores, outcome 0 comes first. Packing score and outcome into one number allows a
    plain sort, which is much faster than an indirect sort.
    """
    key = packed_pairs(score, outcome)
    key.sort()
    return unpacked_pairs(key)


def packed_pairs(score: FloatArray, outcome: AnyArray) -> AnyArray:
    """Pack scores in [0, 1] and outcomes (0 or 1) into integers with the order of `ordered_pairs`.

    The bit patterns of non-negative floats have the order of the floats. For floats up to one, the
    highest bits are zero, so a shift frees the lowest bit for the outcome.
    """
    key = (score + 0.0).view(np.uint64)  # adding 0.0 copies the array and turns -0.0 into 0.0
    key <<= np.uint64(1)
    key |= outcome.astype(np.uint64)
    return key


def unpacked_pairs(key: AnyArray) -> tuple[FloatArray, IntArray]:
    """Unpack the scores and outcomes of `packed_pairs`. The scores reuse the memory of ``key``."""
    hit = (key & np.uint64(1)).view(np.int64)
    key >>= np.uint64(1)
    return key.view(np.float64), hit


def power_sums(
    x: FloatArray, beta: float, n_powers: int, dtype: type[np.floating[Any]] = np.float64
) -> list[FloatArray]:
    """Sums over each row of ``exp(beta x) x^j`` for j = 0, 1, ... below ``n_powers``, (n,) each.

    Powers and exponentials are computed in ``dtype``.
    """
    x = x.astype(dtype, copy=False)
    e = np.multiply(x, dtype(beta))
    np.exp(e, out=e)
    column = ones(x.shape[1], e.dtype)
    # A product with ones is faster than a sum over short rows.
    sums = [e.dot(column)]
    for _ in range(1, n_powers):
        e *= x
        sums.append(e.dot(column))
    return sums if dtype is np.float64 else [total.astype(np.float64) for total in sums]


def column_cells(score: FloatArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Count and sum the scores in ``n_bins`` bins of equal width per column, (J, n_bins)."""
    n_columns = score.shape[1]
    cell = (np.asarray(score, dtype=np.float64) * n_bins).astype(np.intp)
    np.minimum(cell, n_bins - 1, out=cell)
    cell += np.arange(n_columns) * n_bins
    size, shape = n_columns * n_bins, (n_columns, n_bins)
    count = np.bincount(cell.ravel(), minlength=size).astype(np.float64)
    return count.reshape(shape), np.bincount(cell.ravel(), score.ravel(), size).reshape(shape)


def alias_draws(threshold: AnyArray, values: AnyArray, bits: AnyArray) -> AnyArray:
    """Draw from the n rows of alias tables with the random numbers ``bits`` (m, n).

    ``values`` (n, T, 2) is ``columns`` of `alias_tables` in `calibrant.inference`, or a function of
    the columns. All m draws of a few rows are made before the next rows, so the tables of these
    rows stay in the cache. The result has shape (m, n).
    """
    n_rows, n_slots = threshold.shape
    result = np.empty(bits.shape, dtype=values.dtype)
    for rows in row_blocks(n_rows, n_slots, elements=_TILE):
        tile = threshold[rows]
        result[:, rows] = _alias_entries(tile, values[rows], np.arange(len(tile)), bits[:, rows])
    return result


def _alias_entries(
    threshold: AnyArray, values: AnyArray, row: AnyArray, bits: AnyArray
) -> AnyArray:
    n_slots = threshold.shape[1]
    slot = (bits >> (33 - n_slots.bit_length())) + row * n_slots
    is_other = bits >= threshold.ravel().take(slot)
    slot += slot
    slot += is_other
    return values.ravel().take(slot)


ByteDraws: TypeAlias = tuple[tuple[AnyArray, AnyArray, AnyArray], AnyArray, int]
"""Tables, bytes and a key for `byte_counts`."""


def byte_counts(draws: Iterable[ByteDraws], size: int, n_cells: int) -> AnyArray:
    """Draw a cell from each row, ``size`` times, and count the draws of cells, (size, n_cells).

    The draws of each chunk of rows are passed as tables, bytes and a key. The tables are
    `byte_tables` of `calibrant.inference`, with cells in place of columns. The entry ``n_cells``
    marks a byte that does not determine the cell (an open draw). For most draws, one random byte
    (n, size) selects the cell in a table. An open draw uses the alias tables and a random number
    that depends on its position and the key of the chunk.
    """
    counts = np.zeros((size, n_cells), dtype=np.int32)
    for (cells, threshold, others), first, key in draws:
        result = np.empty(first.shape[::-1], dtype=cells.dtype)
        for rows in row_blocks(len(first), size, elements=_TILE_DRAWS):
            row = np.arange(len(cells[rows]))[:, None]
            tile = cells[rows].ravel().take(first[rows] + row * cells.shape[1])
            place = np.flatnonzero(tile == n_cells)
            bits = mixed_bits(key, place + rows.start * size)
            tile.ravel()[place] = _alias_entries(threshold[rows], others[rows], place // size, bits)
            result[:, rows] = tile.T
        for i, cell in enumerate(result):
            counts[i] += np.bincount(cell, minlength=n_cells)
    return counts


def mixed_bits(key: int, place: AnyArray) -> AnyArray:
    """Return a random 32-bit number for each place.

    The number is the upper half of the number of SplitMix64 (doi:10.1145/2714064.2660195) after
    ``place`` steps from the state ``key``. Each number can therefore be computed without the
    earlier numbers.
    """
    z = place.astype(np.uint64) * np.uint64(MIX_STEP) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_SECOND)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def fits_with_a_hit(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the slope of the edge that spans the gap of a convex minorant, for each point.

    See `calibrant.binary.venn_abers`.
    """
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    corners: list[tuple[float, float]] = []
    for point in reversed(points):
        _push(corners, point)
    _push(corners, (-1.0, -1.0))
    fits = np.empty(len(points))
    for i, point in enumerate(points):
        left, right = corners[-1], corners[-2]
        fits[i] = (right[1] - left[1]) / (right[0] - left[0])
        shifted_point = (point[0] - 1.0, point[1] - 1.0)
        if _turn(left, shifted_point, right) > 0.0 and i + 1 < len(points):
            corners.pop()
            _push(corners, shifted_point)
    return fits


def _push(corners: list[tuple[float, float]], point: tuple[float, float]) -> None:
    """Add a point on the left of a convex chain that is stored from right to left."""
    while len(corners) > 1 and _turn(point, corners[-1], corners[-2]) <= 0.0:
        corners.pop()
    corners.append(point)


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return a positive number if b lies below the line from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
