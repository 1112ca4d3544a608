"""State of a monitor, which consists of sums over rows, and the gaps computed from these sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import printable
from calibrant.monitoring._alternatives import ClaimFamily, Members, Rows, Rule
from calibrant.monitoring._evidence import (
    Evidence,
    GapSums,
    discoveries,
    half_width,
    log_mixture,
    sum_gaps,
)
from calibrant.monitoring._experts import (
    ExpertState,
    ExpertSums,
    experts_from_state,
    experts_to_state,
)
from calibrant.monitoring._json import as_numbers, read_count, read_finite_numbers, read_value
from calibrant.monitoring._results import Gap

_MAX_GROUPS = 10_000
"""Maximum number of groups. Each group adds a few numbers to the state."""

_ALPHA = 0.05
"""One minus the joint level of the intervals of all gaps."""


class Group(NamedTuple):
    """Log evidence of the alternatives for the confidence of a group, and the sums of its gap."""

    log_e: FloatArray
    gaps: GapSums

    def plus(self, other: Group) -> Group:
        """Add the sums of another group of rows."""
        return Group(self.log_e + other.log_e, self.gaps + other.gaps)


Groups = dict[str, Group]


def group_family(rule: Rule) -> ClaimFamily:
    """Return the alternatives whose evidence is computed in each group."""
    return ClaimFamily("confidence", rule.tolerance, rule.relative_tolerance)


def sum_groups(before: Groups, family: ClaimFamily, rows: Rows, group: AnyArray) -> Groups:
    """Compute the sums of each group, in order of appearance.

    The residuals of these rows are predicted by the mean gap of earlier rows of the group.
    """
    names, first, index = np.unique(group.astype(str), return_index=True, return_inverse=True)
    sums = {}
    for place in np.argsort(first).tolist():
        members, name = rows.take(np.flatnonzero(index == place)), str(names[place])
        block = family.notion.select(members.proba, members.y)
        log_f = np.log(family.claim_factors(block, members.proba.shape[1])[:, 0])
        log_e = log_f.sum(axis=0) if members.weight is None else members.weight @ log_f
        mean = before[name].gaps.mean if name in before else np.zeros(1)
        sums[name] = Group(log_e, sum_gaps(block, mean, 1, members.weight))
    return sums


def add_groups(groups: Groups, new_groups: Groups) -> Groups:
    """Add the sums of new rows to the sums of their groups."""
    total = dict(groups)
    for name, group in new_groups.items():
        total[name] = group.plus(total[name]) if name in total else group
    if len(total) > _MAX_GROUPS:
        raise ValueError(
            f"Found {len(total):,} groups, but a monitor keeps at most {_MAX_GROUPS:,}. Pass a "
            "column with fewer distinct values as group."
        )
    return total


def groups_to_state(groups: Groups) -> dict[str, Any]:
    """Return the state as plain values for JSON."""
    return {
        name: {
            "log_e": as_numbers(group.log_e),
            "sums": as_numbers(np.concatenate(group.gaps.arrays)),
        }
        for name, group in groups.items()
    }


def groups_from_state(state: Mapping[str, Any], n_alternatives: int) -> Groups:
    """Check and read the output of `groups_to_state`."""
    values = read_value(state, "groups")
    if not isinstance(values, dict) or len(values) > _MAX_GROUPS:
        raise ValueError(
            f"'groups' in the state must be an object with at most {_MAX_GROUPS:,} groups"
        )
    return {name: _read_group(value, n_alternatives) for name, value in values.items()}


def _read_group(value: Any, n_alternatives: int) -> Group:
    if not isinstance(value, dict):
        raise ValueError("a group in the state must be an object with the keys 'log_e' and 'sums'")
    sums = read_finite_numbers(value, "sums", (3, 1))
    log_e = read_finite_numbers(value, "log_e", (n_alternatives,))
    return Group(log_e, GapSums(*sums))


@dataclass(frozen=True, eq=False)
class MonitorChunk:
    """Sums over the rows of one shard in one period, computed by `CalibrationMonitor.chunk`.

    Add the chunks of all shards with ``+`` and pass the total to `CalibrationMonitor.absorb`.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    log_factors : array of shape (J,)
        Sum of the log factors of each alternative.
    gaps : GapSums
        Sums for the gaps of all claims.
    expert_sums : tuple of ExpertSums
        Sums from which the experts learn.
    start : tuple
        Parameters of the monitor, and its number of rows before the chunk. Only chunks with the
        same ``start`` can be added.
    groups : dict of name to group
        Sums per group. Empty without groups.

    See Also
    --------
    CalibrationMonitor.chunk : Computes a chunk.
    CalibrationMonitor.absorb : Adds a chunk to the monitor.
    """

    n_rows: int
    log_factors: FloatArray
    gaps: GapSums
    expert_sums: tuple[ExpertSums, ...]
    start: tuple[str, int]
    groups: Groups = field(default_factory=dict)

    def __add__(self, other: MonitorChunk) -> MonitorChunk:
        if self.start != other.start:
            raise ValueError(
                "These chunks come from different monitors or from different states of a monitor. "
                "Call chunk() for all shards of a period before absorb()."
            )
        pairs = zip(self.expert_sums, other.expert_sums, strict=True)
        return MonitorChunk(
            self.n_rows + other.n_rows,
            self.log_factors + other.log_factors,
            self.gaps + other.gaps,
            tuple(a.plus(b) for a, b in pairs),
            self.start,
            add_groups(self.groups, other.groups),
        )


@dataclass(frozen=True, eq=False)
class MonitorState:
    """Everything that a monitor has accumulated since its start or last reset."""

    evidence: Evidence
    experts: tuple[ExpertState, ...]
    gaps: GapSums
    groups: Groups = field(default_factory=dict)
    n_rows: int = 0
    alarm_at: int | None = None

    @classmethod
    def start(cls, members: Members) -> MonitorState:
        evidence = Evidence.start(members.layout)
        return cls(evidence, members.start_experts(), GapSums.zeros(members.n_claims))

    def update(
        self, rows: Rows, group: AnyArray | None, members: Members
    ) -> tuple[MonitorState, float]:
        """Add rows one by one, and return the new state and the largest log evidence at any row."""
        state = replace(
            self, groups=add_groups(self.groups, self._sum_groups(rows, group, members))
        )
        peak = -np.inf
        for block in rows.blocks(members.block_rows):
            state, highest = state._update_block(block, members)
            peak = max(peak, highest)
        return state, peak

    def _update_block(self, rows: Rows, members: Members) -> tuple[MonitorState, float]:
        sums = members.evaluate_block(rows, self.gaps.mean, self.experts)
        evidence, path = self.evidence.advance(sums.factors, self.n_rows, members.layout)
        peak, alarm_at = float(path.max()), self.alarm_at
        if alarm_at is None and peak >= members.rule.threshold:
            step = int(np.flatnonzero((path >= members.rule.threshold).any(axis=1))[0])
            alarm_at = self.n_rows + min(step * members.rule.lag + 1, len(rows.y))
        experts = members.learn(self.experts, sums.expert_sums)
        n_rows = self.n_rows + len(rows.y)
        gaps = self.gaps + sums.gaps
        return MonitorState(evidence, experts, gaps, self.groups, n_rows, alarm_at), peak

    def chunk(
        self, rows: Rows, group: AnyArray | None, members: Members, start: tuple[str, int]
    ) -> MonitorChunk:
        """Compute the sums of rows without changing this state."""
        total = reduce(
            MonitorChunk.__add__,
            (self._block_chunk(block, members, start) for block in rows.blocks(members.block_rows)),
        )
        return replace(total, groups=self._sum_groups(rows, group, members))

    def _block_chunk(self, rows: Rows, members: Members, start: tuple[str, int]) -> MonitorChunk:
        sums = members.evaluate_block(rows, self.gaps.mean, self.experts)
        log_factors = np.log(sums.factors).sum(axis=0)
        return MonitorChunk(len(rows.y), log_factors, sums.gaps, sums.expert_sums, start)

    def absorb(self, chunk: MonitorChunk, members: Members) -> tuple[MonitorState, float]:
        """Add the sums of a period, and return the new state and the log evidence at its end."""
        evidence = self.evidence.absorb(
            chunk.log_factors, chunk.n_rows, self.n_rows, members.layout
        )
        n_rows, nats = self.n_rows + chunk.n_rows, evidence.value(members.layout)
        is_alarm = self.alarm_at is None and nats >= members.rule.threshold
        state = MonitorState(
            evidence,
            members.learn(self.experts, chunk.expert_sums),
            self.gaps + chunk.gaps,
            add_groups(self.groups, chunk.groups),
            n_rows,
            n_rows if is_alarm else self.alarm_at,
        )
        return state, nats

    def _sum_groups(self, rows: Rows, group: AnyArray | None, members: Members) -> Groups:
        if group is None:
            return {}
        return sum_groups(self.groups, group_family(members.rule), rows, group)

    def to_state(self) -> dict[str, Any]:
        """Return the state as plain values for JSON."""
        return {
            "n_rows": self.n_rows,
            "alarm_at": self.alarm_at,
            **self.evidence.to_state(),
            **self.gaps.to_state(),
            **experts_to_state(self.experts),
            "groups": groups_to_state(self.groups),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], members: Members) -> MonitorState:
        """Check and read the output of `to_state`."""
        is_quiet = read_value(state, "alarm_at") is None
        return cls(
            Evidence.from_state(state, members.layout),
            tuple(experts_from_state(state, len(members.experts), members.n_classes)),
            GapSums.from_state(state, members.n_claims),
            groups_from_state(state, group_family(members.rule).n_alternatives),
            read_count(state, "n_rows"),
            None if is_quiet else read_count(state, "alarm_at"),
        )


def list_gaps(state: MonitorState, members: Members, classes: Any) -> list[Gap]:
    """List the gap of every claim, then of every group, with intervals that hold jointly."""
    rule = members.rule
    # Groups have a share of alpha from the start, because a new group must not change earlier
    # intervals.
    alpha = _ALPHA / (len(members.claims) + 1)
    streams = np.full(rule.lag, 1.0) / rule.lag
    log_e_members = log_mixture(np.moveaxis(state.evidence.log_e, 0, -1), streams)
    names, log_e, sums, width = [], [], [], []
    for index, family in enumerate(members.claims):
        gaps = state.gaps[members.claim_slice(index)]
        log_e_family = log_e_members[members.layout.family(index)]
        names += _claim_names(family, len(gaps.count), classes, len(members.claims) > 1)
        log_e.append(log_mixture(log_e_family.reshape(-1, family.n_alternatives), family.prior))
        sums.append(gaps)
        width.append(_half_width(gaps, alpha / len(gaps.count), rule))
    for j, (name, group) in enumerate(state.groups.items(), start=1):
        names.append(f"group {printable(name)}")
        log_e.append(_group_evidence(group, rule))
        sums.append(group.gaps)
        # The sum of 1 / (j (j + 1)) over all j is 1, so the number of groups need not be known.
        width.append(_half_width(group.gaps, alpha / (j * (j + 1)), rule))
    total = GapSums.concatenate(sums)
    return make_gaps(names, np.concatenate(log_e), total, np.concatenate(width), rule.false_alarm)


def _claim_names(family: ClaimFamily, n_claims: int, classes: Any, has_notion: bool) -> list[str]:
    if family.name == "confidence":
        return ["confidence"]
    # A label may contain line breaks, which could imitate other lines of a description.
    names = (printable(family.notion.claim_name(claim, classes)) for claim in range(n_claims))
    return [f"{name} ({family.name})" if has_notion else name for name in names]


def _group_evidence(group: Group, rule: Rule) -> FloatArray:
    # With a lag, outcomes may depend on each other, so the product over the rows of a group is not
    # evidence.
    if rule.lag > 1:
        return np.zeros(1)
    return log_mixture(group.log_e[None], group_family(rule).prior)


def _half_width(sums: GapSums, alpha: float, rule: Rule) -> FloatArray:
    # With a lag, the residuals are not a martingale, so the interval is [-1, 1].
    return half_width(sums, alpha) if rule.lag == 1 else np.ones(len(sums.count))


def make_gaps(
    names: list[str], log_e: FloatArray, sums: GapSums, half: FloatArray, alpha: float
) -> list[Gap]:
    """Return the gaps of claims from arrays with one entry per claim.

    ``alpha`` is the bound of the false discovery rate of the gaps with ``is_listed``.
    """
    listed = set(discoveries(log_e, alpha).tolist())
    mean = -sums.mean  # the sums are outcome minus score, but a gap is score minus outcome
    return [
        Gap(
            name,
            int(sums.count[i]),
            float(mean[i]),
            max(-1.0, float(mean[i] - half[i])),
            min(1.0, float(mean[i] + half[i])),
            float(log_e[i]),
            i in listed,
        )
        for i, name in enumerate(names)
    ]
