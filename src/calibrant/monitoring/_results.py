"""Results of a monitor, with the history of its updates and a description in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant._validation import printable
from calibrant.monitoring._json import read_count, read_number, read_value

if TYPE_CHECKING:
    from calibrant.monitoring._alternatives import Rule
    from calibrant.monitoring._monitor import CalibrationMonitor

_MAX_LOG = 690.0
"""Largest log e-value whose exponential is reported, because exp(710) overflows a float."""

_MAX_ENTRIES, _N_RECENT = 1000, 200
"""Maximum number of entries of a history, and number of latest entries that are always kept."""

_N_STRONGEST = 3
"""Maximum number of classes or groups that a description names."""


@dataclass(frozen=True)
class Gap:
    """Mean predicted probability minus observed frequency of a binary event (claim).

    Attributes
    ----------
    claim : str
        Name of the event or of the group.
    n_rows : int
        Number of rows so far.
    mean : float
        Mean gap over these rows. The gap is positive if probabilities are too high (overconfident).
    low, high : float
        95% confidence interval. The intervals of all gaps of a monitor hold jointly and at all
        times.
    nats : float
        Evidence against the calibration of this event or group alone, as a log e-value.
    is_listed : bool
        Whether the evidence is significant after control of the false discovery rate
        (`discoveries`).

    See Also
    --------
    CalibrationMonitor.gaps : Return the gaps of a monitor.
    """

    claim: str
    n_rows: int
    mean: float
    low: float
    high: float
    nats: float
    is_listed: bool

    @property
    def largest(self) -> float:
        """Largest absolute value within the confidence interval."""
        return max(abs(self.low), abs(self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class MonitorStep:
    """The state of a monitor after an update.

    Attributes
    ----------
    when : str
        Name of the update.
    n_rows, n_seen : int
        Number of rows in this update, and in all updates since the last reset.
    nats, threshold : float
        Log e-value (natural logarithm) after the update, and the log e-value that raises an alarm.
    peak : float
        Largest log e-value at any row of the update.
    alarm : bool
        Whether the threshold has been reached since the last reset.
    gaps : tuple of Gap
        The gap of the first event, and all other gaps with significant evidence (`discoveries`).

    See Also
    --------
    CalibrationMonitor.update : Returns a step.
    """

    when: str
    n_rows: int
    n_seen: int
    nats: float
    peak: float
    threshold: float
    alarm: bool
    gaps: tuple[Gap, ...]

    @property
    def evidence(self) -> float:
        """E-value, which is ``exp(nats)``. An e-value of ``exp(threshold)`` raises an alarm."""
        return exp(min(self.nats, _MAX_LOG))

    @property
    def listed(self) -> tuple[str, ...]:
        """Names of the events and groups with significant evidence (`discoveries`)."""
        return tuple(gap.claim for gap in self.gaps if gap.is_listed)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON."""
        return {**asdict(self), "evidence": self.evidence, "listed": list(self.listed)}


class MonitorEntry(NamedTuple):
    """One update in the history of a monitor.

    Attributes
    ----------
    when : str
        Name of the update.
    n_rows, n_seen : int
        Number of rows in this update, and in all updates since the last reset.
    nats : float
        Log e-value after the update.
    mean, low, high : float
        Mean gap of the first event after the update, with its confidence interval.
    alarm : bool
        Whether the alarm was active after the update.

    See Also
    --------
    CalibrationMonitor : ``history`` is a list of these entries.
    """

    when: str
    n_rows: int
    n_seen: int
    nats: float
    mean: float
    low: float
    high: float
    alarm: bool


def add_entry(history: list[MonitorEntry], entry: MonitorEntry) -> list[MonitorEntry]:
    """Append an entry to the history. If the history is full, every second old entry is dropped."""
    longer = [*history, entry]
    if len(longer) <= _MAX_ENTRIES:
        return longer
    return longer[:-_N_RECENT:2] + longer[-_N_RECENT:]


def entries_since_reset(history: Sequence[MonitorEntry]) -> list[MonitorEntry]:
    """Return the updates after the last reset."""
    resets = [i for i in range(1, len(history)) if history[i].n_seen <= history[i - 1].n_seen]
    return list(history[resets[-1] if resets else 0 :])


