"""Fill rows of probabilities with calibrated claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._kernels.simplex import TINY, normalized
from calibrant._typing import FloatArray, IntArray


def complete_rows(proba: FloatArray, label: IntArray, claimed: FloatArray) -> FloatArray:
    """Return rows on the simplex with ``claimed`` (m, r) at the columns ``label`` (m, r).

    The other entries keep the proportions of ``proba``. If the claims of a row sum to more than
    one, the claims are scaled down. If a row has no other columns, the claims are also scaled up to
    sum to one.

    >>> complete_rows(np.array([[0.5, 0.3, 0.2]]), np.array([[0]]), np.array([[0.8]])).round(2)
    array([[0.8 , 0.12, 0.08]])
    """
    total = claimed.sum(axis=1, keepdims=True)
    # If claims determine all columns, no other column can compensate for a sum different from
    # one.
    is_whole_row = label.shape[1] == proba.shape[1]
    claimed = normalized(claimed) if is_whole_row else claimed / np.maximum(total, 1.0)
    others = np.array(proba)
    np.put_along_axis(others, label, 0.0, axis=1)
    mass = others.sum(axis=1)
    others /= np.where(mass > 0, mass, 1.0)[:, None]
    # If all other entries are zero, they have no proportions, so spread the mass evenly.
    others[mass == 0] = 1.0 / max(1, proba.shape[1] - label.shape[1])
    others *= np.maximum(1.0 - total, 0.0)
    np.put_along_axis(others, label, claimed, axis=1)
    return others


BELOW = 1 - 1e-6
"""Factor that keeps other entries below the top entry, even after rounding to float32."""


def keep_top(rows: FloatArray, top: IntArray, label: IntArray) -> FloatArray:
    """Shrink other entries of rows until the columns ``top`` have the highest entries.

    ``top`` has shape (m,). The entries outside the columns ``label`` (m, r) of the claims are
    shrunk toward their mean, until all are below the entry of the top class. The sum and order of
    these entries do not change. A row stays unchanged if this mean is not below the top entry, for
    example if the top entry is at most 1/K.

    >>> row = np.array([[0.4, 0.54, 0.06]])
    >>> keep_top(row, np.array([0]), np.array([[0]])).round(2)
    array([[0.4, 0.4, 0.2]])
    """
    n_free = rows.shape[1] - label.shape[1]
    if n_free == 0:
        return rows
    limit = np.take_along_axis(rows, top[:, None], axis=1) * BELOW
    is_free = np.ones(rows.shape)
    np.put_along_axis(is_free, label, 0.0, axis=1)
    others = np.array(rows)
    np.put_along_axis(others, label, 0.0, axis=1)
    largest = others.max(axis=1, keepdims=True)
    mean = others.sum(axis=1, keepdims=True) / n_free
    out = shrink_to_mean(others, is_free, largest, mean, limit)
    np.put_along_axis(out, label, np.take_along_axis(rows, label, axis=1), axis=1)
    return out


def shrink_to_mean(others: Any, is_free: Any, largest: Any, mean: Any, limit: Any) -> Any:
    """Shrink the free entries of rows toward their mean until the largest is below ``limit``.

    The function only uses arithmetic, comparisons and ``clip``, because its arguments are symbolic
    values during an export.
    """
    share = ((largest - limit) / (largest - mean).clip(TINY, 1.0)).clip(0.0, 1.0)
    share = share * (limit > mean)
    return others * (1.0 - share) + is_free * (mean * share)


def scale_sets(proba: FloatArray, sets: list[IntArray], claimed: FloatArray) -> FloatArray:
    """Return rows on the simplex whose columns ``sets[j]`` (m, r_j) sum to ``claimed[:, j]``.

    The sets must be disjoint. The entries of a set keep their proportions. If all entries of a set
    are zero, all members get the same value.
    """
    shares = [
        normalized(np.take_along_axis(proba, label, axis=1)) * claimed[:, j : j + 1]
        for j, label in enumerate(sets)
    ]
    return complete_rows(proba, np.hstack(sets), np.hstack(shares))


def rows_of_sums(sums: FloatArray) -> FloatArray:
    """Return rows with the running sums ``sums`` (m, K - 1). Sums that decrease are raised first.

    >>> rows_of_sums(np.array([[0.2, 0.7], [0.6, 0.5]])).round(2).tolist()
    [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4]]
    """
    rising = np.maximum.accumulate(sums, axis=1)
    return np.diff(rising, axis=1, prepend=0.0, append=1.0)
