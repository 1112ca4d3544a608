"""Results of a monitor: gaps, steps, the history of updates, and their description in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant._validation import printable
from calibrant.monitoring._json import read_count, read_number, read_value

if TYPE_CHECKING:
    from calibrant.monitoring._monitor import CalibrationMonitor

_MAX_LOG = 690.0
"""The largest log evidence that is reported on the natural scale."""

_MAX_ENTRIES, _N_RECENT = 1000, 200
"""Most entries of a history, and the number of latest ones that are always kept."""


@dataclass(frozen=True)
class Gap:
    """Mean gap of a claim over all rows so far: mean predicted probability minus observed
    frequency. It is positive if probabilities are too high (overconfident).

    ``low`` and ``high`` hold at all times and for all claims together; ``nats`` is the log evidence
    of the claim alone; ``is_listed`` tells whether the false-discovery procedure selects it.
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
        """The largest absolute gap within the interval."""
        return max(abs(self.low), abs(self.high))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class MonitorStep:
    """The state of a monitor after an update.

    Attributes
    ----------
    when : str
        Name of the update.
    n_rows, n_seen : int
        Rows of the update, and of all updates.
    nats, threshold : float
        Natural logarithms of the evidence now and of the evidence that raises an alarm.
    peak : float
        The largest log evidence at any row of the update.
    alarm : bool
        Whether the threshold has been reached, now or in an earlier update since the last reset.
    gaps : tuple of Gap
        Of the first claim and of those that are listed.
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
        """The evidence on the natural scale; ``exp(threshold)`` raises an alarm."""
        return exp(min(self.nats, _MAX_LOG))

    @property
    def listed(self) -> tuple[str, ...]:
        """Names of the claims and groups that are worth a look."""
        return tuple(gap.claim for gap in self.gaps if gap.is_listed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "evidence": self.evidence, "listed": list(self.listed)}


class MonitorEntry(NamedTuple):
    """An update in the history of a monitor: its name, its rows, the rows seen then, the log
    evidence, the mean gap of the first claim with its interval, and whether there was an alarm.
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
    """The history with another entry; a full history drops every other one of its older entries."""
    longer = [*history, entry]
    if len(longer) <= _MAX_ENTRIES:
        return longer
    return longer[:-_N_RECENT:2] + longer[-_N_RECENT:]


def entries_since_reset(history: Sequence[MonitorEntry]) -> list[MonitorEntry]:
    """The updates after the last reset."""
    resets = [i for i in range(1, len(history)) if history[i].n_seen <= history[i - 1].n_seen]
    return list(history[resets[-1] if resets else 0 :])


def read_history(state: Mapping[str, Any]) -> list[MonitorEntry]:
    """Check and read the history of a state."""
    values = read_value(state, "history")
    if not isinstance(values, list) or len(values) > _MAX_ENTRIES:
        raise ValueError(f"history of the state must be a list of at most {_MAX_ENTRIES} entries")
    return [_read_entry(value) for value in values]


def _read_entry(value: Any) -> MonitorEntry:
    if not isinstance(value, list) or len(value) != len(MonitorEntry._fields):
        raise ValueError("an entry of the state's history must hold eight values")
    fields = dict(zip(MonitorEntry._fields, value, strict=True))
    if not isinstance(fields["when"], str) or not isinstance(fields["alarm"], bool):
        raise ValueError("an entry of the state's history must begin with its name")
    n_rows, n_seen = (read_count(fields, key) for key in ("n_rows", "n_seen"))
    nats, mean, low, high = (
        float(read_number(fields, key, -1e15, 1e15)) for key in ("nats", "mean", "low", "high")
    )
    when = printable(fields["when"])  # a line end would forge lines of a description
    return MonitorEntry(when, n_rows, n_seen, nats, mean, low, high, fields["alarm"])


def describe(monitor: CalibrationMonitor) -> str:
    """The state of a monitor in sentences."""
    if monitor.n_rows == 0:
        return "Nothing has been seen yet."
    gaps = monitor.gaps()
    since = onset_gap_sentences(monitor, gaps[0])
    over = "Together with the rows before it" if since else "Over all rows"
    lines = [alarm_sentence(monitor), *since, evidence_sentence(monitor)]
    lines.append(gap_sentence(gaps[0], over))
    listed = [gap for gap in gaps[1:] if gap.is_listed]
    if listed:
        strongest = sorted(listed, key=lambda gap: -gap.nats)[:5]
        lines.append("Look first at: " + "; ".join(map(short_gap, strongest)) + ".")
    lines.append(advice_sentence(monitor) if monitor.alarm else hidden_gap_sentence(gaps))
    return "\n".join(lines)


