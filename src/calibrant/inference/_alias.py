"""Alias tables: draws from many discrete distributions, each in constant time (Walker 1977,
doi:10.1145/355744.355749).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant._typing import AnyArray, FloatArray, IntArray

UIntArray: TypeAlias = npt.NDArray[np.uint32]

N_BYTES = 256
"""Different bytes."""


def alias_tables(proba: FloatArray) -> tuple[UIntArray, AnyArray]:
    """Walker's alias tables of the rows of ``proba``, for drawing a column of each row in constant
    time.

    A table has ``T`` slots, the least power of two that is not below the number of columns. Slot
    ``t`` of a row is hit by the 32-bit numbers that begin with ``t``; those below its threshold
    mean column ``columns[i, t, 0]``, the others ``columns[i, t, 1]``. So rows are met up to ``T /
    2**32``. They need not sum to one; a sum of zero is not allowed.

    Returns ``threshold`` (n, T) and ``columns`` (n, T, 2). O(n T) time, in T vectorised steps.
    """
    n_rows, n_columns = proba.shape
    n_slots = max(2, 1 << (n_columns - 1).bit_length())
    mass = np.zeros((n_rows, n_slots))
    mass[:, :n_columns] = proba
    mass *= (n_slots / mass.sum(axis=1))[:, None]
    kept, other = _share_slots(mass)
    slot = np.arange(n_slots)
    width = 2**32 // n_slots
    threshold = np.minimum(slot * width + np.rint(kept * width), 2**32 - 1).astype(np.uint32)
    columns = np.stack([np.broadcast_to(slot, other.shape), other], axis=2).astype(np.int32)
    return threshold, columns


def byte_tables(proba: FloatArray) -> tuple[IntArray, UIntArray, AnyArray]:
    """Tables of the rows of ``proba`` by which nearly all draws take one random byte.

    A column owns as many bytes as its probability has ``whole`` 256ths, and these decide at once.
    What is left of the columns shares the other bytes, as alias tables say that are asked then. So
    rows are met up to ``T / 2**32`` times the share of these bytes, fewer than one a column.

    Returns ``whole`` (n, K), and ``threshold`` and ``columns`` of `alias_tables` of what is left.
    """
    mass = proba * (N_BYTES / proba.sum(axis=1, keepdims=True))
    whole = np.floor(mass)
    mass -= whole
    mass[whole.sum(axis=1) == N_BYTES, 0] = 1  # any law: it is never asked
    return whole.astype(np.intp), *alias_tables(mass)


def byte_values(whole: IntArray, values: AnyArray, is_open: int) -> AnyArray:
    """What each byte means, (n, 256): the entry of ``values`` (n, K) of the column that owns it,
    or ``is_open``.
    """
    left = N_BYTES - whole.sum(axis=1, keepdims=True)
    held = np.column_stack([values, np.full(len(values), is_open, dtype=values.dtype)])
    return np.repeat(held.ravel(), np.hstack([whole, left]).ravel()).reshape(-1, N_BYTES)


def _share_slots(mass: FloatArray) -> tuple[FloatArray, IntArray]:
    """Fill slots of size one: each with its own column and, beside it, a part of one heavier
    column.

    A sweep over light columns (mass at most one) and heavy ones at once in every row: while the
    current heavy column has more than one left it fills the next light slot, then its own slot is
    filled by the next heavy column.
    """
    n_rows, n_slots = mass.shape
    order = np.argsort(mass > 1, axis=1, kind="stable")
    light = np.zeros(n_rows, dtype=np.intp)
    n_light = (mass <= 1).sum(axis=1)
    heavy = n_light.copy()
    kept, other = np.ones_like(mass), np.tile(np.arange(n_slots), (n_rows, 1))
    every = np.arange(n_rows)
    current = order[every, np.minimum(heavy, n_slots - 1)]
    left = mass[every, current]
    for _ in range(n_slots):
        gives = (heavy < n_slots) & (left > 1) & (light < n_light)
        rows = np.flatnonzero(gives)
        slot = order[rows, light[rows]]
        kept[rows, slot], other[rows, slot] = mass[rows, slot], current[rows]
        left[rows] += mass[rows, slot] - 1
        light[rows] += 1
        rows = np.flatnonzero(~gives & (heavy < n_slots - 1))
        heavy[rows] += 1
        following = order[rows, heavy[rows]]
        kept[rows, current[rows]], other[rows, current[rows]] = np.minimum(left[rows], 1), following
        left[rows] += mass[rows, following] - 1
        current[rows] = following
    return kept, other
