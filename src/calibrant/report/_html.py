"""A report as one self-contained HTML page. All strings of the user are escaped here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from calibrant._output.numbers import format_interval, format_number, format_p_value
from calibrant._validation import printable, printable_lines
from calibrant.notions import as_notion
from calibrant.report._charts import NOTIONS
from calibrant.report._content import (
    CLASS_COLUMNS,
    CURVE_COLUMNS,
    GUARANTEE_COLUMNS,
    METRIC_COLUMNS,
    TEST_COLUMNS,
    ClassRow,
    Estimate,
    GuaranteeNote,
    MetricRow,
    Reliability,
    Report,
)
from calibrant.report._glossary import COLUMNS, MEASURES, TESTS, glossary
from calibrant.report._sentences import (
    decomposition_sentence,
    facts,
    ks_sentence,
    no_guarantee,
    null_sentence,
)
from calibrant.report._svg import counts_svg, decomposition_svg, ks_svg, reliability_svg

_SECTIONS = {
    "verdict": "Verdict",
    "metrics": "Before and after",
    "reliability": "Reliability",
    "classes": "Classes",
    "ks": "KS graph",
    "decomposition": "Decomposition",
    "tests": "Tests",
    "guarantee": "Guarantee",
    "map": "Calibrator",
    "how": "Methods",
    "code": "Code",
    "glossary": "Glossary",
}
_COUNTS_CAPTION = (
    "The bars show the number of rows per bin of predicted probability, before and after "
    "calibration."
)

MOST_DRAWN = 12
"""Largest number of diagrams of a type of calibration with one diagram per class."""

MOST_PRINTED = 40
"""Largest number of classes in the printed table, about a page; report.css has the same number."""


def to_html(report: Report) -> str:
    """Return a report as a self-contained HTML page, which loads nothing from elsewhere.

    See Also
    --------
    render : Write a report to a file.
    """
    parts = {
        "name": _text(report.name),
        "facts": _text(facts(report)),
        "nav": "".join(f'<a href="#{key}">{title}</a>' for key, title in _SECTIONS.items()),
        "fitted": _text(report.how[0]) if report.how else "",
        "advice": _text(report.advice),
        "action": _text(report.action),
        "verdict": _text(report.verdict),
        "warnings": _warnings(report.warnings),
        "metrics": _metrics_table(report.metrics, report.judgement),
        "notions": "".join(map(_radio, NOTIONS)),
        "panels": "".join(_panels(report)),
        "left_out": _left_out(report),
        "classes": _class_table(report),
        "groups": "" if report.groups is None else _map_table(report.groups),
        "classes_left_out": _classes_left_out(report),
        "ks": ks_svg(report.ks, ks_sentence(report)),
        "decomposition": decomposition_svg(report.decomposition, decomposition_sentence(report)),
        "ks_label": _text(ks_sentence(report)),
        "decomposition_label": _text(decomposition_sentence(report)),
        "tests": _test_table(report),
        "guarantee": _guarantee(report.guarantee, no_guarantee(report)),
        "map_name": _text(report.map.name),
        "map_text": _text(report.map.text),
        "map_tables": "".join(_map_table(table) for table in report.map.tables),
        "how": "".join(f"<li>{_text(line)}</li>" for line in report.how),
        "code": escape(printable_lines(report.code)),
        "glossary": "".join(
            f"<dt>{_text(term)}</dt><dd>{_text(text)}</dd>" for term, text in glossary(report)
        ),
        "version": _text(report.version),
        "css": read_page("static", "report.css"),
        "js": read_page("static", "report.js"),
    }
    # Names are substituted once: a class may be called "$data".
    return Template(read_page("templates", "report.html")).substitute(parts)


def _text(value: str) -> str:
    """Text of the user without tags, control characters and line breaks."""
    return escape(printable(value))


def read_page(folder: str, name: str) -> str:
    """A template or a style of the pages of this package."""
    return files("calibrant.report").joinpath(folder, name).read_text(encoding="utf-8")


def _panels(report: Report) -> Iterator[str]:
    """The diagrams with the largest errors of each type of calibration."""
    for notion in NOTIONS:
        diagrams = [diagram for diagram in report.reliability if diagram.notion == notion]
        yield from (_panel(diagram, report.classes) for diagram in diagrams[:MOST_DRAWN])


def _panel(diagram: Reliability, classes: Sequence[str]) -> str:
    question = printable(diagram.question)
    name = "" if diagram.column is None else _text(classes[diagram.column])
    column = "" if diagram.column is None else str(diagram.column)
    chart = reliability_svg(diagram, f"Reliability diagram. {question}")
    counts = counts_svg(diagram, f"{_COUNTS_CAPTION} {question}")
    return (
        f'<div class="panel" data-notion="{diagram.notion}" data-column="{column}" '
        f'data-name="{name}"><div class="charts"><figure>{chart}<figcaption>{escape(question)}'
        f"</figcaption></figure><figure>{counts}<figcaption>{_COUNTS_CAPTION}</figcaption>"
        f"</figure></div><details><summary>Table of this diagram</summary>"
        f'<div class="scroll">{_curve_table(diagram)}</div></details></div>'
    )


def _curve_table(diagram: Reliability) -> str:
    rows = [
        _head(when) + _numbers(*cells) + _number(count, _count_text)
        for when, curve in (("before", diagram.before), ("after", diagram.after))
        for *cells, count in curve.bins()
    ]
    return _table("Bins of the reliability diagram", CURVE_COLUMNS, rows)


def _left_out(report: Report) -> str:
    if report.n_classes <= MOST_DRAWN:
        return ""
    return (
        f'<p class="hint">Only the {MOST_DRAWN} classes with the largest errors of '
        f"{report.n_classes:,} classes are drawn. The table below lists all classes.</p>"
    )


def _classes_left_out(report: Report) -> str:
    if report.n_classes <= MOST_PRINTED:
        return ""
    return (
        '<p class="hint">Classes with the largest errors come first. The printed page has the '
        f"first {MOST_PRINTED} of {report.n_classes:,} classes.</p>"
    )


def _warnings(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return (
        '<section class="warnings" aria-label="Warnings"><h2>Warnings</h2>'
        f"<ul>{items}</ul></section>"
    )


def _radio(notion: str) -> str:
    checked = " checked" if notion == NOTIONS[0] else ""
    title = _text(as_notion(notion).title)
    return f'<label><input type="radio" name="notion" value="{notion}"{checked}>{title}</label>'


def _table(caption: str, titles: Sequence[str], rows: Iterable[str], note: str = "") -> str:
    """A table with sortable columns: the first one holds text, the others numbers.

    ``note`` is the label of a last column of sentences. Column labels have a tooltip.
    """
    kinds = zip(titles, ("text", *["number"] * (len(titles) - 1)), strict=True)
    notes = [(note, "note")] if note else []
    heads = "".join(_column_head(title, kind) for title, kind in (*kinds, *notes))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    hidden = f'<caption class="hidden">{_text(caption)}</caption>'
    return f"<table>{hidden}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _column_head(title: str, kind: str) -> str:
    tooltip = _tooltip(COLUMNS.get(title, ""))
    button = f'<button type="button">{_text(title)}</button>'
    return f'<th scope="col" class="{kind}"{tooltip}>{button}</th>'


def _head(text: str, tooltip: str = "") -> str:
    return f'<th scope="row"{_tooltip(tooltip)}>{_text(text)}</th>'


def _tooltip(text: str) -> str:
    return f' title="{_text(text)}"' if text else ""


def _number(value: float | None, show: Callable[[float], str] = format_number) -> str:
    if value is None:
        return '<td class="number" data-value="">-</td>'
    return f'<td class="number" data-value="{value!r}">{show(value)}</td>'


def _numbers(*values: float | None, show: Callable[[float], str] = format_number) -> str:
    return "".join(_number(value, show) for value in values)


def _count_text(count: float) -> str:
    return f"{count:,.0f}"


def _metrics_table(rows: Sequence[MetricRow], effect: str) -> str:
    cells = [
        _head(row.title, MEASURES[row.name])
        + _estimate(row.before, "")
        + _estimate(row.after, _change(row, effect))
        + f'<td class="note">{_text(row.note)}</td>'
        for row in rows
    ]
    *titles, note = METRIC_COLUMNS
    return _table("Before and after calibration", titles, cells, note)


def _estimate(estimate: Estimate, kind: str) -> str:
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        ends = format_interval(estimate.low, estimate.high)
        interval = f'<span class="interval">{ends}</span>'
    value = f'<span class="{kind}">{format_number(estimate.value)}</span>'
    return f'<td class="number" data-value="{estimate.value!r}">{value}{interval}</td>'


def _change(row: MetricRow, effect: str) -> str:
    """Whether a number is shown as better or worse, which requires a significant change."""
    # The paired interval of the change has more power than a comparison of two intervals.
    if row.name == "log_loss":
        return {"good": "better", "bad": "worse"}.get(effect, "")
    low, high = _apart(row.before, row.after)
    if row.better == "neither" or not (low or high):
        return ""
    return "better" if high == (row.better == "higher") else "worse"


def _apart(before: Estimate, after: Estimate) -> tuple[bool, bool]:
    """Whether the interval after calibration lies below, and above, the interval before."""
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return False, False
    return after.high < before.low, after.low > before.high


def _class_table(report: Report) -> str:
    rows = [
        _head(row.name)
        + _numbers(row.rows, row.predicted, show=_count_text)
        + _numbers(row.class_before, row.class_after, row.top_before, row.top_after)
        for row in _ordered(report)
    ]
    table = _table("Calibration error of each class", CLASS_COLUMNS, rows)
    return table.replace("<table>", '<table class="many">', 1)


def _ordered(report: Report) -> Sequence[ClassRow]:
    """Classes by column; if there are many, those with the largest errors first."""
    if report.n_classes <= MOST_PRINTED:
        return report.per_class
    return sorted(report.per_class, key=lambda row: -row.class_before)


def _test_table(report: Report) -> str:
    *titles, note = TEST_COLUMNS
    rows = [
        _head(test.title, TESTS[test.name])
        + _numbers(test.statistic_before, test.expected_before)
        + _numbers(test.statistic_after, test.expected_after)
        + _numbers(test.p_holm_before, test.p_holm_after, show=format_p_value)
        + f'<td class="note">{_text(null_sentence(test))}</td>'
        for test in report.tests
    ]
    return _table("Tests of calibration", titles, rows, note)


def _guarantee(note: GuaranteeNote | None, otherwise: str) -> str:
    if note is None:
        return f"<p>{_text(otherwise)}</p>"
    rows = [
        _head(name) + _numbers(value, low, high) + _number(count, _count_text)
        for name, value, count, low, high in note.bins
    ]
    table = _table("Guaranteed bounds of the true frequency", GUARANTEE_COLUMNS, rows)
    return f'<p>{_text(note.text)}</p><div class="scroll tall">{table}</div>'


def _map_table(table: Any) -> str:
    rows = ["".join(_cell(value) for value in row) for row in table.rows]
    return (
        f"<h3>{_text(table.caption)}</h3><div "
        f'class="scroll">{_table(table.caption, table.header, rows)}</div>'
    )


def _cell(value: Any) -> str:
    return _head(value) if isinstance(value, str) else _number(value)
