"""A report as Markdown: tables instead of charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibrant._validation import printable_lines
from calibrant.report._content import CLASS_TITLES, Estimate, MetricRow, Report
from calibrant.report._sentences import (
    decomposition_sentence,
    facts,
    ks_sentence,
    no_guarantee,
    null_sentence,
)
from calibrant.selection._table import markdown_table, plain


def to_markdown(report: Report) -> str:
    """The same content as text: tables instead of charts."""
    blocks = [
        f"# Calibration report: {plain(report.name)}",
        facts(report),
        f"**{plain(report.action)}** {plain(report.verdict)}",
        *_listed("Be careful", report.warnings),
        "## Before and after",
        _table(
            ["measure", "before", "after", "note"], [_metric_cells(row) for row in report.metrics]
        ),
        "## Reliability, top class",
        _reliability_table(report),
        "## Classes",
        _class_table(report),
        *_groups(report),
        "## Cumulative difference and decomposition",
        f"{ks_sentence(report)} {decomposition_sentence(report)}",
        "## Tests",
        _test_table(report),
        "## Guarantee",
        plain(report.guarantee.text) if report.guarantee else no_guarantee(report),
        f"## The map: {plain(report.map.name)}",
        plain(report.map.text),
        *(f"{plain(t.caption)}\n\n{_table(t.header, t.rows)}" for t in report.map.tables),
        *_listed("How this was computed", report.how),
        "## Code to repeat it",
        f"```python\n{printable_lines(report.code)}\n```",
    ]
    return "\n\n".join(blocks) + "\n"


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {plain(line)}" for line in lines)] if lines else []


def _groups(report: Report) -> list[str]:
    if report.groups is None:
        return []
    table = _table(report.groups.header, report.groups.rows)
    return ["## Groups", plain(report.groups.caption), table]


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table whose numbers have four digits, and no negative zero."""
    return markdown_table(header, [[_shown(cell) for cell in row] for row in rows])


def _shown(cell: Any) -> Any:
    return f"{cell:z.4f}" if isinstance(cell, float) else cell


def _metric_cells(row: MetricRow) -> list[Any]:
    return [row.title, _with_interval(row.before), _with_interval(row.after), row.note]


def _with_interval(estimate: Estimate) -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:z.4f} to {estimate.high:z.4f})"
    return f"{estimate.value:z.4f}{interval}"


def _reliability_table(report: Report) -> str:
    first = report.reliability[0]
    rows = [
        [when, *cells]
        for when, curve in (("before", first.before), ("after", first.after))
        for cells in curve.bins()
    ]
    return _table(["when", "predicted", "observed", "low", "high", "rows"], rows)


def _class_table(report: Report) -> str:
    rows = [
        [r.name, r.rows, r.predicted, r.class_before, r.class_after, r.top_before, r.top_after]
        for r in report.per_class
    ]
    return _table(CLASS_TITLES, rows)


def _test_table(report: Report) -> str:
    header = ["test", "statistic before", "after", "p-value before", "after", "null hypothesis"]
    rows = [
        [
            *(test.title, test.statistic_before, test.statistic_after),
            *(test.p_holm_before, test.p_holm_after, null_sentence(test)),
        ]
        for test in report.tests
    ]
    return _table(header, rows)
