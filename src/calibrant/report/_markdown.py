"""A report as Markdown, with tables instead of charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibrant._output.numbers import format_interval, format_number, format_p_value, format_percent
from calibrant._validation import printable_lines
from calibrant.report._content import (
    CLASS_COLUMNS,
    CURVE_COLUMNS,
    GUARANTEE_COLUMNS,
    METRIC_COLUMNS,
    TEST_COLUMNS,
    Estimate,
    GuaranteeNote,
    MetricRow,
    Report,
)
from calibrant.report._glossary import glossary
from calibrant.report._risk_content import RISK_COLUMNS
from calibrant.report._sentences import (
    audit_facts,
    decomposition_sentence,
    ks_sentence,
    no_guarantee,
    null_sentence,
    risk_sentence,
)
from calibrant.selection._table import markdown_table, plain


def to_markdown(report: Report) -> str:
    """Return a report as Markdown text, with tables instead of charts.

    See Also
    --------
    render : Write a report to a file.
    """
    blocks = [
        f"# Calibration report: {plain(report.name)}",
        "; ".join(f"{name}: {plain(value)}" for name, value in audit_facts(report)),
        f"**{plain(report.action)}** {plain(report.verdict)}",
        *_listed("Warnings", report.warnings),
        "## Before and after",
        _table(METRIC_COLUMNS, [_metric_cells(row) for row in report.metrics]),
        "## Reliability of the confidence",
        _reliability_table(report),
        "## Classes",
        _class_table(report),
        *_groups(report),
        "## Cumulative difference and decomposition",
        f"{ks_sentence(report)} {decomposition_sentence(report)}",
        "## Risk and coverage",
        *_risk(report),
        "## Tests",
        _test_table(report),
        plain(report.detectable.text),
        "## Guarantee",
        *([no_guarantee(report)] if report.guarantee is None else _guarantee(report.guarantee)),
        f"## Calibrator: {plain(report.map.name)}",
        plain(report.map.text),
        *(f"{plain(t.caption)}\n\n{_table(t.header, t.rows)}" for t in report.map.tables),
        *_listed("Methods", report.how),
        "## Code to reproduce the figures",
        f"```python\n{printable_lines(report.code)}\n```",
        "## Glossary",
        "\n".join(f"- **{plain(term)}**: {plain(text)}" for term, text in glossary(report)),
    ]
    return "\n\n".join(blocks) + "\n"


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {plain(line)}" for line in lines)] if lines else []


def _groups(report: Report) -> list[str]:
    if report.groups is None:
        return []
    table = _table(report.groups.header, report.groups.rows)
    return ["## Groups", plain(f"{report.groups.caption}. {report.groups.text}"), table]


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table whose numbers have three significant digits. Counts are integers."""
    return markdown_table(header, [[_shown(cell) for cell in row] for row in rows])


def _shown(cell: Any) -> Any:
    return format_number(cell) if isinstance(cell, float) else cell


def _risk(report: Report) -> list[str]:
    if report.selective is None:
        return [risk_sentence(report)]
    rows = [
        [f"at most {format_percent(risk)}", *map(format_percent, shares)]
        for risk, *shares in report.selective.proved
    ]
    level = format_percent(report.selective.level)
    note = f"The bounds of the error rates of new rows hold jointly with {level} confidence."
    return [f"{risk_sentence(report)} {note}", _table(RISK_COLUMNS, rows)]


def _guarantee(note: GuaranteeNote) -> list[str]:
    rows = [[name, value, low, high, _count(count)] for name, value, count, low, high in note.bins]
    return [plain(note.text), _table(GUARANTEE_COLUMNS, rows)]


def _count(count: float) -> Any:
    return int(count) if count == int(count) else count


def _metric_cells(row: MetricRow) -> list[Any]:
    return [row.title, _with_interval(row.before), _with_interval(row.after), row.note]


def _with_interval(estimate: Estimate) -> str:
    value = format_number(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} ({format_interval(estimate.low, estimate.high)})"


def _reliability_table(report: Report) -> str:
    first = report.reliability[0]
    rows = [
        [when, *cells]
        for when, curve in (("before", first.before), ("after", first.after))
        for cells in curve.bins()
    ]
    return _table(CURVE_COLUMNS, rows)


def _class_table(report: Report) -> str:
    rows = [
        [r.name, r.rows, r.predicted, r.class_before, r.class_after, r.top_before, r.top_after]
        for r in report.per_class
    ]
    return _table(CLASS_COLUMNS, rows)


def _test_table(report: Report) -> str:
    rows = [
        [
            *(test.title, test.statistic_before, test.expected_before),
            *(test.statistic_after, test.expected_after),
            *(format_p_value(test.p_holm_before), format_p_value(test.p_holm_after)),
            null_sentence(test),
        ]
        for test in report.tests
    ]
    return _table(TEST_COLUMNS, rows)
