"""Rows of probabilities that carry calibrated claims."""

from __future__ import annotations

import numpy as np

from calibrant._simplex import normalized
from calibrant._typing import AnyArray, FloatArray, IntArray


def complete_rows(proba: FloatArray, label: IntArray, claimed: FloatArray) -> FloatArray:
    """Rows on the simplex that hold ``claimed`` (m, r) at the columns ``label`` (m, r), and what is
    left in the proportions of ``proba``.

    Claims are scaled down together where they exceed one, and up where no column is left to make up
    for them.

    >>> complete_rows(np.array([[0.5, 0.3, 0.2]]), np.array([[0]]), np.array([[0.8]])).round(2)
    array([[0.8 , 0.12, 0.08]])
    """
    total = claimed.sum(axis=1, keepdims=True)
    is_whole_row = label.shape[1] == proba.shape[1]
    claimed = normalized(claimed) if is_whole_row else claimed / np.maximum(total, 1.0)
    rest = np.array(proba)
    np.put_along_axis(rest, label, 0.0, axis=1)
    mass = rest.sum(axis=1)
    rest /= np.where(mass > 0, mass, 1.0)[:, None]
    rest[mass == 0] = 1.0 / max(1, proba.shape[1] - label.shape[1])  # nothing to scale: evenly
    rest *= np.maximum(1.0 - total, 0.0)
    np.put_along_axis(rest, label, claimed, axis=1)
    return rest


_BELOW = 1 - 1e-6
"""What stays below a top class does so visibly, in float32 too."""


def keep_top(rows: FloatArray, top: IntArray, label: IntArray) -> FloatArray:
    """Completed rows whose highest entry stays at the columns ``top`` (m,), where that can be.

    Columns other than the claimed ``label`` (m, r) are held below the entry of the top one, and
    what they lose goes to those that have room, in their proportions. A row stays as it is where
    the others cannot hold it, as with an entry below 1/K at the top, and where another claim is
    higher.

    >>> row = np.array([[0.4, 0.54, 0.06]])
    >>> keep_top(row, np.array([0]), np.array([[0]])).round(2)
    array([[0.4, 0.4, 0.2]])
    """
    limit = np.take_along_axis(rows, top[:, None], axis=1) * _BELOW
    is_free = np.ones(rows.shape, dtype=bool)
    np.put_along_axis(is_free, label, False, axis=1)
    rest = np.where(is_free, rows, 0.0)
    has_room = rest.sum(axis=1) < limit[:, 0] * is_free.sum(axis=1)
    changed = np.flatnonzero((rows.argmax(axis=1) != top) & has_room)
    held = _hold_below(rest[changed], limit[changed], is_free[changed])
    out = np.array(rows)
    out[changed] = np.where(is_free[changed], held, rows[changed])
    return out


def _hold_below(rest: FloatArray, limit: FloatArray, is_free: AnyArray) -> FloatArray:
    """Rows whose free columns are at most ``limit``, with the sums that they had; there is room."""
    for _ in range(rest.shape[1]):  # each pass fills a column at least, or is the last
        excess = np.maximum(rest - limit, 0.0).sum(axis=1, keepdims=True)
        if not excess.any():
            break
        rest = np.minimum(rest, limit)
        open_part = np.where(is_free & (rest < limit), rest, 0.0)
        is_open_empty = is_free & (rest < limit) & ~open_part.any(axis=1, keepdims=True)
        rest = rest + excess * normalized(np.where(is_open_empty, 1.0, open_part))
    return rest


def scale_sets(proba: FloatArray, sets: list[IntArray], claimed: FloatArray) -> FloatArray:
    """Rows on the simplex whose columns ``sets[j]`` (m, r_j), all different, add up to
    ``claimed[:, j]``, in the proportions that they had (evenly where they had none).
    """
    shares = [
        normalized(np.take_along_axis(proba, label, axis=1)) * claimed[:, j : j + 1]
        for j, label in enumerate(sets)
    ]
    return complete_rows(proba, np.hstack(sets), np.hstack(shares))
