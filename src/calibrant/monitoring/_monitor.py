"""The monitor: evidence against a deployed forecast, which may be looked at as often as one
likes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from calibrant._simplex import as_proba, normalized
from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, as_array, check_predictions
from calibrant.monitoring._chunk import MonitorChunk
from calibrant.monitoring._discoveries import discoveries
from calibrant.monitoring._evidence import Evidence
from calibrant.monitoring._families import ClaimFamily
from calibrant.monitoring._groups import (
    Group,
    Groups,
    add_groups,
    groups_of_state,
    groups_to_state,
    sum_groups,
)
from calibrant.monitoring._history import Entry, history_of_state, recorded
from calibrant.monitoring._members import Members, Rows
from calibrant.monitoring._online import read_expert_states
from calibrant.monitoring._results import Gap, MonitorStep
from calibrant.monitoring._rule import make_rule
from calibrant.monitoring._sentences import describe
from calibrant.monitoring._sequences import GapSums, half_width
from calibrant.monitoring._state import (
    as_numbers,
    entry,
    finite_numbers,
    number,
    read_classes,
    read_state,
)
from calibrant.monitoring._wealth import mixed
from calibrant.notions import Notion

SCHEMA = "calibrant.monitor/1"

_LEVEL = 0.05
"""One minus the level of the intervals of all gaps together."""


class CalibrationMonitor:
    r"""An alarm for a forecast that loses its calibration, with a bound on false alarms.

    Bets against the forecast are placed on every row. If the forecast is honest, no bet wins in
    the long run, and how much they have won is evidence: in a test (``mode="test"``) the chance
    that it ever exceeds :math:`1 / \alpha` is at most :math:`\alpha`; a detector, the default,
    places new bets at every row, so that a long quiet time does not delay the alarm, and rings on
    honest rows within ``horizon`` of them with probability at most ``false_alarm``.

    Parameters
    ----------
    false_alarm : float
        Probability of a false alarm within the horizon (test: ever).
    horizon : int
        Rows for which that shall hold.
    tolerance : float
        Gaps of claims up to this are no reason for an alarm. No real model is exactly calibrated,
        and with enough rows any deviation is found: 0 asks for that.
    notions : sequence of str or Notion
        Which claims are watched. Without a tolerance, changes of temperature and learned
        recalibrations (`OnlineCalibration`) are bet on as well.
    classes : labels of the columns, optional
    mode : {"detector", "test"}
    arl : float, optional
        The average number of honest rows to a false alarm, instead of ``horizon / false_alarm``.
    lag : int
        How many rows are predicted before the label of the first is known, where outcomes of
        overlapping horizons depend on each other: so many streams are kept apart.
    inputs : {"proba", "logits"}

    Notes
    -----
    Valid as long as each probability was given before its label and labels do not arrive depending
    on what they say. Rows enter in the order in which labels arrive. Labels that are revealed
    depending on the forecast (audits) are fine; depending on the outcome, they are not.

    A row costs O(J) for J members (12 a claim with a tolerance, 6 without); the state is O(J)
    numbers and holds no rows.

    Examples
    --------
    >>> monitor = CalibrationMonitor(horizon=10_000)
    >>> step = monitor.update([0, 1] * 500, [[0.9, 0.1]] * 1000, when="week 1")
    >>> step.alarm
    True
    """

    def __init__(
        self,
        false_alarm: float = 0.05,
        horizon: int = 1_000_000,
        tolerance: float = 0.02,
        notions: Sequence[str | Notion] = ("confidence", "class-wise"),
        classes: LabelsLike | None = None,
        *,
        mode: str = "detector",
        arl: float | None = None,
        lag: int = 1,
        inputs: str = "proba",
    ) -> None:
        self._rule = make_rule(
            false_alarm=false_alarm,
            horizon=horizon,
            tolerance=tolerance,
            notions=notions,
            mode=mode,
            arl=arl,
            lag=lag,
            inputs=inputs,
        )
        self.classes: AnyArray | None = None if classes is None else as_array(classes)
        self.history: list[Entry] = []
        self._members: Members | None = None
        if self.classes is not None:
            self._begin(len(self.classes))

    def _begin(self, n_classes: int) -> None:
        self._members = Members(self._rule, n_classes)
        self._gaps = GapSums.zeros(self._members.n_claims)
        self._groups: Groups = {}
        self._clear()

    def _clear(self) -> None:
        members = self._ready()
        self._evidence = Evidence.start(members.layout)
        self._states = members.start()
        self._n_rows = 0
        self._alarm_at: int | None = None

    def reset(self) -> CalibrationMonitor:
        """Begin again after an alarm was dealt with: no evidence, no gaps, the same rule; the
        history stays. Returns self.
        """
        members = self._ready()
        self._gaps, self._groups = GapSums.zeros(members.n_claims), {}
        self._clear()
        return self

    @property
    def n_rows(self) -> int:
        """Rows seen since the start or the last reset."""
        return self._n_rows if self._members else 0

    @property
    def alarm(self) -> bool:
        """Whether the threshold has been reached since the start or the last reset."""
        return self._members is not None and self._alarm_at is not None

    @property
    def nats(self) -> float:
        """Natural logarithm of the evidence."""
        return self._evidence.value(self._ready().layout)

    @property
    def saved(self) -> float:
        """Nats of log-loss that recalibrating would have saved (with a tolerance: that bets against
        the forecast have won): since the start in a test, since the onset in a detector.
        """
        return self._evidence.saved(self._ready().layout)

    @property
    def threshold(self) -> float:
        """Natural logarithm of the evidence that is an alarm."""
        return self._rule.threshold

    def update(
        self,
        y: LabelsLike,
        p: ScoresLike,
        *,
        group: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
        when: Any = None,
    ) -> MonitorStep:
        """Rows whose labels have arrived, in order, with what had been said of them.

        ``group`` names a group of each row, for the list of groups that are worth a look;
        ``sample_weight``, between 0 and 1 and known before the labels, is how much of its bets a
        row counts; ``when`` is what this update is called in sentences.
        """
        rows, named = self._checked(y, p, sample_weight, group)
        self._groups = add_groups(self._groups, self._group_sums(rows, named))
        peak = max(map(self._update_block, rows.blocks(self._ready().block_rows)))
        return self._record(when, len(rows.y), peak)

    def _update_block(self, rows: Rows) -> float:
        members, y = self._ready(), rows.y
        sums = members.of_block(rows, self._gaps.mean, self._states)
        self._evidence, path = self._evidence.advance(sums.factors, self._n_rows, members.layout)
        peak = float(path.max())
        if self._alarm_at is None and peak >= self.threshold:
            first = int(np.flatnonzero((path >= self.threshold).any(axis=1))[0])
            self._alarm_at = self._n_rows + min(first * self._rule.lag + 1, len(y))
        self._gaps = self._gaps + sums.gaps
        self._states = members.learn(self._states, sums.learnt)
        self._n_rows += len(y)
        return peak

    def chunk(
        self,
        y: LabelsLike,
        p: ScoresLike,
        *,
        group: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
    ) -> MonitorChunk:
        """Rows of a shard as sums, with the state of this monitor: add those of all shards of a
        period, then `absorb` them. The monitor itself does not change.
        """
        if self._rule.lag > 1:
            raise ValueError("chunks are for lag=1: their rows are not kept apart")
        rows, named = self._checked(y, p, sample_weight, group)
        parts = map(self._block_chunk, rows.blocks(self._ready().block_rows))
        total = reduce(MonitorChunk.__add__, parts)
        return replace(total, groups=self._group_sums(rows, named))

    def _block_chunk(self, rows: Rows) -> MonitorChunk:
        sums = self._ready().of_block(rows, self._gaps.mean, self._states)
        won = np.log(sums.factors).sum(axis=0)
        return MonitorChunk(len(rows.y), won, sums.gaps, sums.learnt, self._start_mark())

    def _group_sums(self, rows: Rows, group: AnyArray | None) -> Groups:
        if group is None:
            return {}
        return sum_groups(self._groups, self._group_family, rows, group)

    @property
    def _group_family(self) -> ClaimFamily:
        return ClaimFamily("confidence", self._rule.tolerance)

    def absorb(self, chunk: MonitorChunk, *, when: Any = None) -> MonitorStep:
        """The sums of a period, which is one step of time.

        The evidence within the period is not seen, only that at its end; the bound on false alarms
        holds as it does row by row.
        """
        members = self._ready()
        if chunk.start != self._start_mark():
            raise ValueError("the chunk was made by another monitor, or before the last update")
        self._evidence = self._evidence.absorb(
            chunk.log_factors, chunk.n_rows, self._n_rows, members.layout
        )
        self._gaps = self._gaps + chunk.gaps
        self._groups = add_groups(self._groups, chunk.groups)
        self._states = members.learn(self._states, chunk.learnt)
        self._n_rows += chunk.n_rows
        nats = self.nats
        if self._alarm_at is None and nats >= self.threshold:
            self._alarm_at = self._n_rows
        return self._record(when, chunk.n_rows, nats)

    def _checked(
        self,
        y: LabelsLike,
        p: ScoresLike,
        sample_weight: WeightsLike | None,
        group: LabelsLike | None,
    ) -> tuple[Rows, AnyArray | None]:
        scores, codes, weight, names = check_predictions(
            y, p, sample_weight, self.classes, inputs=self._rule.inputs, hint=LOGITS_HINT
        )
        if weight.max() > 1.0:
            raise ValueError(
                "sample_weight must be at most 1, because a bet of more than its stake proves "
                "nothing: divide by the largest weight that can occur, the same at every update"
            )
        if self._members is None:
            self.classes = names
            self._begin(len(names))
        # Rows that miss one by rounding would let bets on the rest win for ever.
        proba = normalized(as_proba(scores, self._rule.inputs))
        rows, named = Rows(proba, codes), None if group is None else as_array(group)
        if named is not None and len(named) != len(codes):
            raise ValueError(f"group must name one group a row: got {len(named)} for {len(codes)}")
        if sample_weight is None:
            return rows, named
        counted = np.flatnonzero(weight)
        kept = Rows(proba, codes, weight).part(counted)
        return kept, None if named is None else named[counted]

    def _ready(self) -> Members:
        if self._members is None:
            raise ValueError("nothing has been seen yet: call update(y, p) first, or give classes=")
        return self._members

    def _start_mark(self) -> tuple[str, int]:
        return json.dumps(self._rule.to_state(), sort_keys=True), self._n_rows

    def _record(self, when: Any, n_rows: int, peak: float) -> MonitorStep:
        said = str(when) if when is not None else f"update {len(self.history) + 1}"
        gaps = self.gaps()
        shown = tuple(gap for i, gap in enumerate(gaps) if i == 0 or gap.is_listed)
        nats = self.nats
        first = gaps[0]
        now = Entry(said, n_rows, self._n_rows, nats, first.mean, first.low, first.high, self.alarm)
        self.history = recorded(self.history, now)
        return MonitorStep(
            said, n_rows, self._n_rows, nats, peak, self.threshold, self.alarm, shown
        )

    def gaps(self) -> list[Gap]:
        """The mean gap of every claim, then of every group, with intervals that hold at all times
        and together.
        """
        members = self._ready()
        names, log_e, sums, width = [], [], [], []
        wealth = mixed(
            np.moveaxis(self._evidence.wealth, 0, -1), np.full(self._rule.lag, 1.0) / self._rule.lag
        )
        parts = len(members.claims) + bool(self._groups)
        for index, family in enumerate(members.claims):
            claims = members.claim_slice(index)
            own = GapSums(*(getattr(self._gaps, name)[claims] for name in _SUMS))
            bets = wealth[members.layout.family(index)].reshape(-1, family.n_bets)
            names += [self._claim_name(family, claim) for claim in range(len(own.count))]
            log_e.append(mixed(bets, family.prior))
            sums.append(own)
            width.append(self._width(own, _LEVEL / parts / len(own.count)))
        for j, (name, group) in enumerate(self._groups.items(), start=1):
            names.append(f"group {name}")
            log_e.append(self._group_evidence(group))
            sums.append(group.gaps)
            # However many groups are still to come, these levels add up to that of all.
            width.append(self._width(group.gaps, _LEVEL / parts / (j * (j + 1))))
        return _as_gaps(names, np.concatenate(log_e), sums, width, self._rule.false_alarm)

    def _group_evidence(self, group: Group) -> FloatArray:
        # Where rows overlap, those of a group are not kept apart: their product is no evidence.
        if self._rule.lag > 1:
            return np.zeros(1)
        return mixed(group.wealth[None], self._group_family.prior)

    def _width(self, sums: GapSums, alpha: float) -> FloatArray:
        # Where rows overlap nothing is claimed: their residuals are not a martingale's.
        return half_width(sums, alpha) if self._rule.lag == 1 else np.ones(len(sums.count))

    def _claim_name(self, family: ClaimFamily, claim: int) -> str:
        classes: Any = self.classes
        name = family.notion.claim_name(claim, classes)
        return name if len(self._rule.notions) == 1 else f"{name} ({family.name})"

    @property
    def onset(self) -> int | None:
        """Rows that had been seen when what rings began, an estimate; None without an alarm."""
        return self._evidence.onset(self._ready().layout) if self.alarm else None

    def __str__(self) -> str:
        return describe(self)

    def to_dict(self) -> dict[str, Any]:
        """What is known now, as plain values."""
        known = self._members is not None and self._n_rows > 0
        return {
            "n_rows": self.n_rows,
            "alarm": self.alarm,
            "alarm_at": self._alarm_at if known else None,
            "onset": self.onset if known else None,
            "nats": self.nats if known else None,
            "saved": self.saved if known else None,
            "threshold": self.threshold,
            "rule": self._rule.to_state(),
            "gaps": [gap.to_dict() for gap in self.gaps()] if known else [],
            "history": [entry._asdict() for entry in self.history],
            "text": describe(self),
        }

    def to_json(self) -> str:
        """The state as JSON text: O(K) numbers, no rows."""
        state: dict[str, Any] = {
            "schema": SCHEMA,
            "rule": self._rule.to_state(),
            "classes": None if self.classes is None else self.classes.tolist(),
            "history": [list(entry) for entry in self.history],
        }
        if self._members is not None:
            state |= {
                "n_rows": self._n_rows,
                "alarm_at": self._alarm_at,
                **self._evidence.to_state(),
                **{name: as_numbers(getattr(self._gaps, name)) for name in _SUMS},
                "theta": as_numbers(np.array([s.theta for s in self._states])),
                "information": as_numbers(np.array([s.information for s in self._states])),
                "groups": groups_to_state(self._groups),
            }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> CalibrationMonitor:
        """The monitor that `to_json` wrote; anything else is a ``ValueError``."""
        state = read_state(text, SCHEMA, "CalibrationMonitor")
        rule = entry(state, "rule")
        if not isinstance(rule, dict):
            raise ValueError("rule of the state must hold the parameters of a monitor")
        _check_streams(rule.get("lag"), state)
        try:
            monitor = cls(**rule, classes=read_classes(state))
        except TypeError as error:
            raise ValueError(f"rule of the state: {error}") from None
        monitor.history = history_of_state(state)
        if monitor._members is not None:
            monitor._restore(state)
        return monitor

    def _restore(self, state: Mapping[str, Any]) -> None:
        members = self._ready()
        self._n_rows = int(number(state, "n_rows", 0, 1e15))
        at = entry(state, "alarm_at")
        self._alarm_at = None if at is None else int(number(state, "alarm_at", 0, 1e15))
        self._evidence = Evidence.from_state(state, members.layout)
        shape = (members.n_claims,)
        self._gaps = GapSums(
            *(
                finite_numbers(state, name, shape, low=-1e15 if name == "residual" else 0.0)
                for name in _SUMS
            )
        )
        states = read_expert_states(state, len(members.experts), members.n_classes)
        self._states = tuple(states)
        self._groups = groups_of_state(state, self._group_family.n_bets)


_SUMS = ("count", "residual", "variance")


def _check_streams(lag: Any, state: Mapping[str, Any]) -> None:
    """Raise where a state asks for more streams than it holds numbers for: they take memory."""
    held = len(state["wealth"]) if isinstance(state.get("wealth"), list) else 1
    if state.get("classes") is not None and isinstance(lag, int) and lag > max(held, 1):
        raise ValueError(f"the state has {held} numbers of wealth for a lag of {lag}")


def _as_gaps(
    names: list[str],
    log_e: FloatArray,
    sums: list[GapSums],
    width: list[FloatArray],
    alpha: float,
) -> list[Gap]:
    listed = set(discoveries(log_e, alpha).tolist())
    count, mean = (
        np.concatenate([getattr(part, name) for part in sums]) for name in ("count", "mean")
    )
    half = np.concatenate(width)
    return [
        Gap(
            name,
            int(count[i]),
            float(mean[i]),
            max(-1.0, float(mean[i] - half[i])),
            min(1.0, float(mean[i] + half[i])),
            float(log_e[i]),
            i in listed,
        )
        for i, name in enumerate(names)
    ]
