"""Exact boundary of a random walk: the number of errors that the most confident rows may contain.

Rows are ordered by decreasing confidence. If every row were wrong with probability ``risk``,
the number of errors among the first m rows would be a random walk of Bernoulli steps. `boundary_of`
finds numbers of errors that this walk stays above at all ranks, except with probability ``delta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import bdtr, ndtri
from scipy.stats import binom

from calibrant._typing import FloatArray, IntArray

MOST_DENSE = 4000
"""Up to this number of rows, the boundary has a separate value at every rank. With more rows, these
values take too long to compute, and values at neighboring ranks hardly differ."""

_CELLS = 500
"""For more rows, the value at rank m holds for the next m / 500 ranks. At this length the rounding
costs about 0.1% of the answers, and 100,000 rows have 3,150 cells."""

_DEPTH, _HALVINGS = 8.0, 14
"""The level of a single rank is searched between ``delta * exp(-8)`` and ``delta``, to the accuracy
of 14 halvings of the logarithm. The crossing probability then differs from ``delta`` by about 0.1%.
"""

_FIRST_GUESS = -1.7
"""Start of a search: logarithm of the level divided by ``delta`` at 1,000 rows and risk 0.05."""

_LEAST_CHANCE = 1e-300
"""Number that replaces a crossing probability of zero in a logarithm."""

_WIDTHS, _EXTRA = 9.0, 9
"""Numbers of errors above mean + 9 standard deviations + 9 have a probability below 1e-15."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Probabilities of the numbers of errors ``low``, ``low + 1``, ... at some rank."""

    low: int
    mass: FloatArray

    def advance(self, n_steps: int, risk: float) -> Counts:
        """Return the probabilities after more rows, each of which is wrong with ``risk``."""
        if not n_steps or not self.mass.size:
            return self
        first, kernel = _binomial(n_steps, risk)
        return Counts(self.low + first, np.convolve(self.mass, kernel))

    def between(self, low: int, high: int) -> Counts:
        """Return the part with at least ``low`` and at most ``high`` errors."""
        start = max(low - self.low, 0)
        return Counts(self.low + start, self.mass[start : max(high + 1 - self.low, start)])

    @property
    def total(self) -> float:
        return float(self.mass.sum())


@lru_cache(maxsize=4096)
def _binomial(n_steps: int, risk: float) -> tuple[int, FloatArray]:
    """Return the binomial distribution without numbers of errors of negligible probability."""
    if n_steps == 1:
        return 0, np.array([1.0 - risk, risk])
    spread = _WIDTHS * math.sqrt(n_steps * risk * (1 - risk)) + _EXTRA
    low = max(0, math.floor(n_steps * risk - spread))
    high = min(n_steps, math.ceil(n_steps * risk + spread))
    return low, binom.pmf(np.arange(low, high + 1), n_steps, risk)


@dataclass(frozen=True, eq=False)
class Boundary:
    """The boundary that a random walk of errors crosses with probability at most ``delta``.

    Attributes
    ----------
    ranks : array of int
        First rank of each cell. A cell is one rank if there are at most 4,000 rows.
    limits : array of int
        Number of errors allowed at the ranks of each cell, -1 if even zero errors are too many.
    """

    n_rows: int
    risk: float
    ranks: IntArray
    limits: IntArray

    @cached_property
    def allowed(self) -> IntArray:
        """Number of errors allowed among the first 1, 2, ..., n rows.

        A cell keeps the limit of its first rank. Errors only increase, so a walk below the limit
        inside the cell was also below the limit at the first rank.
        """
        return np.repeat(self.limits, np.diff(self.ranks, append=self.n_rows + 1))

    @cached_property
    def _jumps(self) -> IntArray:
        """Cells at which the limit increases. A walk can cross the boundary only at these cells."""
        return np.flatnonzero(np.diff(self.limits, prepend=-1) > 0)

    def highest(self, rank: int) -> int:
        """Return an upper limit of the number of errors among the first ``rank`` rows.

        Larger numbers of errors have a negligible probability.
        """
        mean = rank * self.risk
        return math.ceil(mean + _WIDTHS * math.sqrt(mean * (1 - self.risk))) + _EXTRA

    @cached_property
    def _highest(self) -> list[int]:
        return [self.highest(rank) for rank in self.ranks[self._jumps].tolist()]

    @cached_property
    def _before(self) -> list[Counts]:
        """Walks that have not crossed the boundary at rank 0 and just after each jump."""
        counts, rank = [Counts(0, np.ones(1))], 0
        for cell, high in zip(self._jumps, self._highest, strict=True):
            steps, rank = int(self.ranks[cell]) - rank, int(self.ranks[cell])
            moved = counts[-1].advance(steps, self.risk)
            counts.append(moved.between(int(self.limits[cell]) + 1, high))
        return counts

    @cached_property
    def _after(self) -> list[Counts]:
        """Probability of never crossing after each jump, by the number of errors at the jump."""
        later: list[Counts] = []
        for place in range(len(self._jumps) - 1, -1, -1):
            low, high = int(self.limits[self._jumps[place]]) + 1, self._highest[place]
            chances = np.ones(high + 1 - low)
            if later:
                cells = self._jumps[place : place + 2]
                chances = self._back(later[-1], int(np.diff(self.ranks[cells])[0]), low, high)
            later.append(Counts(low, chances))
        return later[::-1]

    def _back(self, later: Counts, n_steps: int, low: int, high: int) -> FloatArray:
        """Probability of never crossing with ``low`` to ``high`` errors, before a jump."""
        first, kernel = _binomial(n_steps, self.risk)
        start, stop = low + first, high + first + len(kernel)
        # The probability is zero below the boundary of the later jump, and one above its highest
        # count.
        chances = np.ones(stop - start)
        chances[: max(later.low - start, 0)] = 0.0
        overlap = later.between(start, stop - 1)
        chances[overlap.low - start : overlap.low - start + len(overlap.mass)] = overlap.mass
        return np.correlate(chances, kernel, "valid")

    @cached_property
    def not_crossed(self) -> float:
        """Probability that the walk never crosses.

        Walks with a negligible probability are treated as crossed.
        """
        return self._before[-1].total

    def start(self, cell: int) -> tuple[Counts, int]:
        """Return walks that have not crossed before a cell, and the rank of their counts."""
        place = int(np.searchsorted(self._jumps, cell))
        rank = int(self.ranks[self._jumps[place - 1]]) if place else 0
        return self._before[place], rank

    def unspent(self, free: Counts, cell: int) -> float:
        """Return the probability of crossing only in a gap that ends before a cell.

        ``free`` are walks at the first rank of the cell that did not cross before the gap.
        """
        rank, limit = int(self.ranks[cell]), int(self.limits[cell])
        outside = free.between(limit + 1, free.low + len(free.mass))
        place = int(np.searchsorted(self._jumps, cell, side="right"))
        if place == len(self._jumps):
            return outside.total - self.not_crossed
        jump, later = int(self.ranks[self._jumps[place]]), self._after[place]
        moved = outside.advance(jump - rank, self.risk)
        shared = moved.between(later.low, self._highest[place])
        overlap = later.between(shared.low, shared.low + len(shared.mass) - 1)
        return float(shared.mass @ overlap.mass) - self.not_crossed


