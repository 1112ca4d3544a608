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


class Run(NamedTuple):
    """Logarithms of the mixture at every row (T, S), and of the members at the last (S, J)."""

    path: FloatArray
    last: FloatArray


_RUN_ROWS = 128
"""Rows that are run at once: longer runs leave the range of floating point more often."""


def run_members(
    log_start: FloatArray, log_f: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    """``M_t`` of all rows, of factors (T, S, J), starts (S, J), entries (T, S) and the weights of
    the members (J,). S streams run side by side.

    O(T S J); in logarithms where numbers would not fit.
    """
    paths = []
    for start in range(0, len(log_f), _RUN_ROWS):
        rows = slice(start, start + _RUN_ROWS)
        path, log_start = _run_block(log_start, log_f[rows], entry[rows], weight)
        paths.append(path)
    return Run(np.concatenate(paths), log_start)


def _run_block(
    log_start: FloatArray, log_f: FloatArray, entry: FloatArray, weight: FloatArray
) -> Run:
    total = np.cumsum(log_f, axis=0)
    if not entry.any():
        total += log_start
        return Run(mixed(total, weight), total[-1])
    if max(-float(total.min()), float(total.max()), float(log_start.max())) >= _SAFE:
        log_m = _run_in_logs(log_start, total, total - log_f, entry)
        return Run(mixed(log_m, weight), log_m[-1])
    shrunk = np.exp(-total)
    placed = np.empty_like(shrunk)
    placed[0], placed[1:] = 1.0, shrunk[:-1]
    placed *= entry[:, :, None]
    placed[0] += np.exp(log_start)
    wealth = np.cumsum(placed, axis=0, out=placed)
    wealth /= shrunk
    with np.errstate(divide="ignore"):  # a stream that has not begun has nothing
        return Run(np.log(wealth @ weight), np.log(wealth[-1]))


def _run_in_logs(
    log_start: FloatArray, total: FloatArray, before: FloatArray, entry: FloatArray
) -> FloatArray:
    with np.errstate(divide="ignore"):
        placed = np.log(entry)[:, :, None] - before
    placed[0] = np.logaddexp(placed[0], log_start)
    return np.logaddexp.accumulate(placed, axis=0) + total


def mixed(log_m: FloatArray, weight: FloatArray) -> FloatArray:
    """Logarithm of the mean over members, (..., J) -> (...), with weights that sum to one."""
    top = log_m.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_m - top) @ weight) + top[..., 0]


def as_streams(rows: FloatArray, offset: int, n_streams: int) -> FloatArray:
    """Consecutive rows dealt to streams in turn, (n, J) -> (T, S, J): row i belongs to stream
    ``(offset + i) % S``; places without a row hold zeros.
    """
    if n_streams == 1:
        return rows[:, None]
    first = offset % n_streams
    length = -(-(first + len(rows)) // n_streams)
    out = np.zeros((length * n_streams, *rows.shape[1:]))
    out[first : first + len(rows)] = rows
    return out.reshape(length, n_streams, *rows.shape[1:])
