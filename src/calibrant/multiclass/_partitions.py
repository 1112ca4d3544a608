"""Partitions of the probability simplex into numbered bins (Gupta & Ramdas 2022, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._kernels.simplex import row_sum
from calibrant._typing import FloatArray, IntArray

# Scores in units of 1 / resolution are rounded to this many decimals, to undo round-off.
_GRID_DECIMALS = 9

# Number of rows that a cut inspects first. A cut that needs more rows quadruples this number.
_FIRST_LOOK = 256

# Largest number of directions for which the order of the rows is stored, which takes 16 bytes per
# row and direction. With more directions, each cut sorts the remaining rows.
_MOST_ORDERS = 1024


class Partition(Protocol):
    """A partition of the simplex into the bins 0 to ``n_bins - 1``."""

    @property
    def n_bins(self) -> int: ...

    def assign(self, u: FloatArray) -> IntArray:
        """Return the bin of each row."""


@dataclass(frozen=True)
class SierpinskiPartition:
    """Recursive partition of the simplex into its corners (eq. 19).

    A row descends to the corner of the class with more than half of the probability, at most
    ``depth`` times. Node 0 is the simplex, and node ``v L + l + 1`` is corner l of node v. The bin
    of a row is the node where the descent ends.
    """

    n_classes: int
    depth: int

    @property
    def n_bins(self) -> int:
        return sum(self.n_classes**level for level in range(self.depth + 1))

    def assign(self, u: FloatArray) -> IntArray:
        """Return the bin of each row."""
        node = np.zeros(len(u), dtype=np.intp)
        rows, t = np.arange(len(u)), np.array(u)
        for _ in range(self.depth):
            top = t.argmax(axis=1)
            descends = t[np.arange(len(t)), top] > 0.5
            rows, t, top = rows[descends], 2.0 * t[descends], top[descends]
            t[np.arange(len(t)), top] -= 1.0
            node[rows] = node[rows] * self.n_classes + top + 1
        return node


@dataclass(frozen=True)
class GridPartition:
    r"""A grid of width :math:`1/K`, where K is the ``resolution`` (eq. 20 and 21).

    Bins are tuples k with :math:`\max(L, K+1) \le \sum_l k_l \le K + L - 1`, in lexicographic
    order. The bin of tuple k contains the vectors s with :math:`k_l - 1 \le K s_l \le k_l`. A
    vector on an edge is in the first such bin.
    """

    n_classes: int
    resolution: int

    @property
    def n_bins(self) -> int:
        return self._n_tuples(self.n_classes, 0)

    def assign(self, u: FloatArray) -> IntArray:
        """Return the bin of each row."""
        return self._rank(self.tuples(u))

    def tuples(self, u: FloatArray) -> IntArray:
        """Return the tuple k of each row, shape (m, L)."""
        scaled = np.round(u / row_sum(u)[:, None] * self.resolution, _GRID_DECIMALS)
        k = np.maximum(np.ceil(scaled), 1.0).astype(np.intp)
        # The sum of k is too small only if all K s_l are positive integers. In this case, increase
        # the last entry.
        k[:, -1] += k.sum(axis=1) == self.resolution
        return k

    def _rank(self, k: IntArray) -> IntArray:
        """Return the number of tuples that come before each row of ``k``."""
        n_classes = self.n_classes
        before = np.zeros((n_classes, self.resolution + 1), dtype=np.int64)
        for place in range(n_classes):
            counts = [
                self._n_tuples(n_classes - 1 - place, spent) for spent in range(self.resolution)
            ]
            before[place, 1:] = np.cumsum(counts)
        spent = np.cumsum(k - 1, axis=1)
        rank = before[0, spent[:, 0]]
        for place in range(1, n_classes):
            rank += before[place, spent[:, place]] - before[place, spent[:, place - 1]]
        return rank.astype(np.intp, copy=False)

    def _n_tuples(self, length: int, spent: int) -> int:
        """Count the ways to complete a tuple with ``length`` more entries k - 1 >= 0.

        ``spent`` is the sum of the earlier entries. Only tuples with an allowed sum of all entries
        are counted.
        """
        most = self.resolution - 1 - spent
        least = max(0, self.resolution + 1 - self.n_classes) - spent
        up_to_most = comb(most + length, length) if most >= 0 else 0
        return up_to_most - (comb(least - 1 + length, length) if least > 0 else 0)


@dataclass(frozen=True, eq=False)
class ProjectionPartition:
    r"""A partition by thresholds of linear projections.

    Bin b contains the vectors with :math:`s \cdot q_b < T_b` that are in no earlier bin. The last
    bin contains all other vectors.
    """

    directions: FloatArray
    thresholds: FloatArray

    @property
    def n_bins(self) -> int:
        return len(self.thresholds) + 1

    def assign(self, u: FloatArray) -> IntArray:
        """Return the first bin that contains each row, by a binary search per direction."""
        place = np.full(len(u), self.n_bins - 1, dtype=np.intp)
        rows = np.arange(len(u))
        for direction, highest, bins in self._searches:
            first = np.searchsorted(highest, _along(u, direction, rows), side="right")
            np.minimum(place, bins[first], out=place)
        return place

    @cached_property
    def _searches(self) -> list[tuple[FloatArray, FloatArray, IntArray]]:
        """Directions with their thresholds in increasing order, and the bins of the thresholds."""
        return [
            (
                self.directions[bins[0]],
                # If an earlier threshold of the same direction is higher, the bin is empty.
                np.maximum.accumulate(self.thresholds[bins]),
                np.append(bins, self.n_bins - 1),
            )
            for bins in _by_direction(self.directions)
        ]


def fit_projections(
    u: FloatArray, weight: FloatArray, directions: FloatArray
) -> tuple[ProjectionPartition, FloatArray]:
    r"""Cut off :math:`\lfloor (n+1)/B \rfloor` rows in each direction (algorithm 10).

    The last row of each cut defines its threshold. The function also returns the weight of each row
    in the estimates. The row that defines a threshold has weight zero. If several rows tie at the
    threshold, their total weight decreases by their mean weight. If weights are not integers, bins
    have equal total weights.
    """
    remaining_weight = np.array(weight, dtype=np.float64)
    total, n_bins = remaining_weight.sum(), len(directions) + 1
    is_whole = bool((remaining_weight == np.floor(remaining_weight)).all())
    size = max(1.0, (total + 1) // n_bins) if is_whole else total / n_bins
    reached = size - ROUND_OFF * total
    cut = _Cuts(u, remaining_weight, directions)
    thresholds = np.array([cut.threshold(b, reached) for b in range(len(directions))])
    return ProjectionPartition(directions, thresholds), remaining_weight


class _Cuts:
    """The remaining rows, sorted along each direction.

    Cuts in the same direction share one sorted order, so each row is read only once per direction.
    Each cut updates the weights ``kept``.
    """

    def __init__(self, u: FloatArray, kept: FloatArray, directions: FloatArray) -> None:
        self.kept = kept
        self.is_left = kept > 0
        self.n_left = int(self.is_left.sum())
        rows = np.flatnonzero(self.is_left)
        groups = _by_direction(directions)
        self.group = np.empty(len(directions), dtype=np.intp)
        self.is_alone = len(groups) > _MOST_ORDERS
        self.u, self.directions, self.start = u, directions, [0] * len(groups)
        self.orders: list[tuple[IntArray, FloatArray]] = []
        for g, bins in enumerate(groups):
            self.group[bins] = g
            if not self.is_alone:
                projected = _along(u, directions[bins[0]], rows)
                order = np.argsort(projected)
                self.orders.append((rows[order], projected[order]))

    def threshold(self, b: int, reached: float) -> float:
        """Return the threshold of cut ``b``.

        The rows up to the threshold have the total weight ``reached``.

        Returns -inf if no row remains.
        """
        if not self.n_left:
            return -np.inf
        rows, projected = self._first(b, reached)
        weight = np.cumsum(self.kept[rows])
        place = min(int(np.searchsorted(weight, reached)), rows.size - 1)
        threshold = float(projected[place])
        tied_rows = rows[projected == threshold]
        self.kept[tied_rows] *= 1.0 - 1.0 / tied_rows.size
        used_rows = np.append(rows[projected < threshold], tied_rows[self.kept[tied_rows] <= 0])
        self.is_left[used_rows] = False
        self.n_left -= used_rows.size
        return threshold

    def _first(self, b: int, reached: float) -> tuple[IntArray, FloatArray]:
        """Return the first remaining rows along a direction, with all ties at the threshold."""
        if self.is_alone:
            rows = np.flatnonzero(self.is_left)
            projected = _along(self.u, self.directions[b], rows)
            order = np.argsort(projected)
            return rows[order], projected[order]
        g = self.group[b]
        order, projected = self.orders[g]
        begin, length = self.start[g], _FIRST_LOOK
        while True:
            end = min(begin + length, order.size)
            places = np.flatnonzero(self.is_left[order[begin:end]]) + begin
            if end == order.size or (
                places.size
                and self.kept[order[places]].sum() > reached
                and self._passes(order, projected, places, reached)
            ):
                break
            length *= 4
        self.start[g] = int(places[0]) if places.size else end
        return order[places], projected[places]

    def _passes(
        self, order: IntArray, projected: FloatArray, places: IntArray, reached: float
    ) -> bool:
        """Return whether the inspected rows include all ties of the threshold."""
        place = int(np.searchsorted(np.cumsum(self.kept[order[places]]), reached))
        return place < places.size and projected[places[place]] < projected[places[-1]]


def _by_direction(directions: FloatArray) -> list[IntArray]:
    """Group bins with equal directions, and keep the order of the bins."""
    if not len(directions):
        return []
    group = np.unique(directions, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _along(u: FloatArray, direction: FloatArray, rows: IntArray) -> FloatArray:
    """Return ``u[rows] @ direction``, summed column by column.

    The sum of a row does not depend on other rows. A BLAS product may round a row differently if
    the block of rows changes.
    """
    out = np.zeros(rows.size)
    for column in np.flatnonzero(direction):
        out += direction[column] * u[rows, column]
    return out