def alarm_sentence(monitor: CalibrationMonitor) -> str:
    """Whether there is an alarm, and since when."""
    if not monitor.alarm:
        return f"No alarm after {monitor.n_rows:,} rows."
    onset = onset_name(monitor.history, monitor.onset or 0)
    since = f"; it seems to have begun with {onset}" if onset else ""
    return f"Alarm: the probabilities are no longer what they say{since}."


def onset_name(history: list[MonitorEntry], onset: int) -> str | None:
    """Name of the update that holds the row after ``onset``."""
    return next(
        (entry.when for entry in entries_since_reset(history) if entry.n_seen > onset), None
    )


def onset_gap_sentences(monitor: CalibrationMonitor, first: Gap) -> list[str]:
    """The gap of the first claim since the onset, estimated from the history; none if rows have
    weights, which the history does not hold.
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
    gap = (now.mean * now.n_seen - start.mean * start.n_seen) / n_rows
    return [
        f"Since {after[0].when}, {n_rows:,} rows, {first.claim}: predicted probabilities were too "
        f"{_direction(gap)} by about {abs(gap):.3f} on average."
    ]


def advice_sentence(monitor: CalibrationMonitor) -> str:
    """What to do after an alarm."""
    onset = onset_name(monitor.history, monitor.onset or 0)
    rows = f"the rows since {onset}" if onset else "recent rows"
    return (
        f"What to do: find out what changed, recalibrate on {rows}, and begin a new watch; until "
        "then the alarm stays."
    )


def evidence_sentence(monitor: CalibrationMonitor) -> str:
    """How strong the evidence is, and how likely it is for a calibrated model."""
    rule, nats = monitor._rule, monitor.nats
    if rule.is_detector:
        chance = min(1.0, exp(min(0.0, log(monitor.n_rows) - nats)))
        event = f"of such evidence at row {monitor.n_rows:,} or before"
    else:
        chance = min(1.0, rule.lag * exp(min(0.0, -nats)))
        event = "of ever seeing that much"
    relative = rule.relative_tolerance
    both = "" if relative is None else f" and within {relative:.0%} of each probability"
    model = (
        f"a model whose claims are right within {rule.tolerance:g}{both}"
        if rule.tolerance
        else "a calibrated model"
    )
    return f"{_amount(monitor)}. For {model} the chance {event} is {_chance(chance)}."


def _amount(monitor: CalibrationMonitor) -> str:
    """The evidence and its onset; for a detector without an alarm, the distance to one."""
    rule = monitor._rule
    if rule.is_detector and not monitor.alarm:
        return (
            f"The evidence against it stands at {max(monitor.nats, 0.0):.1f} nats; at "
            f"{monitor.threshold:.1f} it is an alarm"
        )
    onset = onset_name(monitor.history, monitor.onset or 0) if rule.is_detector else None
    amount = f"{monitor.saved:.1f} nats" + (f" since {onset}" if onset else "")
    if rule.tolerance:
        return f"Bets against it have won {amount}"
    return f"Recalibrating would have saved {amount}"


def _chance(chance: float) -> str:
    if chance >= 0.5:
        return "no small one"
    if chance >= 0.001:
        return f"below {chance:.1%}".replace("%", " %")
    if chance >= 1e-9:
        return f"below {chance * 1e6:.2g} in a million"
    return "below one in a billion"


def gap_sentence(gap: Gap, over: str = "Over all rows") -> str:
    """Observed frequency against predicted probability of a claim."""
    return (
        f"{over}, {gap.claim}: predicted probabilities were too {_direction(gap.mean)} by "
        f"{abs(gap.mean):.4f} on average (predicted minus observed between {gap.low:+.4f} and "
        f"{gap.high:+.4f}, at all times)."
    )


def _direction(gap: float) -> str:
    return "high" if gap > 0 else "low"


def short_gap(gap: Gap) -> str:
    """A claim or group with its gap."""
    return f"{gap.claim} {gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def hidden_gap_sentence(gaps: list[Gap]) -> str:
    """The gaps that the data do not exclude: no alarm does not prove calibration."""
    first, largest = gaps[0], max(gaps, key=lambda gap: gap.largest)
    text = (
        f"No alarm is no proof: a mean gap of {first.largest:.3f} of {first.claim} could still hide"
    )
    if largest is first:
        return f"{text}."
    return f"{text}, and one of {largest.largest:.3f} of {largest.claim}."