@lru_cache(maxsize=64)
def boundary_of(n_rows: int, risk: float, delta: float) -> Boundary:
    r"""Return the boundary of equal levels with a crossing probability of at most ``delta``.

    The limit at rank m is the largest b with :math:`P(\text{Bin}(m, \text{risk}) \le b) \le a`. The
    level a is the largest level, to the accuracy of the search, at which the walk crosses the
    boundary with probability at most ``delta``.
    """
    ranks = _cells(n_rows)
    n_levels = 2**_HALVINGS

    def boundary_at(step: int) -> Boundary:
        level = math.exp(math.log(delta) + _DEPTH * (step / n_levels - 1))
        return Boundary(n_rows, risk, ranks, _limits(ranks, risk, level))

    return _largest(boundary_at, delta, n_levels)


def _largest(boundary_at: Callable[[int], Boundary], delta: float, n_levels: int) -> Boundary:
    """Return the boundary of the largest step whose crossing probability is at most ``delta``.

    The probability increases with the step, so bisection would find the same step. The logarithm of
    the probability is nearly linear in the step, so interpolation needs fewer evaluations.
    """
    low, high, best = 0, n_levels, boundary_at(0)
    step = round(n_levels * (1 + _FIRST_GUESS / _DEPTH))
    while high - low > 1:
        boundary = boundary_at(step)
        excess = math.log(max(1 - boundary.not_crossed, _LEAST_CHANCE) / delta)
        if excess <= 0:
            low, best = step, boundary
        else:
            high = step
        shift = round(-excess * n_levels / _DEPTH) or (1 if excess <= 0 else -1)
        # With few rows, the crossing probability changes by large jumps. If interpolation then
        # leaves the interval, the next step bisects the interval.
        is_inside = low < step + shift < high
        step = step + shift if is_inside else (low + high) // 2
    return best


def _cells(n_rows: int) -> IntArray:
    """Return the first ranks of the cells of a boundary."""
    if n_rows <= MOST_DENSE:
        return np.arange(1, n_rows + 1)
    ranks = [1]
    while (rank := ranks[-1] + max(1, ranks[-1] // _CELLS)) <= n_rows:
        ranks.append(rank)
    return np.array(ranks)


def _cornish_fisher(ranks: IntArray, risk: float, level: float) -> FloatArray:
    """Approximate the quantiles of binomial distributions by a Cornish-Fisher expansion."""
    z = float(ndtri(level))
    spread = np.sqrt(ranks * risk * (1 - risk))
    return ranks * risk + z * spread + (1 - 2 * risk) * (z * z - 1) / 6 - 0.5


def _limits(ranks: IntArray, risk: float, level: float) -> IntArray:
    """Return the largest b with P(Bin(rank, risk) <= b) <= level per rank, or -1 if none exists."""
    # The approximation is at most one or two errors off, which the loops correct.
    limits = np.maximum(np.floor(_cornish_fisher(ranks, risk, level)), -1).astype(np.intp)
    rows = np.arange(len(ranks))
    while rows.size:
        rows = rows[
            (limits[rows] < ranks[rows]) & (bdtr(limits[rows] + 1, ranks[rows], risk) <= level)
        ]
        limits[rows] += 1
    rows = np.flatnonzero(limits >= 0)
    while rows.size:
        rows = rows[bdtr(limits[rows], ranks[rows], risk) > level]
        limits[rows] -= 1
        rows = rows[limits[rows] >= 0]
    return limits
