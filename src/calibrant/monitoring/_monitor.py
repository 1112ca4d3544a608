"""Monitor of a deployed model: evidence against its calibration that is valid at any time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._kernels.simplex import as_proba, normalized
from calibrant._typing import AnyArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, as_array, check_predictions, printable
from calibrant.monitoring._alternatives import Members, Rows, make_rule
from calibrant.monitoring._json import read_classes, read_metadata, read_state, read_value
from calibrant.monitoring._results import (
    Gap,
    MonitorEntry,
    MonitorStep,
    add_entry,
    describe,
    read_history,
)
from calibrant.monitoring._state import MonitorChunk, MonitorState, list_gaps
from calibrant.notions import Notion

SCHEMA = "calibrant.monitor/1"


class CalibrationMonitor:
    r"""Raise an alarm when a deployed model loses its calibration, with few false alarms.

    Call `update` whenever labels arrive, and pass the labels with their predicted probabilities.
    You can check the result after every update, because the probability of a false alarm within
    ``horizon`` rows is at most ``false_alarm`` in total. Print the monitor for a description in
    sentences. Use `to_json` and `from_json` to store the monitor between jobs.

    Parameters
    ----------
    false_alarm : float
        Largest probability of a false alarm within the horizon. In a test, the largest probability
        of a false alarm at any time.
    horizon : int
        Number of rows to which ``false_alarm`` refers.
    tolerance : float
        Largest tolerated error of a predicted probability. No real model is exactly calibrated, and
        enough rows reveal any deviation. 0 tests for exact calibration. The tolerance can hide the
        errors of rare classes, whose probabilities are below twice the tolerance. See
        ``relative_tolerance``.
    notions : sequence of str or Notion
        Types of calibration that are monitored. Without a tolerance, the monitor also tests for
        changes of temperature, and for the recalibrations that `OnlineCalibration` learns.
    classes : array-like of shape (n_classes,), optional
        Labels of the score columns. By default, the classes are the sorted labels of the first
        update.
    mode : {"detector", "test"}
        A detector starts a new test at every row, so a long period without drift does not delay the
        alarm. A test accumulates evidence from the first row.
    arl : float, optional
        Average number of calibrated rows until a false alarm of a detector. This number replaces
        ``horizon / false_alarm``.
    lag : int
        Number of rows that are predicted before the label of the first of these rows is known. The
        outcomes of these rows may depend on each other, so the monitor assigns rows to ``lag``
        separate streams in turn.
    inputs : {"proba", "logits"}
        Type of the scores that are passed to `update`.
    relative_tolerance : float, optional
        Largest tolerated error as a fraction of the predicted probability, in addition to
        ``tolerance``. With 0.5, a probability of 0.01 may be wrong by 0.005. Set this parameter if
        some classes are rare.

    Attributes
    ----------
    history : list of MonitorEntry
        One entry per update.
    metadata : dict
        User-defined values for JSON that are stored with the state, such as the name of the model.
        The monitor does not use these values. The command ``calibrant monitor`` stores its options
        here.

    See Also
    --------
    OnlineCalibration : Recalibrate as labels arrive.
    ScoreDrift : Detect changes of the scores without labels.
    calibrant.report.monitor_page : Write the state of a monitor as an HTML page.

    Notes
    -----
    Every row multiplies the evidence against calibration by a factor. If the model is calibrated,
    the evidence does not grow in the long run. In a test, the evidence exceeds :math:`1 / \alpha`
    at any time with probability at most :math:`\alpha`. A detector raises an alarm within
    ``horizon`` calibrated rows with probability at most ``false_alarm``.

    The guarantee requires that each probability was issued before its label was known. The arrival
    of labels must not depend on their values. Pass rows in the order in which their labels arrive.
    In an audit, the forecast may determine which labels are collected, but the outcome must not.

    An update takes O(J) time per row for J alternatives. Each binary event has 12 alternatives with
    a tolerance, and 6 alternatives without a tolerance. The state consists of O(J) numbers and
    contains no rows.

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
        relative_tolerance: float | None = None,
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
            relative_tolerance=relative_tolerance,
        )
        self.classes: AnyArray | None = None if classes is None else as_array(classes)
        self.history: list[MonitorEntry] = []
        self.metadata: dict[str, Any] = {}
        self._members: Members | None = None
        if self.classes is not None:
            self._begin(self.classes)

    def _begin(self, classes: AnyArray) -> None:
        self.classes = classes
        self._members = Members(self._rule, len(classes))
        self._state = MonitorState.start(self._members)

    def reset(self) -> CalibrationMonitor:
        """Discard evidence and gaps, for example after a recalibration, and return self.

        The parameters and the history are kept.
        """
        self._state = MonitorState.start(self._require_members())
        return self

    @property
    def n_rows(self) -> int:
        """Number of rows since the start or the last reset."""
        return self._state.n_rows if self._members else 0

    @property
    def alarm(self) -> bool:
        """Whether the threshold has been reached since the start or the last reset."""
        return self._members is not None and self._state.alarm_at is not None

    @property
    def nats(self) -> float:
        """Evidence against calibration, as a log e-value (natural logarithm)."""
        layout = self._require_members().layout
        return self._state.evidence.value(layout)

    @property
    def saved(self) -> float:
        """Reduction in log-loss, in nats, that recalibration would have achieved.

        With a tolerance, the value is a log e-value instead. The value is for all rows in a test,
        and for the rows since the onset in a detector.
        """
        layout = self._require_members().layout
        return self._state.evidence.saved(layout)

    @property
    def threshold(self) -> float:
        """Log e-value that raises an alarm."""
        return self._rule.threshold

    @property
    def onset(self) -> int | None:
        """Estimated number of rows before the onset of miscalibration, or None without an alarm."""
        layout = self._require_members().layout
        return self._state.evidence.onset(layout) if self.alarm else None

    def update(
        self,
        y: LabelsLike,
        p: ScoresLike,
        *,
        group: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
        when: Any = None,
    ) -> MonitorStep:
        """Add labeled rows in order of arrival.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels that arrived.
        p : array-like of shape (n, K)
            Scores that were predicted for these rows.
        group : array-like of shape (n,), optional
            Group of each row. Groups with strong evidence are named in the description.
        sample_weight : array-like of shape (n,), optional
            Weights between 0 and 1. The factor by which a row multiplies the evidence is raised to
            the power of the weight. Each weight must be known before the label of the row.
        when : optional
            Name of this update in the description and in the history, such as a date.

        Returns
        -------
        MonitorStep
        """
        rows, groups = self._check_rows(y, p, sample_weight, group)
        self._state, peak = self._state.update(rows, groups, self._require_members())
        return self._record(when, len(rows.y), peak)

    def chunk(
        self,
        y: LabelsLike,
        p: ScoresLike,
        *,
        group: LabelsLike | None = None,
        sample_weight: WeightsLike | None = None,
    ) -> MonitorChunk:
        """Compute the sums over the rows of a shard without changing this monitor.

        Add the chunks of all shards of a period, and pass the total to `absorb`. The parameters are
        the same as in `update`.
        """
        if self._rule.lag > 1:
            raise ValueError(
                f"chunk() requires lag=1, but this monitor has lag={self._rule.lag}. Pass the rows "
                "to update() instead."
            )
        rows, groups = self._check_rows(y, p, sample_weight, group)
        return self._state.chunk(rows, groups, self._require_members(), self._start_key())

    def absorb(self, chunk: MonitorChunk, *, when: Any = None) -> MonitorStep:
        """Add the sums of a period, computed by `chunk`, as one time step.

        Only the evidence at the end of the period can raise an alarm. The probability of a false
        alarm has the same bound as in `update`.
        """
        members = self._require_members()
        if chunk.start != self._start_key():
            raise ValueError(
                "The chunk was computed by another monitor, or before the last update. Call "
                "chunk() of this monitor again."
            )
        self._state, nats = self._state.absorb(chunk, members)
        return self._record(when, chunk.n_rows, nats)

    def _check_rows(
        self,
        y: LabelsLike,
        p: ScoresLike,
        sample_weight: WeightsLike | None,
        group: LabelsLike | None,
    ) -> tuple[Rows, AnyArray | None]:
        scores, codes, weight, classes = check_predictions(
            y, p, sample_weight, self.classes, inputs=self._rule.inputs, hint=LOGITS_HINT
        )
        if weight.max() > 1.0:
            raise ValueError(
                f"sample_weight must be at most 1, got {weight.max():.6g}. Divide the weights of "
                "all updates by the largest weight that can occur."
            )
        if self._members is None:
            self._begin(classes)
        # If the probabilities of a row summed to less than 1 by a rounding error, the evidence of
        # calibrated rows would grow without bound.
        proba = normalized(as_proba(scores, self._rule.inputs))
        groups = None if group is None else as_array(group)
        if groups is not None and len(groups) != len(codes):
            raise ValueError(
                f"group must have one value per row, got {len(groups)} for {len(codes)} rows"
            )
        if sample_weight is None:
            return Rows(proba, codes), groups
        positive = np.flatnonzero(weight)
        rows = Rows(proba, codes, weight).take(positive)
        return rows, None if groups is None else groups[positive]

    def _require_members(self) -> Members:
        if self._members is None:
            raise ValueError(
                "The monitor has no rows yet. Call update(y, p) first, or pass classes=[...]."
            )
        return self._members

    def _start_key(self) -> tuple[str, int]:
        return json.dumps(self._rule.to_state(), sort_keys=True), self._state.n_rows

    def _record(self, when: Any, n_rows: int, peak: float) -> MonitorStep:
        name = printable(when) if when is not None else f"update {len(self.history) + 1}"
        gaps, nats, n_seen = self.gaps(), self.nats, self.n_rows
        first = gaps[0]
        entry = MonitorEntry(
            name, n_rows, n_seen, nats, first.mean, first.low, first.high, self.alarm
        )
        self.history = add_entry(self.history, entry)
        listed_gaps = (gap for gap in gaps[1:] if gap.is_listed)
        return MonitorStep(
            name, n_rows, n_seen, nats, peak, self.threshold, self.alarm, (first, *listed_gaps)
        )

    def gaps(self) -> list[Gap]:
        """Return the mean gaps of all binary events, followed by the mean gaps of all groups.

        The confidence intervals hold jointly and at all times.
        """
        members = self._require_members()
        return list_gaps(self._state, members, self.classes)

    def __str__(self) -> str:
        return describe(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the current results as plain values for JSON."""
        has_rows = self.n_rows > 0
        return {
            "n_rows": self.n_rows,
            "alarm": self.alarm,
            "alarm_at": self._state.alarm_at if has_rows else None,
            "onset": self.onset if has_rows else None,
            "nats": self.nats if has_rows else None,
            "saved": self.saved if has_rows else None,
            "threshold": self.threshold,
            "rule": self._rule.to_state(),
            "gaps": [gap.to_dict() for gap in self.gaps()] if has_rows else [],
            "history": [entry._asdict() for entry in self.history],
            "text": describe(self),
        }

    def to_json(self) -> str:
        """Return the state as JSON text.

        The text contains O(K) numbers for K classes, and no rows.
        """
        state: dict[str, Any] = {
            "schema": SCHEMA,
            "rule": self._rule.to_state(),
            "classes": None if self.classes is None else self.classes.tolist(),
            "history": [list(entry) for entry in self.history],
            "metadata": self.metadata,
        }
        if self._members is not None:
            state |= self._state.to_state()
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> CalibrationMonitor:
        """Restore a monitor from the text of `to_json`. Other text raises ``ValueError``."""
        state = read_state(text, SCHEMA, "CalibrationMonitor")
        rule = _read_rule(state)
        try:
            monitor = cls(**rule, classes=read_classes(state))
        except TypeError as error:
            raise ValueError(f"'rule' in the state is not valid ({error})") from None
        monitor.history = read_history(state)
        monitor.metadata = read_metadata(state)
        if monitor._members is not None:
            monitor._state = MonitorState.from_state(state, monitor._members)
        return monitor


def _read_rule(state: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of a monitor."""
    rule = read_value(state, "rule")
    if not isinstance(rule, dict):
        raise ValueError(
            "'rule' in the state must be an object with the parameters of a monitor, got "
            f"{type(rule).__name__}"
        )
    _check_lag(rule.get("lag"), state)
    return rule


def _check_lag(lag: Any, state: Mapping[str, Any]) -> None:
    """Raise ValueError if a state has fewer numbers than ``lag`` streams."""
    n_numbers = len(state["log_e"]) if isinstance(state.get("log_e"), list) else 1
    if state.get("classes") is not None and isinstance(lag, int) and lag > max(n_numbers, 1):
        raise ValueError(f"'log_e' in the state has {n_numbers} numbers, but the lag is {lag}")
