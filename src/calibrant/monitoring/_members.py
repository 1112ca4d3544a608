"""All members of a monitor together: what they win on rows, and what rows teach them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._simplex import EPS, log_floored, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.monitoring._evidence import Layout, make_layout
from calibrant.monitoring._experts import (
    EXPERTS,
    ExpertState,
    ExpertSums,
    learn,
    log_true,
    sum_rows,
)
from calibrant.monitoring._families import ClaimFamily, Family, TemperatureFamily
from calibrant.monitoring._rule import Rule
from calibrant.monitoring._sequences import GapSums, sum_gaps

_BLOCK_ROWS, _LEARN_ROWS, _BLOCK_ELEMENTS = 512, 256, 2**18
"""A block has so many rows at most, fewer where something is learnt, and so many factors about."""


class BlockSums(NamedTuple):
    """A block of rows: factors (n, J), sums of the gaps, what is learnt from it."""

    log_f: FloatArray
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
        sizes = [family.n_members(n_classes) for family in self.families]
        sizes += [len(self.experts)] if self.experts else []
        self.layout: Layout = make_layout(sizes, rule.lag, rule.is_detector)
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
        self, proba: FloatArray, y: IntArray, gap: FloatArray, states: tuple[ExpertState, ...]
    ) -> BlockSums:
        """What rows are to the members; ``gap`` (C,) are the mean gaps before them."""
        log_f = np.empty((len(y), self.layout.n_members))
        gaps = []
        for index, family in enumerate(self.claims):
            block = family.notion.select(proba, y)
            factors = family.log_factors_of(block, self.n_classes)
            log_f[:, self.layout.family(index)] = factors.reshape(len(y), -1)
            n_labels = family.notion.n_labels(self.n_classes)
            gaps.append(sum_gaps(block, gap[self.claim_slice(index)], n_labels))
        for index in range(len(self.claims), len(self.families)):
            factors = self.families[index].log_factors(proba, y)
            log_f[:, self.layout.family(index)] = factors.reshape(len(y), -1)
        learnt = self._learned(proba, y, states, log_f)
        return BlockSums(log_f, _joined(gaps), learnt)

    def _learned(
        self, proba: FloatArray, y: IntArray, states: tuple[ExpertState, ...], log_f: FloatArray
    ) -> tuple[ExpertSums, ...]:
        if not states:
            return ()
        u = log_floored(proba, EPS)
        deployed = true_class(u, y)
        learnt = []
        for expert, state, column in zip(
            self.experts, states, reversed(range(len(states))), strict=True
        ):
            q = state.proba(u)
            log_f[:, -1 - column] = log_true(q, y) - deployed
            learnt.append(sum_rows(expert, q, u, y))
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
