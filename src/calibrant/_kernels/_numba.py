"""Compiled versions of functions of `_numpy`, with differences of at most 1e-12.

numba calls a library function for each exponential, which prevents vectorization. The exponential
of this module is a polynomial that the compiler can vectorize: ``exp(t) = 2^n exp(r)``, where n is
the integer nearest to ``t / log 2`` and ``|r| <= log(2) / 2``. Adding a large constant to
``t / log 2`` rounds to n, so the low bits of the sum contain n.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit

from calibrant._kernels._numpy import MIX_FIRST, MIX_SECOND, MIX_STEP, ByteDraws
from calibrant._typing import AnyArray, FloatArray

_LOG2_E = 1.4426950408889634
# log(2) as a sum of two floats. The first float has trailing zero bits, so its product with n is
# exact, and t - n log(2) keeps all digits.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
# Adding 1.5 * 2^52 to a moderate number rounds it to an integer, because floats of this size have
# unit spacing.
_ROUND = 6755399441055744.0
# Number of elements per chunk. Three buffers of this size (16 kB each) fit in the first two cache
# levels.
_CHUNK = 2048

_compiled: Any = njit(cache=True, nogil=True, error_model="numpy")


# "contract" allows fused multiply-add, which rounds once. "contract" does not allow reordering,
# which would break the rounding trick above.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})  # type: ignore[untyped-decorator]
def _exponentials(x, scale, out, near, bits, power):  # type: ignore[no-untyped-def]
    """Compute ``exp(scale x)`` for numbers x of moderate size.

    ``near``, ``bits`` and ``power`` are views of one buffer, as floats, integers and floats. The
    views are separate arguments, so the compiler can vectorize each loop.
    """
    for i in range(x.size):
        t = scale * x[i]
        v = t * _LOG2_E + _ROUND
        near[i] = v
        n = v - _ROUND
        r = (t - n * _LN2_HIGH) - n * _LN2_LOW
        # The Taylor polynomial of degree 12 by Horner's rule has a remainder below 2e-16 for |r|.
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        out[i] = p * r + 1.0
    # For 2^n, add the bias 1023 of the exponent and shift the sum into place. The shift also drops
    # the high bits of the large constant.
    for i in range(x.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(x.size):
        out[i] *= power[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=True)  # type: ignore[untyped-decorator]
def _row_sums(e, x, first, n_columns, sums):  # type: ignore[no-untyped-def]
    """Sum e, e x, e x^2 and e x^3 over each row of a chunk, for the exponentials e."""
    # Slice each row first, because numba does not vectorize loops whose index might be negative.
    for i in range(e.size // n_columns):
        odds = e[i * n_columns : (i + 1) * n_columns]
        score = x[i * n_columns : (i + 1) * n_columns]
        a = b = c = d = 0.0
        for k in range(n_columns):
            product = odds[k] * score[k]
            a += odds[k]
            b += product
            product *= score[k]
            c += product
            d += product * score[k]
        sums[0, first + i] = a
        sums[1, first + i] = b
        sums[2, first + i] = c
        sums[3, first + i] = d


@_compiled
def _power_sums(x, beta, sums):  # type: ignore[no-untyped-def]
    n_rows, n_columns = x.shape
    flat = x.reshape(-1)
    step = max(1, _CHUNK // n_columns)
    size = step * n_columns
    e, near = np.empty(size), np.empty(size)
    bits = near.view(np.int64)
    for first in range(0, n_rows, step):
        last = min(first + step, n_rows)
        part = flat[first * n_columns : last * n_columns]
        m = part.size
        _exponentials(part, beta, e[:m], near[:m], bits[:m], near[:m])
        _row_sums(e[:m], part, first, n_columns, sums)


def power_sums(x: FloatArray, beta: float, n_powers: int) -> list[FloatArray]:
    """Compute `_numpy.power_sums` with up to four powers. ``beta x`` must be moderate."""
    sums = np.empty((4, len(x)))
    _power_sums(np.ascontiguousarray(x, dtype=np.float64), beta, sums)
    return list(sums[:n_powers])


@_compiled
def _column_cells(score, n_bins, count, total):  # type: ignore[no-untyped-def]
    n_rows, n_columns = score.shape
    for i in range(n_rows):
        for j in range(n_columns):
            s = score[i, j]
            b = min(int(s * n_bins), n_bins - 1)
            count[j, b] += 1
            total[j, b] += s


def column_cells(score: FloatArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Compute `_numpy.column_cells`."""
    count = np.zeros((score.shape[1], n_bins), dtype=np.int64)
    total = np.zeros((score.shape[1], n_bins))
    _column_cells(np.asarray(score, dtype=np.float64), n_bins, count, total)
    return count.astype(np.float64), total


