r"""From factors to evidence: e-processes, which test, and e-detectors, which find changes.

Both are :math:`M_t = (M_{t-1} + w_t) f_t` of a member. A test starts at 1 with :math:`w = 0`: by
Ville's inequality an honest stream ever reaches :math:`1 / \alpha` with probability at most
:math:`\alpha`. A detector starts at 0 with :math:`w = 1`, as if a bet of 1 were placed at every
row (Shiryaev and Roberts): :math:`M_t - t` is a martingale, so that an honest stream reaches A
within n rows with probability at most n / A, and after A rows or more on average.

References
----------
Ramdas et al. (2023), Game-theoretic statistics and safe anytime-valid inference, arXiv:2210.01948;
Shin, Ramdas & Rinaldo (2024), E-detectors, arXiv:2203.03532.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._typing import FloatArray

_SAFE = 300.0
"""Numbers whose logarithms are below this can be multiplied with each other and stay finite."""

_LARGE = float(np.exp(_SAFE))


class Run(NamedTuple):
    """Logarithms of the mixture at every row (T, S), of the members at the last (S, J), and of the
    products of all factors (S, J).
    """

    path: FloatArray
    last: FloatArray
    gained: FloatArray


_RUN_ROWS = 128
"""Rows that are run at once: longer runs leave the range of floating point more often."""


def run_members(
    log_start: FloatArray, log_f: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    """``M_t`` of all rows, of logarithms of factors (T, S, J), starts (S, J), entries (T, S) and
    the weights of the members (J,). S streams run side by side. O(T S J).
    """
    total = np.cumsum(log_f, axis=0)
    if not entry.any():
        log_m = total + log_start
    else:
        with np.errstate(divide="ignore"):
            placed = np.log(entry)[:, :, None] - (total - log_f)
        placed[0] = np.logaddexp(placed[0], log_start)
        log_m = np.logaddexp.accumulate(placed, axis=0) + total
    return Run(mixed(log_m, weight), log_m[-1], total[-1])


def run_factors(
    log_start: FloatArray, factors: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    """`run_members` of the factors themselves: a few multiplications each instead of logarithms,
    which are taken only where numbers would not fit.
    """
    paths, gained = [], np.zeros_like(log_start)
    for start in range(0, len(factors), _RUN_ROWS):
        rows = slice(start, start + _RUN_ROWS)
        path, log_start, more = _run_block(log_start, factors[rows], entry[rows], weight)
        paths.append(path)
        gained += more
    return Run(np.concatenate(paths), log_start, gained)


def _run_block(
    log_start: FloatArray, factors: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    with np.errstate(over="ignore", under="ignore"):
        product = np.cumprod(factors, axis=0)
    is_test = not entry.any()
    fits = product.min() > 1.0 / _LARGE and product.max() < _LARGE
    if not fits or not (is_test or log_start.max() < _SAFE):
        return run_members(log_start, np.log(factors), entry, weight)
    gained = np.log(product[-1])
    if is_test:
        top = log_start.max(axis=1)
        product *= np.exp(log_start - top[:, None])
        return Run(np.log(product @ weight) + top, log_start + gained, gained)
    placed = np.empty_like(product)
    placed[0], placed[1:] = 1.0, product[:-1]
    np.divide(entry[:, :, None], placed, out=placed)
    placed[0] += np.exp(log_start)
    wealth = np.cumsum(placed, axis=0, out=placed)
    wealth *= product
    with np.errstate(divide="ignore"):  # a stream that has not begun has nothing
        return Run(np.log(wealth @ weight), np.log(wealth[-1]), gained)


def mixed(log_m: FloatArray, weight: FloatArray) -> FloatArray:
    """Logarithm of the mean over members, (..., J) -> (...), with weights that sum to one."""
    top = log_m.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_m - top) @ weight) + top[..., 0]


def as_streams(rows: FloatArray, offset: int, n_streams: int, empty: float = 0.0) -> FloatArray:
    """Consecutive rows dealt to streams in turn, (n, J) -> (T, S, J): row i belongs to stream
    ``(offset + i) % S``; places without a row hold ``empty``.
    """
    if n_streams == 1:
        return rows[:, None]
    first = offset % n_streams
    length = -(-(first + len(rows)) // n_streams)
    out = np.full((length * n_streams, *rows.shape[1:]), empty)
    out[first : first + len(rows)] = rows
    return out.reshape(length, n_streams, *rows.shape[1:])
