"""What a monitor says to people."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

from calibrant.monitoring._history import Entry
from calibrant.monitoring._results import Gap

if TYPE_CHECKING:
    from calibrant.monitoring._monitor import CalibrationMonitor


def describe(monitor: CalibrationMonitor) -> str:
    """The state of a monitor in sentences."""
    if monitor.n_rows == 0:
        return "Nothing has been seen yet."
    gaps = monitor.gaps()
    since = since_sentences(monitor, gaps[0])
    over = "Together with the rows before it" if since else "Over all rows"
    lines = [verdict(monitor), *since, evidence_sentence(monitor), gap_sentence(gaps[0], over)]
    listed = [gap for gap in gaps[1:] if gap.is_listed]
    if listed:
        named = sorted(listed, key=lambda gap: -gap.nats)[:5]
        lines.append("Look first at: " + "; ".join(map(short_gap, named)) + ".")
    lines.append(what_to_do(monitor) if monitor.alarm else hidden_sentence(gaps))
    return "\n".join(lines)


def verdict(monitor: CalibrationMonitor) -> str:
    """Alarm or not."""
    if not monitor.alarm:
        return f"No alarm after {monitor.n_rows:,} rows."
    began = onset_name(monitor.history, monitor.onset or 0)
    since = f"; it seems to have begun with {began}" if began else ""
    return f"Alarm: the probabilities are no longer what they say{since}."


def since_reset(history: list[Entry]) -> list[Entry]:
    """The updates after the last reset."""
    first = next(
        (i for i in range(len(history) - 1, 0, -1) if history[i].n_seen <= history[i - 1].n_seen), 0
    )
    return history[first:]


def onset_name(history: list[Entry], onset: int) -> str | None:
    """The update that holds the row after ``onset``, as it was called."""
    return next((one.when for one in since_reset(history) if one.n_seen > onset), None)


def since_sentences(monitor: CalibrationMonitor, first: Gap) -> list[str]:
    """The gap of the first claim since the onset, by what the history holds: an estimate, of which
    rows of other weights than one would make another.
    """
    if not monitor.alarm or first.n_rows != monitor.n_rows:
        return []
    known = since_reset(monitor.history)
    before = [one for one in known if one.n_seen <= (monitor.onset or 0)]
    rest = known[len(before) :]
    if not before or not rest:
        return []
    start, now = before[-1], rest[-1]
    rows = now.n_seen - start.n_seen
    gap = (now.mean * now.n_seen - start.mean * start.n_seen) / rows
    way = "more" if gap > 0 else "less"
    return [
        f"Since {rest[0].when}, {rows:,} rows, {first.claim}: it came true about {abs(gap):.3f} "
        f"{way} often than was said."
    ]


def what_to_do(monitor: CalibrationMonitor) -> str:
    """After an alarm."""
    began = onset_name(monitor.history, monitor.onset or 0)
    rows = f"the rows since {began}" if began else "recent rows"
    return (
        f"What to do: find out what changed, recalibrate on {rows}, and begin a new watch; until "
        "then the alarm stays."
    )


def evidence_sentence(monitor: CalibrationMonitor) -> str:
    """How strong the evidence is, and what an honest model would show."""
    rule, nats = monitor._rule, monitor.nats
    if rule.is_detector:
        chance = min(1.0, exp(min(0.0, log(monitor.n_rows) - nats)))
        seen = f"of such evidence within {monitor.n_rows:,} rows"
    else:
        chance = min(1.0, rule.lag * exp(min(0.0, -nats)))
        seen = "of ever seeing that much"
    who = (
        f"a model whose claims are right within {rule.tolerance:g}"
        if rule.tolerance
        else "an honest model"
    )
    return f"{_saved(monitor)}. For {who} the chance {seen} is {_chance(chance)}."


def _saved(monitor: CalibrationMonitor) -> str:
    """What was won, since when; of a detector that is quiet, how far it is from an alarm."""
    rule = monitor._rule
    if rule.is_detector and not monitor.alarm:
        return (
            f"The evidence against it stands at {max(monitor.nats, 0.0):.1f} nats; at "
            f"{monitor.threshold:.1f} it is an alarm"
        )
    began = onset_name(monitor.history, monitor.onset or 0) if rule.is_detector else None
    since = f" since {began}" if began else ""
    won = f"{monitor.saved:.1f} nats{since}"
    if rule.tolerance:
        return f"Bets against it have won {won}"
    return f"Recalibrating would have saved {won}"


def _chance(chance: float) -> str:
    if chance >= 0.5:
        return "no small one"
    if chance >= 0.001:
        return f"below {chance:.1%}".replace("%", " %")
    if chance >= 1e-9:
        return f"below {chance * 1e6:.2g} in a million"
    return "below one in a billion"


def gap_sentence(gap: Gap, over: str = "Over all rows") -> str:
    """Said against happened, of a claim."""
    way = "more" if gap.mean > 0 else "less"
    return (
        f"{over}, {gap.claim}: it came true {abs(gap.mean):.4f} {way} often than was said "
        f"(the true gap is between {gap.low:+.4f} and {gap.high:+.4f})."
    )


def short_gap(gap: Gap) -> str:
    """A claim or group with its gap."""
    return f"{gap.claim} {gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})"


def hidden_sentence(gaps: list[Gap]) -> str:
    """No alarm is no proof: what could still hide."""
    worst = max(gaps, key=lambda gap: gap.largest)
    first = gaps[0]
    text = (
        f"No alarm is no proof: a mean gap of {first.largest:.3f} of {first.claim} could still hide"
    )
    return (
        f"{text}, and one of {worst.largest:.3f} of {worst.claim}."
        if worst is not first
        else (f"{text}.")
    )
