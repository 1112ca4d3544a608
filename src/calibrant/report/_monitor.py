"""HTML page of a monitor, in the style of the report and without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

import calibrant
from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant.monitoring import CalibrationMonitor, MonitorEntry
from calibrant.monitoring._results import entries_since_reset
from calibrant.report._html import read_page

_WIDTH, _HEIGHT, _EDGE = 900.0, 220.0, 46.0
"""Size and margin of a chart, in units of its viewBox."""

_LINE = 16.0
"""Height of a line of text in a chart. Labels that are nearer would overlap."""

_MAX_ROWS = 200
"""Most rows of the table of classes and groups, which may be thousands."""


def monitor_page(monitor: CalibrationMonitor, name: str = "deployed model") -> str:
    """Describe a monitor in a self-contained HTML page.

    Parameters
    ----------
    monitor : CalibrationMonitor
    name : str
        Title of the page.

    Returns
    -------
    str
        HTML. All names are escaped, and the page loads nothing from elsewhere.

    See Also
    --------
    calibrant.monitoring.CalibrationMonitor : The monitor.
    """
    lines = str(monitor).split("\n")
    false_alarm = monitor.to_dict()["rule"]["false_alarm"]
    parts = {
        "name": escape(name),
        "facts": escape(_facts(monitor)),
        "status": "bad" if monitor.alarm else "good",
        "headline": escape(lines[0]),
        "sentences": "".join(f"<p>{escape(line)}</p>" for line in lines[1:]),
        "evidence": _evidence_chart(monitor.history, monitor.threshold),
        "first": escape(f" of {monitor.gaps()[0].claim}" if monitor.n_rows else ""),
        "gap": _gap_chart(monitor.history),
        "claims": _claim_table(monitor),
        "updates": _update_table(monitor.history),
        "marked": escape(_marked(monitor, false_alarm)),
        "version": escape(calibrant.__version__),
        "css": read_page("static", "report.css"),
    }
    return Template(read_page("templates", "monitor.html")).substitute(parts)


def _facts(monitor: CalibrationMonitor) -> str:
    n_updates = len(monitor.history)
    return f"{monitor.n_rows:,} labeled rows, {n_updates:,} update{'' if n_updates == 1 else 's'}"


def _marked(monitor: CalibrationMonitor, false_alarm: float) -> str:
    if not any(gap.is_listed for gap in (monitor.gaps() if monitor.n_rows else [])):
        return 'No gap is marked "check", because no single gap is significant.'
    return (
        'The mark "check" means significant evidence against calibration. The expected share of '
        f"false marks is at most {format_percent(false_alarm)}."
    )


class _Scale:
    """Coordinates of values in a chart."""

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
        """A vertical line at a point, with its label at the top."""
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
    drawn = scale.across(threshold, "limit", format_number(threshold))
    drawn += scale.across(0.0, "zero", "0" if is_apart else "")
    highest = max([*values, threshold])
    if scale.height(threshold) - scale.height(highest) > _LINE:
        drawn += scale.text(highest, format_number(highest))
    drawn += _alarm_mark(history, scale)
    return _chart(
        history,
        f'{drawn}<polyline class="line" points="{path}"/>',
        "Evidence against calibration over time",
    )


def _alarm_mark(history: Sequence[MonitorEntry], scale: _Scale) -> str:
    """A line at the first alarm since the last reset."""
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
            drawn += scale.text(end, f"{end:+z.2f}")
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
    gaps = sorted(gaps, key=lambda gap: -gap.nats)[:_MAX_ROWS]
    rows = [
        (
            gap.claim,
            "check" if gap.is_listed else "",
            f"{gap.n_rows:,}",
            format_number(gap.mean, signed=True),
            format_interval(gap.low, gap.high, signed=True),
            format_number(gap.nats),
        )
        for gap in gaps
    ]
    return _table(("Name", "Mark", "Rows", "Mean gap", "95% CI", "Evidence"), rows)


def _update_table(history: Sequence[MonitorEntry]) -> str:
    rows = [
        (
            entry.when,
            f"{entry.n_rows:,}",
            format_number(entry.nats),
            format_number(entry.mean, signed=True),
            "alarm" if entry.alarm else "",
        )
        for entry in reversed(history)
    ]
    return _table(("Update", "Rows", "Evidence", "Mean gap so far", "Status"), rows)
