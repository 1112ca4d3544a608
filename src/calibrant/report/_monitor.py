"""HTML page of a monitor, in the style of the report and without scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import calibrant
from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant.monitoring import CalibrationMonitor, Gap, MonitorEntry
from calibrant.monitoring.periods import has_weights
from calibrant.report._markup import Markup, as_markup, fill_page, joined, tag
from calibrant.report._monitor_charts import evidence_charts, gap_charts

_MAX_ROWS = 200
"""Maximum number of rows of the table of classes and groups."""

_DATE = re.compile(r"(\d{4}-\d\d-\d\d)")


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
        The HTML text. All names are escaped, and the page loads no other files.

    See Also
    --------
    calibrant.monitoring.CalibrationMonitor : The monitor.
    """
    lines = str(monitor).split("\n")
    rule = monitor.to_dict()["rule"]
    return fill_page(
        "monitor.html",
        name=name,
        facts=_facts(monitor),
        status="bad" if monitor.alarm else "good",
        headline=_unbroken_dates(lines[0]),
        sentences=joined(tag("p", _unbroken_dates(line)) for line in lines[1:]),
        threshold=format_number(monitor.threshold),
        evidence=evidence_charts(monitor.history, monitor.threshold),
        first=f" of {monitor.gaps()[0].claim}" if monitor.n_rows else "",
        gap_hint=_gap_hint(monitor, rule["tolerance"]),
        gap=gap_charts(monitor, rule["tolerance"]),
        claims=_claim_table(monitor),
        updates=_update_table(monitor.history),
        marked=_marked(monitor, rule["false_alarm"]),
        version=calibrant.__version__,
    )


def _unbroken_dates(line: str) -> Markup:
    """Return a sentence whose dates cannot be broken into lines at their hyphens."""
    parts = _DATE.split(line)
    return joined(
        tag("span", part, class_="date") if _DATE.fullmatch(part) else as_markup(part)
        for part in parts
    )


def _facts(monitor: CalibrationMonitor) -> Markup:
    """Return the header with the numbers of rows and updates, and the first and last update."""
    history = monitor.history
    facts = {"Labeled rows": f"{monitor.n_rows:,}", "Updates": f"{len(history):,}"}
    if history:
        facts |= {"First update": history[0].when, "Last update": history[-1].when}
    return joined(tag("div", tag("dt", key), tag("dd", value)) for key, value in facts.items())


def _gap_hint(monitor: CalibrationMonitor, tolerance: float) -> str:
    """Explain how to read the chart of the gap."""
    band = f" The gray band is the tolerance of {tolerance:g}." if tolerance else ""
    start = (
        "Each point is the mean predicted probability minus the observed frequency of all rows "
        "up to an update. Single periods are not shown, because the rows have weights. Lines are "
        "95% confidence intervals that are valid at all times."
        if has_weights(monitor)
        else "Each point is the mean predicted probability minus the observed frequency in one "
        "period. Lines are 95% confidence intervals of single periods (Hoeffding)."
    )
    return f"{start}{band} A point above zero suggests that predicted probabilities are too high."


def _gaps(monitor: CalibrationMonitor) -> list[Gap]:
    return monitor.gaps() if monitor.n_rows else []


def _marked(monitor: CalibrationMonitor, false_alarm: float) -> str:
    if not any(gap.is_listed for gap in _gaps(monitor)):
        return 'No gap is marked "check", because no single gap is significant.'
    return (
        'The mark "check" means significant evidence against calibration. The expected share of '
        f"false marks is at most {format_percent(false_alarm)}."
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Return a table of text, in which marks have the color of alarms.

    Phones show a card per row.
    """
    head = tag("tr", *(tag("th", title, scope="col", class_=_kind(title)) for title in titles))
    body = [
        tag("tr", tag("th", first, scope="row"), *map(_cell, titles[1:], cells))
        for first, *cells in rows
    ]
    return tag("table", tag("thead", head), tag("tbody", *body), class_="cards")


def _cell(title: str, text: str) -> Markup:
    kind = "mark" if text in ("check", "alarm") else _kind(title)
    return tag("td", text, class_=kind, data_label=title if text else None)


def _kind(title: str) -> str | None:
    """Return the CSS class of a column. Numbers are aligned to the right."""
    return None if title in ("Name", "Mark", "Update", "Status") else "number"


def _claim_table(monitor: CalibrationMonitor) -> Markup:
    gaps = sorted(_gaps(monitor), key=lambda gap: -gap.nats)[:_MAX_ROWS]
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
    titles = ("Name", "Mark", "Rows", "Mean gap", "95% CI", "Evidence")
    return tag("div", _table(titles, rows), class_="scroll tall", tabindex=0)


def _update_table(history: Sequence[MonitorEntry]) -> Markup:
    rows = [
        (
            entry.when,
            "alarm" if entry.alarm else "",
            f"{entry.n_rows:,}",
            format_number(entry.nats),
            format_number(entry.mean, signed=True),
        )
        for entry in reversed(history)
    ]
    titles = ("Update", "Status", "Rows", "Evidence", "Mean gap so far")
    return tag("div", _table(titles, rows), class_="scroll tall", tabindex=0)
