"""Exact null distributions of sums and paths of outcomes that are nearly certain.

Under calibration, the outcome of a row is a Bernoulli draw with the score as its probability. If
scores are close to 0 or 1, few outcomes are unexpected, so normal and Brownian limits are
inaccurate. Draws are fast, because only unexpected outcomes are drawn. If the unexpected outcome of
a row has probability q, a Poisson process of rate -log(1 - q) has at least one event with
probability q. The processes of all rows are drawn together as one process.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.notions import Claim

FEW_COUNTS = 20.0
"""Minimum variance of the number of outcomes. If it is smaller, draws replace limit
distributions."""


class NullDraws(NamedTuple):
    """Rows in the order of their scores, and the unexpected outcomes of ``n_draws`` draws.

    ``draw`` and ``row`` index the unexpected outcomes, sorted by draw and then by score.
    """

    score: FloatArray
    weight: FloatArray
    draw: IntArray
    row: IntArray
    n_draws: int

    @classmethod
    def of_claim(cls, claim: Claim, n_draws: int) -> NullDraws:
        """Draw the outcomes of a claim with a fixed seed, so equal claims have equal draws."""
        present = np.flatnonzero(claim.weight > 0)
        order = present[np.argsort(claim.score[present], kind="stable")]
        score = claim.score[order]
        rate = -np.log1p(-np.minimum(score, 1.0 - score))
        ends, generator = np.cumsum(rate), np.random.default_rng(0)
        counts = generator.poisson(ends[-1], n_draws)
        place = np.searchsorted(ends, ends[-1] * generator.random(counts.sum()), side="right")
        # Because of round-off, the index can be past the last row.
        place = np.minimum(place, len(score) - 1)
        # A row with several events still has only one unexpected outcome, so count this row once.
        key = np.unique(np.repeat(np.arange(n_draws), counts) * len(score) + place)
        return cls(score, claim.weight[order], key // len(score), key % len(score), n_draws)

    @property
    def _expected(self) -> FloatArray:
        """Return the more likely outcome of each row."""
        return (self.score > 0.5).astype(np.float64)

    def sums(self, factor: FloatArray) -> FloatArray:
        """Sum ``weight * factor * (outcome - score)`` for each draw.

        ``factor`` is in the order of the scores.
        """
        scaled = self.weight * factor
        base = float(scaled @ (self._expected - self.score))
        change = scaled * (1.0 - 2.0 * self._expected)
        return base + np.bincount(self.draw, change[self.row], self.n_draws)

    def path_ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and highest cumulative sum per draw.

        The sum of ``weight * (outcome - score)`` is evaluated at the last row of each group of tied
        scores. The starting value 0 is included.
        """
        is_end = np.append(self.score[1:] != self.score[:-1], True)
        steps = np.cumsum(self.weight * (self._expected - self.score))
        path = np.append(0.0, steps[is_end])
        group = 1 + np.cumsum(is_end) - is_end  # position of each row on the path
        # Without unexpected outcomes, the path decreases up to the score 1/2 and then increases.
        lowest = int(np.count_nonzero(self.score[is_end] <= 0.5))
        draw, start, shift = self._segments(group)
        is_last = np.append(draw[1:] != draw[:-1], True)
        stop = np.where(is_last, len(path) - 1, np.append(start[1:], 0) - 1)
        is_used = stop >= start  # merge unexpected outcomes of tied scores into one step
        stop = np.maximum(stop, start)
        low = path[np.clip(lowest, start, stop)] + shift
        high = np.maximum(path[start], path[stop]) + shift
        first = np.flatnonzero(np.append(True, is_last[:-1]))
        return (
            np.minimum.reduceat(np.where(is_used, low, np.inf), first),
            np.maximum.reduceat(np.where(is_used, high, -np.inf), first),
        )

    def _segments(self, group: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return draw, start and shift of the segments of the path between unexpected outcomes.

        The first segment of each draw starts at 0 without a shift.
        """
        change = (self.weight * (1.0 - 2.0 * self._expected))[self.row]
        counts = np.bincount(self.draw, minlength=self.n_draws)
        total = np.append(0.0, np.cumsum(change))
        before = np.repeat(total[np.cumsum(counts) - counts], counts)
        draw = np.concatenate([np.arange(self.n_draws), self.draw])
        order = np.argsort(draw, kind="stable")
        start = np.concatenate([np.zeros(self.n_draws, dtype=np.intp), group[self.row]])
        shift = np.concatenate([np.zeros(self.n_draws), total[1:] - before])
        return draw[order], start[order], shift[order]
