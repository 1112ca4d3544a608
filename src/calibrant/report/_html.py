"""A report as one self-contained page. Every string that comes from the user is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from calibrant._validation import printable, printable_lines
from calibrant.notions import as_notion
from calibrant.report._charts import NOTIONS
from calibrant.report._content import (
    CLASS_TITLES,
    ClassRow,
    Estimate,
    GuaranteeNote,
    MetricRow,
    Reliability,
    Report,
)
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
    "map": "The map",
    "how": "How computed",
}
MOST_DRAWN = 12
"""Diagrams of a notion with one for each class."""

MOST_PRINTED = 40
"""Classes of the table that are printed, a page of them; report.css has the same number."""


def to_html(report: Report) -> str:
    """One self-contained page: styles, charts and data are in it, nothing is loaded."""
    parts = {
        "name": _text(report.name),
        "facts": _text(facts(report)),
        "nav": "".join(f'<a href="#{key}">{title}</a>' for key, title in _SECTIONS.items()),
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
        "version": _text(report.version),
        "css": read_page("static", "report.css"),
        "js": read_page("static", "report.js"),
    }
    # What is put in is not looked at again: a class may be called "$data".
    return Template(read_page("templates", "report.html")).substitute(parts)


def _text(value: str) -> str:
    """Text of others: it is no tag, commands nothing, and stays on its line."""
    return escape(printable(value))


def read_page(folder: str, name: str) -> str:
    """A template or a style of the pages of this package."""
    return files("calibrant.report").joinpath(folder, name).read_text(encoding="utf-8")


def _panels(report: Report) -> Iterator[str]:
    """The diagrams that are drawn: of each notion those of the largest errors."""
    for notion in NOTIONS:
        diagrams = [diagram for diagram in report.reliability if diagram.notion == notion]
        yield from (_panel(diagram, report.classes) for diagram in diagrams[:MOST_DRAWN])


def _panel(diagram: Reliability, classes: Sequence[str]) -> str:
    question = printable(diagram.question)
    name = "" if diagram.column is None else _text(classes[diagram.column])
    column = "" if diagram.column is None else str(diagram.column)
    chart = reliability_svg(diagram, f"Reliability diagram. {question}")
    counts = counts_svg(diagram, f"Rows by reported probability. {question}")
    return (
        f'<div class="panel" data-notion="{diagram.notion}" data-column="{column}" '
        f'data-name="{name}"><div class="charts"><figure>{chart}<figcaption>{escape(question)}'
        f"</figcaption></figure><figure>{counts}<figcaption>Rows by reported probability."
        f"</figcaption></figure></div><details><summary>The same as a table</summary>"
        f'<div class="scroll">{_curve_table(diagram)}</div></details></div>'
    )


def _curve_table(diagram: Reliability) -> str:
    rows = [
        _head(when) + _numbers(*cells, digits=3) + _number(count, 0)
        for when, curve in (("before", diagram.before), ("after", diagram.after))
        for *cells, count in curve.bins()
    ]
    titles = ("when", "predicted", "observed", "low", "high", "rows")
    return _table("Reliability, as a table", titles, rows)


def _left_out(report: Report) -> str:
    if report.n_classes <= MOST_DRAWN:
        return ""
    return (
        f'<p class="hint">Of {report.n_classes:,} classes the {MOST_DRAWN} with the largest errors '
        f"are drawn; the table below has all of them.</p>"
    )


def _classes_left_out(report: Report) -> str:
    if report.n_classes <= MOST_PRINTED:
        return ""
    return (
        f'<p class="hint">The largest errors first; on paper the first {MOST_PRINTED} of '
        f"{report.n_classes:,} classes.</p>"
    )


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


def _table(caption: str, titles: Sequence[str], rows: Iterable[str], note: str = "") -> str:
    """A table whose columns sort: the first holds text, the others numbers. ``note`` is the title
    of a last column of sentences.
    """
    kinds = zip(titles, ("text", *["number"] * (len(titles) - 1)), strict=True)
    notes = [(note, "note")] if note else []
    heads = "".join(_column_head(title, kind) for title, kind in (*kinds, *notes))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    hidden = f'<caption class="hidden">{_text(caption)}</caption>'
    return f"<table>{hidden}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _column_head(title: str, kind: str) -> str:
    return f'<th scope="col" class="{kind}"><button type="button">{_text(title)}</button></th>'


def _head(text: str) -> str:
    return f'<th scope="row">{_text(text)}</th>'


def _number(value: float | None, digits: int = 4, kind: str = "") -> str:
    if value is None:
        return '<td class="number" data-value="">-</td>'
    return f'<td class="number {kind}" data-value="{value!r}">{value:z.{digits}f}</td>'


def _numbers(*values: float | None, digits: int = 4) -> str:
    return "".join(_number(value, digits) for value in values)


def _metrics_table(rows: Sequence[MetricRow], judgement: str) -> str:
    cells = [
        _head(row.title)
        + _estimate(row.before, "")
        + _estimate(row.after, _change(row, judgement))
        + f'<td class="note">{_text(row.note)}</td>'
        for row in rows
    ]
    return _table("Before and after calibration", ("measure", "before", "after"), cells, "note")


def _estimate(estimate: Estimate, kind: str) -> str:
    interval = (
        ""
        if estimate.low is None
        else f'<span class="interval">{estimate.low:z.4f} to {estimate.high:z.4f}</span>'
    )
    value = f'<span class="{kind}">{estimate.value:z.4f}</span>'
    return f'<td class="number" data-value="{estimate.value!r}">{value}{interval}</td>'


def _change(row: MetricRow, judgement: str) -> str:
    """Whether a number is shown as better or worse: only where chance does not explain it."""
    if row.name == "log_loss":  # judged row by row, which shows more than two intervals do
        return {"good": "better", "bad": "worse"}.get(judgement, "")
    low, high = _apart(row.before, row.after)
    if row.better == "neither" or not (low or high):
        return ""
    return "better" if high == (row.better == "higher") else "worse"


def _apart(before: Estimate, after: Estimate) -> tuple[bool, bool]:
    """Whether the interval after lies below, or above, the one before."""
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return False, False
    return after.high < before.low, after.low > before.high


def _class_table(report: Report) -> str:
    rows = [
        _head(row.name)
        + _numbers(row.rows, row.predicted, digits=0)
        + _numbers(row.class_before, row.class_after, row.top_before, row.top_after)
        for row in _ordered(report)
    ]
    table = _table("Calibration error of each class", CLASS_TITLES, rows)
    return table.replace("<table>", '<table class="many">', 1)


def _ordered(report: Report) -> Sequence[ClassRow]:
    """Classes by column; of many those with the largest errors first."""
    if report.n_classes <= MOST_PRINTED:
        return report.per_class
    return sorted(report.per_class, key=lambda row: -row.class_before)


def _test_table(report: Report) -> str:
    titles = ("error before", "by chance", "error after", "by chance", "p-value before", "after")
    rows = [
        _head(test.title)
        + _numbers(test.statistic_before, test.expected_before)
        + _numbers(test.statistic_after, test.expected_after)
        + _numbers(test.p_holm_before, test.p_holm_after)
        + f'<td class="note">{_text(null_sentence(test))}</td>'
        for test in report.tests
    ]
    return _table("Tests of calibration", ("test", *titles), rows, "null hypothesis")


def _guarantee(note: GuaranteeNote | None, otherwise: str) -> str:
    if note is None:
        return f"<p>{_text(otherwise)}</p>"
    titles = ("when the binning says", "with", "the truth is between", "and", "rows")
    rows = [
        _head(claim) + _numbers(value, low, high, digits=3) + _number(count, 0)
        for claim, value, count, low, high in note.bins
    ]
    table = _table("Guaranteed ranges of the true frequency", titles, rows)
    return (
        f'<p>{_text(note.text)}</p><p class="hint">By {_text(note.method)}.</p><div '
        f'class="scroll tall">{table}</div>'
    )


def _map_table(table: Any) -> str:
    rows = ["".join(_cell(value) for value in row) for row in table.rows]
    return (
        f"<h3>{_text(table.caption)}</h3><div "
        f'class="scroll">{_table(table.caption, table.header, rows)}</div>'
    )


def _cell(value: Any) -> str:
    return _head(value) if isinstance(value, str) else _number(value, 3)
