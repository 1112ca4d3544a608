"""A report as one self-contained page. Every string that comes from the user is escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from calibrant._text import printable, printable_lines
from calibrant.notions import as_notion
from calibrant.report._charts import NOTIONS
from calibrant.report._content import Estimate, GuaranteeNote, MetricRow, Report
from calibrant.report._sentences import NO_GUARANTEE, decomposition_sentence, facts, ks_sentence

_SECTIONS = {
    "verdict": "Verdict",
    "metrics": "Before and after",
    "reliability": "Reliability",
    "classes": "Classes",
    "ks": "KS graph",
    "decomposition": "Decomposition",
    "tests": "Tests",
    "guarantee": "Guarantee",
    "map": "The map",
    "how": "How computed",
}
_WIDE = ("note", "null hypothesis")
"""Columns of sentences."""

_SEEN = 5e-5
"""A change that four digits show."""


def to_html(report: Report) -> str:
    """One self-contained page: styles, charts and data are in it, nothing is loaded."""
    parts = {
        "name": _text(report.name),
        "facts": _text(facts(report)),
        "nav": "".join(f'<a href="#{key}">{title}</a>' for key, title in _SECTIONS.items()),
        "judgement": _text(report.judgement),
        "verdict": _text(report.verdict),
        "warnings": _warnings(report.warnings),
        "metrics": _metrics_table(report.metrics),
        "notions": "".join(map(_radio, NOTIONS)),
        "classes": _class_table(report),
        "ks_label": _text(ks_sentence(report)),
        "decomposition_label": _text(decomposition_sentence(report)),
        "tests": _test_table(report),
        "guarantee": _guarantee(report.guarantee),
        "map_name": _text(report.map.name),
        "map_text": _text(report.map.text),
        "map_tables": "".join(_map_table(table) for table in report.map.tables),
        "how": "".join(f"<li>{_text(line)}</li>" for line in report.how),
        "code": escape(printable_lines(report.code)),
        "version": _text(report.version),
        "css": _read("static", "report.css"),
        "js": _read("static", "report.js"),
        "chart_js": _read("static", "chart.umd.min.js"),
        "data": _script_data(report),
    }
    # What is put in is not looked at again: a class may be called "$data".
    return Template(_read("templates", "report.html")).substitute(parts)


def _text(value: str) -> str:
    """Text of others: it is no tag, commands nothing, and stays on its line."""
    return escape(printable(value))


def _read(folder: str, name: str) -> str:
    return files("calibrant.report").joinpath(folder, name).read_text(encoding="utf-8")


def _script_data(report: Report) -> str:
    """What the charts need, as JSON that cannot end the script element that holds it."""
    content = report.to_dict()
    data = {key: content[key] for key in ("classes", "reliability", "ks", "decomposition")}
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _warnings(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return (
        f'<section class="warnings" aria-label="Warnings"><h2>Be '
        f"careful</h2><ul>{items}</ul></section>"
    )


def _radio(notion: str) -> str:
    checked = " checked" if notion == NOTIONS[0] else ""
    title = _text(as_notion(notion).title)
    return f'<label><input type="radio" name="notion" value="{notion}"{checked}>{title}</label>'


def _table(caption: str, header: Iterable[tuple[str, bool]], rows: Iterable[str]) -> str:
    """A table whose columns sort; ``header`` says of each column its title and whether it holds
    numbers.
    """
    heads = "".join(_column_head(title, is_number=is_number) for title, is_number in header)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    hidden = f'<caption class="hidden">{_text(caption)}</caption>'
    return f"<table>{hidden}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _column_head(title: str, *, is_number: bool) -> str:
    kind = "number" if is_number else "note" if title in _WIDE else "text"
    return f'<th scope="col" class="{kind}"><button type="button">{_text(title)}</button></th>'


def _head(text: str) -> str:
    return f'<th scope="row">{_text(text)}</th>'


def _number(value: float | None, digits: int = 4, kind: str = "") -> str:
    if value is None:
        return '<td class="number" data-value="">-</td>'
    return f'<td class="number {kind}" data-value="{value!r}">{value:.{digits}f}</td>'


def _metrics_table(rows: Sequence[MetricRow]) -> str:
    header = [("measure", False), ("before", True), ("after", True), ("note", False)]
    cells = [
        _head(row.title)
        + _estimate(row.before, "")
        + _estimate(row.after, _change(row))
        + f'<td class="note">{_text(row.note)}</td>'
        for row in rows
    ]
    return _table("Before and after calibration", header, cells)


def _estimate(estimate: Estimate, kind: str) -> str:
    interval = (
        ""
        if estimate.low is None
        else f'<span class="interval">{estimate.low:.4f} to {estimate.high:.4f}</span>'
    )
    value = f'<span class="{kind}">{estimate.value:.4f}</span>'
    return f'<td class="number" data-value="{estimate.value!r}">{value}{interval}</td>'


def _change(row: MetricRow) -> str:
    difference = row.after.value - row.before.value
    if row.better == "neither" or abs(difference) < _SEEN:
        return ""
    return "better" if (difference > 0) == (row.better == "higher") else "worse"


def _class_table(report: Report) -> str:
    titles = ["rows", "predicted", "class-wise before", "after", "top-label before", "after"]
    header = [("class", False), *((title, True) for title in titles)]
    rows = [
        _head(row.name)
        + _number(row.rows, 0)
        + _number(row.predicted, 0)
        + "".join(
            _number(v) for v in (row.class_before, row.class_after, row.top_before, row.top_after)
        )
        for row in report.per_class
    ]
    return _table("Calibration error of each class", header, rows)


def _test_table(report: Report) -> str:
    titles = ["error before", "by chance", "error after", "by chance", "p-value before", "after"]
    header = [("test", False), *((title, True) for title in titles), ("null hypothesis", False)]
    rows = [
        _head(test.title)
        + "".join(
            _number(v)
            for v in (
                test.statistic_before,
                test.expected_before,
                test.statistic_after,
                test.expected_after,
            )
        )
        + "".join(_number(p, 4) for p in (test.p_before, test.p_after))
        + f'<td class="note">{_text(test.null)} ({_text(test.guarantee)})</td>'
        for test in report.tests
    ]
    return _table("Tests of calibration", header, rows)


def _guarantee(note: GuaranteeNote | None) -> str:
    if note is None:
        return f"<p>{_text(NO_GUARANTEE)}</p>"
    header = [
        ("when the model says", False),
        ("with", True),
        ("the truth is between", True),
        ("and", True),
        ("rows", True),
    ]
    rows = [
        _head(claim) + _number(value, 3) + _number(low, 3) + _number(high, 3) + _number(count, 0)
        for claim, value, count, low, high in note.bins
    ]
    table = _table("Guaranteed ranges of the true frequency", header, rows)
    return (
        f'<p>{_text(note.text)}</p><p class="hint">By {_text(note.method)}.</p><div '
        f'class="scroll tall">{table}</div>'
    )


def _map_table(table: Any) -> str:
    header = [(title, place > 0) for place, title in enumerate(table.header)]
    rows = ["".join(_cell(value) for value in row) for row in table.rows]
    return (
        f"<h3>{_text(table.caption)}</h3><div "
        f'class="scroll">{_table(table.caption, header, rows)}</div>'
    )


def _cell(value: Any) -> str:
    return _head(value) if isinstance(value, str) else _number(value, 3)
