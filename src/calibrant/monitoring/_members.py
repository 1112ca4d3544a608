"""All members of a monitor together: what they win on rows, and what rows teach them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calibrant._simplex import EPS, TINY, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.monitoring._evidence import Layout, make_layout
from calibrant.monitoring._experts import (
    EXPERTS,
    ExpertState,
    ExpertSums,
    as_u,
    judge,
    learn,
)
from calibrant.monitoring._families import ClaimFamily, Family, TemperatureFamily
from calibrant.monitoring._rule import Rule
from calibrant.monitoring._sequences import GapSums, sum_gaps

_BLOCK_ROWS, _LEARN_ROWS, _BLOCK_ELEMENTS = 512, 256, 2**18
"""A block has so many rows at most, fewer where something is learnt, and so many factors about."""


class Rows(NamedTuple):
    """Checked rows: probabilities that sum to one, column codes, and weights of at most 1 or None
    where all are 1.
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray | None = None

    def part(self, rows: slice | IntArray) -> Rows:
        """Some of them."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.proba[rows], self.y[rows], weight)

    def blocks(self, size: int) -> Iterator[Rows]:
        """In order, so many at a time."""
        for start in range(0, len(self.y), size):
            yield self.part(slice(start, start + size))


class BlockSums(NamedTuple):
    """A block of rows: factors (n, J), sums of the gaps, what is learnt from it."""

    factors: FloatArray
    gaps: GapSums
    learnt: tuple[ExpertSums, ...]


class Members:
    """The families of a rule, for so many classes."""

    def __init__(self, rule: Rule, n_classes: int) -> None:
        self.rule, self.n_classes = rule, n_classes
        self.claims = [ClaimFamily(notion, rule.tolerance) for notion in rule.notions]
        exact: list[Family] = [] if rule.tolerance else [TemperatureFamily()]
        self.families: list[Family] = [*self.claims, *exact]
        self.experts = EXPERTS if rule.learns else ()
        weights = [family.weight(n_classes) for family in self.families]
        if self.experts:
            weights.append(np.full(len(self.experts), 1.0 / len(self.experts)))
        self.layout: Layout = make_layout(weights, rule.lag, rule.is_detector)
        self.claim_ends = np.cumsum([family.n_claims(n_classes) for family in self.claims])

    @property
    def n_claims(self) -> int:
        return int(self.claim_ends[-1])

    @property
    def block_rows(self) -> int:
        """Rows of a block, whose learned members share their state."""
        most = _LEARN_ROWS if self.experts else _BLOCK_ROWS
        return int(np.clip(_BLOCK_ELEMENTS // self.layout.n_members, 16, most))

    def start(self) -> tuple[ExpertState, ...]:
        """Learned members that have seen nothing."""
        return tuple(ExpertState.start(self.n_classes) for _ in self.experts)

    def claim_slice(self, index: int) -> slice:
        """The claims of a notion among all claims."""
        return slice(int(self.claim_ends[index - 1]) if index else 0, int(self.claim_ends[index]))

    def of_block(
        self,
        rows: Rows,
        gap: FloatArray,
        states: tuple[ExpertState, ...],
    ) -> BlockSums:
        """What rows are to the members; ``gap`` (C,) are the mean gaps before them.

        A weight of at most 1 is the exponent of a factor, whose mean stays at most 1 (Jensen).
        """
        proba, y, weight = rows
        factors = np.empty((len(y), self.layout.n_members))
        gaps = []
        for index, family in enumerate(self.claims):
            block = family.notion.select(proba, y)
            own = family.factors_of(block, self.n_classes)
            factors[:, self.layout.family(index)] = own.reshape(len(y), -1)
            n_labels = family.notion.n_labels(self.n_classes)
            gaps.append(sum_gaps(block, gap[self.claim_slice(index)], n_labels, weight))
        for index in range(len(self.claims), len(self.families)):
            own = self.families[index].factors(proba, y)
            factors[:, self.layout.family(index)] = own.reshape(len(y), -1)
        learnt = self._learned(proba, y, states, factors)
        if weight is not None:
            factors **= weight[:, None]
        return BlockSums(factors, _joined(gaps), learnt)

    def _learned(
        self, proba: FloatArray, y: IntArray, states: tuple[ExpertState, ...], factors: FloatArray
    ) -> tuple[ExpertSums, ...]:
        """Fills the last columns with what was said before the rows were learnt from."""
        if not states:
            return ()
        u = as_u(proba)
        deployed = np.maximum(true_class(proba, y), EPS)
        learnt = []
        for column, (expert, state) in enumerate(
            zip(self.experts, states, strict=True), start=factors.shape[1] - len(states)
        ):
            said, sums = judge(expert, state, u, y)
            factors[:, column] = np.maximum(said, TINY) / deployed
            learnt.append(sums)
        return tuple(learnt)

    def learn(
        self, states: tuple[ExpertState, ...], learnt: tuple[ExpertSums, ...]
    ) -> tuple[ExpertState, ...]:
        """Learned members after rows."""
        return tuple(map(learn, self.experts, states, learnt))


def _joined(parts: list[GapSums]) -> GapSums:
    return GapSums(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("count", "residual", "variance")
        )
    )
