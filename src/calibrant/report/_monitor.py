"""The page of a monitor: what a manager reads, in the style of the report, without any script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

import calibrant
from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.monitoring._results import entries_since_reset
from calibrant.report._html import read_page

_WIDTH, _HEIGHT, _EDGE = 900.0, 220.0, 46.0
"""Of a chart, in its own units."""

_LINE = 16.0
"""Height of a line of text in a chart: names that are nearer would cover each other."""

_MOST_CLAIMS = 200


def monitor_page(monitor: CalibrationMonitor, name: str = "deployed model") -> str:
    """One self-contained page about a monitor: HTML, everything escaped, nothing loaded."""
    lines = str(monitor).split("\n")
    rule = monitor.to_dict()["rule"]
    parts = {
        "name": escape(name),
        "facts": escape(f"{monitor.n_rows:,} rows with labels, {len(monitor.history):,} updates"),
        "judgement": "bad" if monitor.alarm else "good",
        "headline": escape(lines[0]),
        "sentences": "".join(f"<p>{escape(line)}</p>" for line in lines[1:]),
        "evidence": _evidence_chart(monitor.history, monitor.threshold),
        "gap": _gap_chart(monitor.history),
        "claims": _claim_table(monitor),
        "updates": _update_table(monitor.history),
        "marked": escape(_marked(monitor, rule["false_alarm"])),
        "version": escape(calibrant.__version__),
        "css": read_page("static", "report.css"),
    }
    return Template(read_page("templates", "monitor.html")).substitute(parts)


def _marked(monitor: CalibrationMonitor, rate: float) -> str:
    if not any(gap.is_listed for gap in (monitor.gaps() if monitor.n_rows else [])):
        return "None of them stands out by itself."
    share = f"{rate:.0%}".replace("%", " %")
    return f"Those marked are worth a look; on average at most {share} of marks are due to chance."


class _Scale:
    """From numbers to places of a chart."""

    def __init__(self, n_points: int, low: float, high: float) -> None:
        self.step = (_WIDTH - 2 * _EDGE) / max(1, n_points - 1)
        self.low, self.size = low, max(high - low, 1e-12)

    def point(self, index: int, value: float) -> str:
        return f"{_EDGE + index * self.step:.1f},{self.height(value):.1f}"

    def height(self, value: float) -> float:
        return _HEIGHT - 24 - (value - self.low) / self.size * (_HEIGHT - 40)

    def across(self, value: float, kind: str, text: str) -> str:
        y = self.height(value)
        line = (
            f'<line class="{kind}" x1="{_EDGE}" x2="{_WIDTH - _EDGE}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        return line + self.text(value, text)

    def text(self, value: float, text: str) -> str:
        return f'<text x="0" y="{self.height(value) + 4:.1f}">{escape(text)}</text>'

    def upright(self, index: int, text: str) -> str:
        """A line across all values, at a point, with its name at the top."""
        x = _EDGE + index * self.step
        is_late = x > _WIDTH / 2
        return (
            f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="16" y2="{_HEIGHT - 24}"/>'
            f'<text x="{x - 6 if is_late else x + 6:.1f}" y="12" '
            f'text-anchor="{"end" if is_late else "start"}">{escape(text)}</text>'
        )


def _evidence_chart(history: Sequence[MonitorEntry], threshold: float) -> str:
    values = [entry.nats for entry in history]
    scale = _Scale(len(values), min([*values, 0.0]), max([*values, threshold]))
    path = " ".join(scale.point(i, value) for i, value in enumerate(values))
    is_apart = abs(scale.height(threshold) - scale.height(0.0)) > _LINE
    drawn = scale.across(threshold, "limit", f"{threshold:.1f}")
    drawn += scale.across(0.0, "zero", "0" if is_apart else "")
    highest = max([*values, threshold])
    if scale.height(threshold) - scale.height(highest) > _LINE:
        drawn += scale.text(highest, f"{highest:.0f}")
    drawn += _alarm_mark(history, scale)
    return _chart(history, f'{drawn}<polyline class="line" points="{path}"/>', "Evidence over time")


def _alarm_mark(history: Sequence[MonitorEntry], scale: _Scale) -> str:
    """Where it first rang since the last reset."""
    now = entries_since_reset(history)
    alarms = [i for i, entry in enumerate(now, start=len(history) - len(now)) if entry.alarm]
    return scale.upright(alarms[0], f"alarm: {history[alarms[0]].when}") if alarms else ""


def _gap_chart(history: Sequence[MonitorEntry]) -> str:
    ends = [value for entry in history for value in (entry.low, entry.high)]
    low, high = min([*ends, 0.0]), max([*ends, 0.0])
    scale = _Scale(len(history), low, high)
    upper = [scale.point(i, entry.high) for i, entry in enumerate(history)]
    lower = [scale.point(i, entry.low) for i, entry in enumerate(history)]
    band = " ".join([*upper, *reversed(lower)])
    path = " ".join(scale.point(i, entry.mean) for i, entry in enumerate(history))
    drawn = (
        f'<polygon class="band" points="{band}"/>{scale.across(0.0, "zero", "0")}'
        f'<polyline class="line" points="{path}"/>{_alarm_mark(history, scale)}'
    )
    for end in (low, high):
        if abs(scale.height(end) - scale.height(0.0)) > _LINE:
            drawn += scale.text(end, f"{end:+.2f}")
    return _chart(history, drawn, "Mean gap over time")


def _chart(history: Sequence[MonitorEntry], drawn: str, title: str) -> str:
    named = {0: "start", len(history) - 1: "end"} if len(history) > 1 else {0: "start"}
    texts = "".join(
        f'<text x="{_EDGE if anchor == "start" else _WIDTH - _EDGE}" y="{_HEIGHT - 4}" '
        f'text-anchor="{anchor}">{escape(history[place].when)}</text>'
        for place, anchor in named.items()
        if history
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" aria-label="{escape(title)}">'
        f"{drawn}{texts}</svg>"
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _claim_table(monitor: CalibrationMonitor) -> str:
    gaps = monitor.gaps() if monitor.n_rows else []
    gaps = sorted(gaps, key=lambda gap: -gap.nats)[:_MOST_CLAIMS]
    rows = [
        (
            gap.claim,
            "look" if gap.is_listed else "",
            f"{gap.n_rows:,}",
            f"{gap.mean:+z.4f}",
            f"{gap.low:+z.4f} to {gap.high:+z.4f}",
            f"{gap.nats:.1f}",
        )
        for gap in gaps
    ]
    return _table(("claim", "", "rows", "mean gap", "interval", "evidence, nats"), rows)


def _update_table(history: Sequence[MonitorEntry]) -> str:
    rows = [
        (
            *(entry.when, f"{entry.n_rows:,}", f"{entry.nats:.1f}", f"{entry.mean:+z.4f}"),
            "alarm" if entry.alarm else "",
        )
        for entry in reversed(history)
    ]
    return _table(("update", "rows", "evidence, nats", "mean gap so far", ""), rows)
