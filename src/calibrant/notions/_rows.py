"""Rows of probabilities that carry calibrated claims."""

from __future__ import annotations

import numpy as np

from calibrant._simplex import normalized
from calibrant._typing import FloatArray, IntArray


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


def scale_sets(proba: FloatArray, sets: list[IntArray], claimed: FloatArray) -> FloatArray:
    """Rows on the simplex whose columns ``sets[j]`` (m, r_j), all different, add up to
    ``claimed[:, j]``, in the proportions that they had (evenly where they had none).
    """
    shares = [
        normalized(np.take_along_axis(proba, label, axis=1)) * claimed[:, j : j + 1]
        for j, label in enumerate(sets)
    ]
    return complete_rows(proba, np.hstack(sets), np.hstack(shares))