@_compiled
def _pushed(xs, ys, size, x, y):  # type: ignore[no-untyped-def]
    """Add a point on the left of a convex chain that is stored from right to left."""
    while size > 1 and (
        (xs[size - 1] - x) * (ys[size - 2] - y) - (ys[size - 1] - y) * (xs[size - 2] - x) <= 0.0
    ):
        size -= 1
    xs[size], ys[size] = x, y
    return size + 1


@_compiled
def _hull_fits(x, y, fits):  # type: ignore[no-untyped-def]
    n = x.size
    xs, ys, size = np.empty(n + 2), np.empty(n + 2), 0
    for i in range(n - 1, -1, -1):
        size = _pushed(xs, ys, size, x[i], y[i])
    size = _pushed(xs, ys, size, -1.0, -1.0)
    for i in range(n):
        ax, ay, cx, cy = xs[size - 1], ys[size - 1], xs[size - 2], ys[size - 2]
        fits[i] = (cy - ay) / (cx - ax)
        bx, by = x[i] - 1.0, y[i] - 1.0
        if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 0.0 and i + 1 < n:
            size = _pushed(xs, ys, size - 1, bx, by)


def fits_with_a_hit(x: FloatArray, y: FloatArray) -> FloatArray:
    """Compute `_numpy.fits_with_a_hit`."""
    fits = np.empty(x.size)
    _hull_fits(x, y, fits)
    return fits


@_compiled
def _mixed_bits(z):  # type: ignore[no-untyped-def]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_SECOND)
    return np.uint32((z ^ (z >> np.uint64(31))) >> np.uint64(32))


@_compiled
def _byte_counts(cells, threshold, others, first, key, shift, counts):  # type: ignore[no-untyped-def]
    """Count the cells that are drawn from each row.

    The outer loop is over rows, so the tables of a row and the counts of its few likely cells stay
    in the cache. A byte that does not determine the cell (an open draw) is also counted in the last
    cell, because a branch would be slower.
    """
    n_rows, n_draws = first.shape
    is_open = len(counts) - 1
    for j in range(n_rows):
        row_cells, byte = cells[j], first[j]
        for i in range(n_draws):
            cell = row_cells[byte[i]]
            counts[cell, i] += 1
            if cell == is_open:
                b = _mixed_bits(np.uint64(j * n_draws + i) * np.uint64(MIX_STEP) + key)
                slot = b >> shift
                counts[others[j, slot, np.uint8(b >= threshold[j, slot])], i] += 1


def byte_counts(draws: Iterable[ByteDraws], size: int, n_cells: int) -> AnyArray:
    """Compute `_numpy.byte_counts`."""
    counts = np.zeros((n_cells + 1, size), dtype=np.int32)
    for (cells, threshold, others), first, key in draws:
        shift = np.uint32(33 - threshold.shape[1].bit_length())
        _byte_counts(cells, threshold, others, first, np.uint64(key), shift, counts)
    return counts[:-1].T


FUNCTIONS: dict[str, Any] = {
    "byte_counts": byte_counts,
    "power_sums": power_sums,
    "column_cells": column_cells,
    "fits_with_a_hit": fits_with_a_hit,
}
"""Compiled counterparts of functions of `_numpy`, by name."""