def read_history(state: Mapping[str, Any]) -> list[MonitorEntry]:
    """Check and read the history of a state."""
    values = read_value(state, "history")
    if not isinstance(values, list) or len(values) > _MAX_ENTRIES:
        raise ValueError(f"'history' in the state must be a list of at most {_MAX_ENTRIES} entries")
    return [_read_entry(value) for value in values]


def _read_entry(value: Any) -> MonitorEntry:
    if not isinstance(value, list) or len(value) != len(MonitorEntry._fields):
        raise ValueError("an entry of 'history' in the state must contain eight values")
    fields = dict(zip(MonitorEntry._fields, value, strict=True))
    if not isinstance(fields["when"], str) or not isinstance(fields["alarm"], bool):
        raise ValueError("an entry of 'history' in the state must begin with its name")
    n_rows, n_seen = (read_count(fields, key) for key in ("n_rows", "n_seen"))
    nats, mean, low, high = (
        float(read_number(fields, key, -1e15, 1e15)) for key in ("nats", "mean", "low", "high")
    )
    when = printable(fields["when"])  # a line break could imitate other lines of a description
    return MonitorEntry(when, n_rows, n_seen, nats, mean, low, high, fields["alarm"])


def describe(monitor: CalibrationMonitor) -> str:
    """Describe the state of a monitor in sentences."""
    if monitor.n_rows == 0:
        return "The monitor has no rows yet."
    gaps = monitor.gaps()
    onset_sentences = onset_gap_sentences(monitor, gaps[0])
    rows = "all rows, including those before the onset" if onset_sentences else "all rows"
    sentences = [
        alarm_sentence(monitor),
        *onset_sentences,
        evidence_sentence(monitor),
        gap_sentence(gaps[0], rows),
        *strongest_sentences(monitor, gaps),
        advice_sentence(monitor) if monitor.alarm else hidden_gap_sentence(gaps),
    ]
    return "\n".join(sentences)


def alarm_sentence(monitor: CalibrationMonitor) -> str:
    """State whether there is an alarm, and its estimated onset."""
    if not monitor.alarm:
        return f"No alarm after {monitor.n_rows:,} rows."
    onset = onset_name(monitor.history, monitor.onset or 0)
    return "Alarm: the model is no longer calibrated." + (
        f" Estimated onset: {onset}." if onset else ""
    )


def onset_name(history: list[MonitorEntry], onset: int) -> str | None:
    """Return the name of the update that contains the row after ``onset``."""
    return next(
        (entry.when for entry in entries_since_reset(history) if entry.n_seen > onset), None
    )


def onset_gap_sentences(monitor: CalibrationMonitor, first: Gap) -> list[str]:
    """State the gap of the first event since the onset, estimated from the history.

    The list is empty if rows have weights, because the history has no weights.
    """
    if not monitor.alarm or first.n_rows != monitor.n_rows:
        return []
    entries = entries_since_reset(monitor.history)
    before = [entry for entry in entries if entry.n_seen <= (monitor.onset or 0)]
    after = entries[len(before) :]
    if not before or not after:
        return []
    start, now = before[-1], after[-1]
    n_rows = now.n_seen - start.n_seen
    # Entries are means over all rows up to an update. The sum since the onset is the difference of
    # two sums.
    gap = (now.mean * now.n_seen - start.mean * start.n_seen) / n_rows
    return [
        f"Since {after[0].when} ({n_rows:,} rows), predicted probabilities ({first.claim}) have "
        f"been too {'high' if gap > 0 else 'low'} by about {format_number(abs(gap))} on average."
    ]


def advice_sentence(monitor: CalibrationMonitor) -> str:
    """Recommend an action after an alarm."""
    onset = onset_name(monitor.history, monitor.onset or 0)
    rows = f"the rows since {onset}" if onset else "recent rows"
    return (
        f"Find out what changed, recalibrate on {rows}, and start a new monitor. The alarm stays "
        "active until you start a new monitor or reset this monitor."
    )


def evidence_sentence(monitor: CalibrationMonitor) -> str:
    """State the evidence, and the probability of such evidence for a calibrated model."""
    rule, nats = monitor._rule, monitor.nats
    if rule.is_detector:
        chance = min(1.0, exp(min(0.0, log(monitor.n_rows) - nats)))
        moment = f"by row {monitor.n_rows:,}"
    else:
        chance = min(1.0, rule.lag * exp(min(0.0, -nats)))
        moment = "at any time"
    return f"{_evidence_value(monitor)} {_chance_sentence(chance, moment, _condition(rule))}"


