"""Draw from many discrete distributions by alias tables, in constant time per draw.

References
----------
Walker (1977), doi:10.1145/355744.355749.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant._typing import AnyArray, FloatArray, IntArray

UIntArray: TypeAlias = npt.NDArray[np.uint32]

N_BYTES = 256
"""Number of different values of a byte."""


def alias_tables(proba: FloatArray) -> tuple[UIntArray, AnyArray]:
    """Build Walker's alias tables for the rows of ``proba``.

    The table of a row allows drawing one of its columns in constant time. A table has ``T`` slots,
    where ``T`` is the smallest power of two that is at least the number of columns. Slot ``t`` of a
    row covers the 32-bit numbers whose leading bits are ``t``. Numbers below the threshold of the
    slot select column ``columns[i, t, 0]``. Other numbers select column ``columns[i, t, 1]``.
    Probabilities are exact up to ``T / 2**32``. Rows need not sum to one, but a sum of zero is not
    allowed.

    The function returns ``threshold`` (n, T) and ``columns`` (n, T, 2). The construction takes O(n
    T) time in T vectorized steps.
    """
    n_rows, n_columns = proba.shape
    n_slots = max(2, 1 << (n_columns - 1).bit_length())
    mass = np.zeros((n_rows, n_slots))
    mass[:, :n_columns] = proba
    mass *= (n_slots / mass.sum(axis=1))[:, None]  # scale the mean mass of a slot to one
    kept, other = _share_slots(mass)
    slot = np.arange(n_slots)
    width = 2**32 // n_slots
    # The threshold of a full last slot is 2**32, which does not fit in 32 bits.
    threshold = np.minimum(slot * width + np.rint(kept * width), 2**32 - 1).astype(np.uint32)
    columns = np.stack([np.broadcast_to(slot, other.shape), other], axis=2).astype(np.int32)
    return threshold, columns


def byte_tables(proba: FloatArray) -> tuple[IntArray, UIntArray, AnyArray]:
    """Build tables with which nearly all draws need a single random byte.

    A probability of ``m / 256`` plus a remainder reserves ``m`` bytes (``whole``) for its column.
    If a draw gives a reserved byte, the draw is finished. The remainders share the open bytes,
    which no column reserved. There are fewer open bytes than columns. If a draw gives an open byte,
    a second step uses an alias table. Probabilities are exact up to ``T / 2**32`` times the share
    of the open bytes.

    The function returns ``whole`` (n, K), and ``threshold`` and ``columns`` of `alias_tables` for
    the remainders.
    """
    mass = proba * (N_BYTES / proba.sum(axis=1, keepdims=True))
    whole = np.floor(mass)
    mass -= whole
    # Without a remainder the alias table is never used, but its row must not sum to zero.
    mass[whole.sum(axis=1) == N_BYTES, 0] = 1
    return whole.astype(np.intp), *alias_tables(mass)


def byte_values(whole: IntArray, values: AnyArray, is_open: int) -> AnyArray:
    """Return the value that each byte represents, (n, 256).

    The value is the entry of ``values`` (n, K) in the column that reserved the byte. For open
    bytes, the value is ``is_open``.
    """
    n_open = N_BYTES - whole.sum(axis=1, keepdims=True)
    extended = np.column_stack([values, np.full(len(values), is_open, dtype=values.dtype)])
    return np.repeat(extended.ravel(), np.hstack([whole, n_open]).ravel()).reshape(-1, N_BYTES)


def _share_slots(mass: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distribute masses over slots of size one, with at most two columns per slot.

    A slot contains its own column and a part of one heavier column. The sweep processes all rows at
    once. The sweep visits light columns (mass at most one) and heavy columns. While the current
    heavy column has a remaining mass above one, it fills the next light slot. Then the next heavy
    column fills the slot of the current heavy column.
    """
    n_rows, n_slots = mass.shape
    order = np.argsort(mass > 1, axis=1, kind="stable")  # light columns (mass at most one) first
    light = np.zeros(n_rows, dtype=np.intp)
    n_light = (mass <= 1).sum(axis=1)
    heavy = n_light.copy()
    kept, other = np.ones_like(mass), np.tile(np.arange(n_slots), (n_rows, 1))
    all_rows = np.arange(n_rows)
    current = order[all_rows, np.minimum(heavy, n_slots - 1)]
    remainder = mass[all_rows, current]
    for _ in range(n_slots):
        gives = (heavy < n_slots) & (remainder > 1) & (light < n_light)
        rows = np.flatnonzero(gives)
        slot = order[rows, light[rows]]
        kept[rows, slot], other[rows, slot] = mass[rows, slot], current[rows]
        remainder[rows] += mass[rows, slot] - 1
        light[rows] += 1
        rows = np.flatnonzero(~gives & (heavy < n_slots - 1))
        heavy[rows] += 1
        following = order[rows, heavy[rows]]
        kept[rows, current[rows]], other[rows, current[rows]] = (
            np.minimum(remainder[rows], 1),
            following,
        )
        remainder[rows] += mass[rows, following] - 1
        current[rows] = following
    return kept, other
