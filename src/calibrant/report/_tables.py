"""Tables of a report as HTML, some of which have a small chart in each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from calibrant._output.numbers import format_interval, format_number, format_p_value
from calibrant.report._content import (
    CLASS_COLUMNS,
    CURVE_COLUMNS,
    GUARANTEE_COLUMNS,
    METRIC_COLUMNS,
    TEST_COLUMNS,
    CheckRow,
    ClassRow,
    Estimate,
    GuaranteeNote,
    MetricRow,
    Reliability,
    Report,
)
from calibrant.report._drawings import dots_svg, interval_svg
from calibrant.report._glossary import COLUMNS, MEASURES, TESTS
from calibrant.report._markup import Markup, joined, tag
from calibrant.report._sentences import null_sentence

MOST_PRINTED = 40
"""Maximum number of classes in the printed table, about one page. report.css repeats this number.
"""

Rows = Sequence[Sequence[Markup]]

_NOT_FOLDED = 6
"""Number of measures that are shown at once. The other measures are folded."""

_FOLDED_BOUNDS = 20
"""Number of bounds of a guarantee that are shown at once. The other bounds are folded."""

_CHART = tag("span", "Chart", class_="hidden")
_UNIT_AXIS = tag("span", *(tag("span", value) for value in ("0", "0.5", "1")), class_="axis")
"""Labels of a column of charts: a text for screen readers only, and an axis of probabilities."""


def table(
    caption: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[Markup]],
    *,
    note: str = "",
    chart: Markup | None = None,
    kind: str | None = None,
) -> Markup:
    """Return a table with sortable columns.

    The first column contains text, and the other columns contain numbers.

    ``note`` is the label of an optional last column of sentences. ``chart`` is the label of an
    optional second column of charts. Column labels have a tooltip. Phones show the column label
    next to the value of each cell.
    """
    kinds = ["text", *["number"] * (len(titles) - 1), *(["note"] if note else [])]
    heads = [
        _column_head(*pair) for pair in zip([*titles, *filter(None, [note])], kinds, strict=True)
    ]
    if chart is not None:
        heads.insert(1, tag("th", chart, scope="col", class_="chart"))
    body = [tag("tr", *row) for row in rows]
    return tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *body),
        class_=kind,
    )


def scrolled(content: Markup, *, tall: bool = False) -> Markup:
    """Return a wide table in a scrollable box, with a hint to scroll."""
    box = tag("div", content, class_="scroll tall" if tall else "scroll", tabindex=0)
    hint = tag("p", "Scroll the table to see all columns.", class_="scroll-hint")
    return joined([hint, box])


def folded(title: str, *content: object) -> Markup:
    """Return content that is hidden until a click on its title."""
    return tag("details", tag("summary", title), *content)


def _column_head(title: str, kind: str) -> Markup:
    button = tag("button", title, type="button")
    return tag("th", button, scope="col", class_=kind, title=COLUMNS.get(title))


def head(text: str, tooltip: str = "") -> Markup:
    """Return the first cell of a row."""
    return tag("th", text, scope="row", title=tooltip or None)


def number(
    value: float | None, show: Callable[[float], str] = format_number, label: str | None = None
) -> Markup:
    """Return a cell with a number, by which the column is sorted."""
    name = f' data-label="{label}"' if label else ""
    if value is None:
        return Markup(f'<td class="number" data-value=""{name}>-</td>')
    # Reports have thousands of numbers, which need no escaping except for "<0.001".
    text = show(value).replace("<", "&lt;")
    return Markup(f'<td class="number" data-value="{value!r}"{name}>{text}</td>')


def count_text(count: float) -> str:
    """A number of rows."""
    return f"{count:,.0f}"


def curve_table(diagram: Reliability) -> Markup:
    """Return the bins of a reliability diagram."""
    rows = [
        [head(when), *map(number, cells), number(count, count_text)]
        for when, curve in (("before", diagram.before), ("after", diagram.after))
        for *cells, count in curve.bins()
    ]
    return scrolled(table("Bins of the reliability diagram", CURVE_COLUMNS, rows))


def metric_tables(rows: Sequence[MetricRow], effect: str) -> Markup:
    """Return the tables of metrics, with charts of the values before and after calibration.

    Six metrics are visible, and the other metrics are collapsed.
    """
    *titles, note = METRIC_COLUMNS
    options: dict[str, Any] = {"note": note, "chart": _CHART, "kind": "cards"}
    draw = partial(table, "Before and after calibration", titles, **options)
    return _partly_folded(
        draw, [_metric_cells(row, effect) for row in rows], _NOT_FOLDED, "measures"
    )


def _partly_folded(
    draw: Callable[[Rows], Markup], rows: Rows, n_shown: int, content: str
) -> Markup:
    """Return a table of the first rows, and a folded table of the other rows."""
    first = draw(rows[:n_shown])
    if len(rows) <= n_shown:
        return first
    return joined([first, folded(f"{len(rows) - n_shown} more {content}", draw(rows[n_shown:]))])


def _metric_cells(row: MetricRow, effect: str) -> list[Markup]:
    return [
        head(row.title, MEASURES[row.name]),
        tag("td", dots_svg(row.before, row.after), class_="chart"),
        _estimate(row.before, "before", "before"),
        _estimate(row.after, f"after {change(row, effect)}".strip(), "after"),
        tag("td", row.note, class_="note"),
    ]


def _estimate(estimate: Estimate, kind: str, label: str) -> Markup:
    parts = [tag("span", format_number(estimate.value), class_=kind)]
    if estimate.low is not None and estimate.high is not None:
        ends = format_interval(estimate.low, estimate.high)
        parts.append(tag("span", ends, class_="interval"))
    return tag("td", *parts, class_="number", data_value=repr(estimate.value), data_label=label)


def change(row: MetricRow, effect: str) -> str:
    """Return "better" or "worse" for a significant change, and otherwise an empty string."""
    # The paired interval of the change has more power than a comparison of two intervals.
    if row.name == "log_loss":
        return {"good": "better", "bad": "worse"}.get(effect, "")
    low, high = _apart(row.before, row.after)
    if row.better == "neither" or not (low or high):
        return ""
    return "better" if high == (row.better == "higher") else "worse"


def _apart(before: Estimate, after: Estimate) -> tuple[bool, bool]:
    """Return whether the interval after calibration lies below or above the interval before."""
    if before.low is None or before.high is None or after.low is None or after.high is None:
        return False, False
    return after.high < before.low, after.low > before.high


def class_table(report: Report) -> Markup:
    """Return the calibration errors of each class.

    If there are many classes, the largest errors come first.
    """
    rows = [
        [
            head(row.name),
            *(number(count, count_text) for count in (row.rows, row.predicted)),
            *map(number, (row.class_before, row.class_after, row.top_before, row.top_after)),
        ]
        for row in _ordered(report)
    ]
    return scrolled(
        table("Calibration error of each class", CLASS_COLUMNS, rows, kind="many"), tall=True
    )


def _ordered(report: Report) -> Sequence[ClassRow]:
    if report.n_classes <= MOST_PRINTED:
        return report.per_class
    return sorted(report.per_class, key=lambda row: -row.class_before)


def checks_table(report: Report) -> Markup:
    """Return the table of tests with their statistics and p-values."""
    *titles, note = TEST_COLUMNS
    rows = [_check_cells(test) for test in report.tests]
    return table("Tests of calibration", titles, rows, note=note, kind="cards")


def _check_cells(test: CheckRow) -> list[Markup]:
    before, after = TEST_COLUMNS[5:7]
    statistics = (
        *(test.statistic_before, test.expected_before),
        *(test.statistic_after, test.expected_after),
    )
    return [
        head(test.title, TESTS[test.name]),
        *(number(v, label=name) for name, v in zip(TEST_COLUMNS[1:5], statistics, strict=True)),
        number(test.p_holm_before, format_p_value, before),
        number(test.p_holm_after, format_p_value, after),
        tag("td", null_sentence(test), class_="note"),
    ]


def guarantee_tables(note: GuaranteeNote) -> Markup:
    """Return tables in which bars show bounds of the true frequency, in order of the classes."""
    draw = partial(
        table,
        "Guaranteed bounds of the true frequency",
        GUARANTEE_COLUMNS,
        chart=_UNIT_AXIS,
        kind="cards",
    )
    return _partly_folded(draw, [_bound_cells(*row) for row in note.bins], _FOLDED_BOUNDS, "bounds")


def _bound_cells(name: str, value: float, count: float, low: float, high: float) -> list[Markup]:
    labels = GUARANTEE_COLUMNS[1:4]
    return [
        head(name),
        tag("td", interval_svg(value, low, high), class_="chart"),
        *(number(v, label=label) for label, v in zip(labels, (value, low, high), strict=True)),
        number(count, count_text, GUARANTEE_COLUMNS[4]),
    ]


def plain_table(content: Any) -> Markup:
    """Return a table of groups, with its title."""
    rows = [[head(first), *map(_text_cell, texts)] for first, *texts in content.rows]
    return joined(
        [
            tag("h3", content.caption),
            scrolled(table(content.caption, content.header, rows), tall=True),
        ]
    )


def parameter_table(content: Any) -> Markup:
    """Return a collapsed table of fitted parameters.

    Cells of a matrix are shaded by their value.
    """
    sizes = [abs(v) for row in content.rows for v in row if isinstance(v, float)]
    is_matrix = len(content.header) > 3
    most = max(sizes, default=0.0) if is_matrix else 0.0
    rows = [[_cell(value, most) for value in row] for row in content.rows]
    kind = "heat" if is_matrix else None
    content_table = table(content.caption, content.header, rows, kind=kind)
    return folded(content.caption, scrolled(content_table, tall=True))


def _text_cell(text: str) -> Markup:
    """Return a cell with formatted numbers. The first number sorts the column."""
    start = text.partition(" ")[0].replace(",", "")
    return tag("td", text, class_="number", data_value=start)


def _cell(value: Any, most: float = 0.0) -> Markup:
    if isinstance(value, str):
        return head(value)
    if not most or value is None:
        return number(value)
    sign, share = ("positive" if value > 0 else "negative"), round(60 * abs(value) / most)
    style = f"background: color-mix(in srgb, var(--{sign}) {share}%, transparent)"
    return tag("td", format_number(value), class_="number", data_value=repr(value), style=style)