def _condition(rule: Rule) -> str:
    """State the hypothesis that a monitor tests."""
    if not rule.tolerance:
        return "the model were calibrated"
    condition = f"all errors were at most {rule.tolerance:g}"
    if rule.relative_tolerance is None:
        return condition
    share = format_percent(rule.relative_tolerance)
    return f"{condition} and at most {share} of each probability"


def _evidence_value(monitor: CalibrationMonitor) -> str:
    """State the evidence since the onset. Before an alarm, state the evidence and the threshold."""
    rule, title = monitor._rule, "Evidence against calibration (log e-value)"
    if rule.is_detector and not monitor.alarm:
        return (
            f"{title}: {format_number(max(monitor.nats, 0.0))}. The monitor raises an alarm at "
            f"{format_number(monitor.threshold)}."
        )
    onset = onset_name(monitor.history, monitor.onset or 0) if rule.is_detector else None
    value = f"{title}: {format_number(monitor.saved)}" + (f" since {onset}" if onset else "")
    if rule.tolerance:
        return f"{value}."
    # Without a tolerance, the alternatives are forecasts, so the evidence is a difference of
    # log-losses.
    return f"{value}. Recalibration would have reduced the total log-loss by this amount."


def _chance_sentence(chance: float, moment: str, condition: str) -> str:
    if chance >= 0.5:
        return f"Such evidence would not be unusual if {condition}."
    return (
        f"If {condition}, such strong evidence {moment} would have a probability {_chance(chance)}."
    )


def _chance(chance: float) -> str:
    if chance >= 0.001:
        return f"below {format_percent(chance)}"
    if chance >= 1e-9:
        return f"below {chance * 1e6:.2g} in a million"
    return "below one in a billion"


def gap_sentence(gap: Gap, rows: str = "all rows") -> str:
    """State the mean gap of an event over the rows that ``rows`` describes."""
    return (
        f"Mean gap of {gap.claim} (predicted probability minus observed frequency) over {rows}: "
        f"{_interval_text(gap)}."
    )


def _interval_text(gap: Gap) -> str:
    interval = format_interval(gap.low, gap.high, signed=True)
    return f"{format_number(gap.mean, signed=True)} (95% CI {interval})"


def strongest_sentences(monitor: CalibrationMonitor, gaps: list[Gap]) -> list[str]:
    """List the events and groups with the strongest evidence. After an alarm, list at least one."""
    # If a group contains all rows, the evidence of the group equals the evidence of the event up to
    # round-off. Rounding makes the values equal, so the event stays first.
    ranked = sorted(gaps, key=lambda gap: -round(gap.nats, 9))
    listed = [gap for gap in ranked if gap.is_listed] or (ranked[:1] if monitor.alarm else [])
    if not listed:
        return []
    strongest, *others = listed[:_N_STRONGEST]
    return [
        f"Strongest evidence: {short_gap(strongest)}.",
        *(f"Next strongest: {short_gap(gap)}." for gap in others),
        *tolerated_gap_sentences([strongest, *others], monitor._rule.tolerance),
    ]


def short_gap(gap: Gap) -> str:
    """Describe an event or group by its evidence and its gap."""
    evidence = format_number(max(gap.nats, 0.0))
    return f"{gap.claim} with log e-value {evidence} and mean gap {_interval_text(gap)}"


def tolerated_gap_sentences(gaps: list[Gap], tolerance: float) -> list[str]:
    """Return a note if a listed gap may be within the tolerance, otherwise an empty list."""
    # Evidence concerns gaps of single rows, so a mean gap within the tolerance needs a note.
    if not any(gap.is_listed and gap.low <= tolerance and gap.high >= -tolerance for gap in gaps):
        return []
    errors = "calibration errors" + (" beyond the tolerance" if tolerance else "")
    values = "values within the tolerance" if tolerance else "zero"
    return [
        f"Significant evidence indicates {errors} in some rows, even if the 95% CI of a mean gap "
        f"includes {values}."
    ]


def hidden_gap_sentence(gaps: list[Gap]) -> str:
    """State the largest gaps that the data do not exclude."""
    first, largest = gaps[0], max(gaps, key=lambda gap: gap.largest)
    text = (
        "The absence of an alarm does not prove calibration. The data do not exclude a mean gap of "
        f"{format_number(first.largest)} for {first.claim}"
    )
    if largest is first:
        return f"{text}."
    return f"{text}, and of {format_number(largest.largest)} for {largest.claim}."
