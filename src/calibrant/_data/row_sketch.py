"""A small sample of hashed rows, to detect later whether other data contain the same rows."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant._kernels.blocks import row_blocks
from calibrant._typing import FloatArray

_N_HASHES = 64
"""Number of hashed rows in a sketch. The standard error of a share of common rows is then 6%."""

_SHARED, _RECURRING = 0.2, 2.0
"""Data contain rows of a sketch if more than 20% of its hashes occur in the data. Scores with few
distinct values recur in independent data, so the limit grows by twice the share that recurs within
the data."""

Hashes = NDArray[np.uint32]


def row_hashes(scores: FloatArray) -> Hashes:
    """Return a hash of each row of scores (n, K), equal for single and double precision."""
    hashes = np.empty(len(scores), dtype=np.uint32)
    factors = _factors(scores.shape[1])
    for rows in row_blocks(*scores.shape):
        # Adding zero turns -0.0 into 0.0, so equal numbers have equal bits.
        bits = (np.asarray(scores[rows], dtype=np.float32) + np.float32(0)).view(np.uint32)
        # Products move bits only upward, so the shifts before and after mix high bits into low
        # bits.
        product = (bits ^ (bits >> np.uint32(15))) * factors
        hashes[rows] = (product ^ (product >> np.uint32(15))).sum(axis=1, dtype=np.uint32)
    return hashes


@cache
def _factors(n_columns: int) -> Hashes:
    """Return an odd factor per column.

    A product with an odd factor is invertible and loses no bits. The factors differ by column, so
    the order of columns matters.
    """
    halves = np.random.default_rng(0).integers(2**31, size=n_columns, dtype=np.uint32)
    return 2 * halves + np.uint32(1)


def sketch_rows(hashes: Hashes) -> str:
    """Return the smallest distinct hashes as text, as a random selection of distinct rows."""
    # Sorting takes a third of the time of np.unique, which would be noticeable in small fits.
    ordered = np.sort(hashes)
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    return ordered[is_new[: len(ordered)]][:_N_HASHES].astype(">u4").tobytes().hex()


def contains_rows(sketch: str, hashes: Hashes) -> bool:
    """Return whether ``hashes`` of data contain a relevant share of the hashes in a sketch."""
    sketch_hashes = np.frombuffer(bytes.fromhex(sketch), dtype=">u4")
    if not sketch_hashes.size or not len(hashes):
        return False
    share = float(np.isin(sketch_hashes, hashes).mean())
    return share > _SHARED + _RECURRING * _recurrence(hashes)


def _recurrence(hashes: Hashes) -> float:
    """Share of the distinct rows in the first half of the data that occur in the second half."""
    half = len(hashes) // 2
    first = np.unique(hashes[:half])
    return float(np.isin(first, hashes[half:]).mean()) if first.size else 0.0


def repeated_share(hashes: Hashes) -> float:
    """Return the share of rows that repeat an earlier row."""
    return 1.0 - len(np.unique(hashes)) / len(hashes) if len(hashes) else 0.0
