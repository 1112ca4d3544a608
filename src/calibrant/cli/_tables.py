"""Tables of results for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from calibrant._output import palette
from calibrant._output.numbers import format_interval, format_number, format_percent
from calibrant._validation import printable

if TYPE_CHECKING:  # each command imports the results that it shows
    from calibrant.cli._output import Output
    from calibrant.inference import Interval
    from calibrant.metrics import Evaluation, TopEvaluation
    from calibrant.monitoring import CalibrationMonitor
    from calibrant.report import Estimate, Report
    from calibrant.selection import Comparison

_COUNTS = {"n_samples": "rows", "n_classes": "classes"}

_MOST_GAPS = 10
"""Maximum number of rows of the table of gaps. The page of a monitor has more rows."""

_COLORS = {"before": palette.BEFORE, "after": palette.AFTER, "mark": palette.ALARM}
"""Colors of columns by their title, as in reports and figures."""

_COMPARISON_NOTE = (
    "Metrics are computed on all held-out rows. Lower is better, except for accuracy. The "
    "reduction in log-loss is relative to {first}. A confidence interval above 0 shows that a "
    "method reduces log-loss."
)
_GROUP_NOTE = "The confidence intervals of groups are not adjusted for the number of groups."
_SELECTION_NOTE = (
    "The best of several methods looks better than it is. Evaluate the selected method on rows "
    "that were not used for the selection."
)


def before_after(before: Evaluation | TopEvaluation, after: Evaluation | TopEvaluation) -> Table:
    """Metrics of two evaluations side by side."""
    from calibrant.metrics.registry import METRICS

    rows = []
    for name in before.to_dict():
        if name in METRICS:
            pair = (getattr(evaluation, name) for evaluation in (before, after))
            cells = ("-" if value is None else format_number(value) for value in pair)
            rows.append([METRICS[name].title, *cells])
    return _table(("", "before", "after"), rows)


def report_table(report: Report) -> Table:
    """Measures of a report before and after calibration, with confidence intervals."""
    rows = [
        [row.title, *_with_interval(row.before), *_with_interval(row.after)]
        for row in report.metrics
    ]
    return _table(("", "before", "95% CI", "after", "95% CI"), rows)


def _with_interval(estimate: Estimate) -> tuple[str, str]:
    if estimate.low is None or estimate.high is None:
        return format_number(estimate.value), ""
    return format_number(estimate.value), format_interval(estimate.low, estimate.high)


def show_evaluation(
    result: Any, output: Output, intervals: Mapping[str, Interval] | None = None
) -> None:
    """Print an evaluation with its confidence intervals: tables on a terminal, text for a pipe."""
    from calibrant.metrics import GroupedEvaluation

    estimates = {} if intervals is None else intervals
    if isinstance(result, GroupedEvaluation):
        show_rows(result, output)
    elif output.is_terminal:
        titles, rows = _evaluation_cells(result, estimates)
        output.show(_table(titles, rows))
    else:
        output.show(str(result), *interval_lines(estimates))


def show_rows(result: Any, output: Output) -> None:
    """Print a result with a header, rows and a note: a table on a terminal, else plain text."""
    if output.is_terminal:
        output.show(_table(result.header, result.rows()), "", result.note())
    else:
        output.show(str(result))


def _evaluation_cells(
    result: Any, intervals: Mapping[str, Interval]
) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of the table of one evaluation."""
    rows = {}
    for name, value in result.to_dict().items():
        title = _metric_title(name, _COUNTS.get(name, name))
        rows[title] = [title, _value_text(value), ""]
    for name, entry in intervals.items():
        title = _metric_title(name, entry.quantity)
        # An interval completes the row of its measure, or adds a new row.
        interval = format_interval(entry.low, entry.high)
        rows[title] = [title, format_number(entry.estimate), interval]
    if not intervals:
        return ["", "value"], [row[:2] for row in rows.values()]
    return ["", "value", "95% CI"], list(rows.values())


def _metric_title(name: str, otherwise: str) -> str:
    """Title of a metric, or another title if there is no metric of this name."""
    from calibrant.metrics.registry import METRICS

    return METRICS[name].title if name in METRICS else otherwise


def _value_text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else format_number(float(value))


def interval_lines(intervals: Mapping[str, Interval]) -> list[str]:
    """One line per confidence interval."""
    return [
        f"{_metric_title(name, entry.quantity)}: {format_number(entry.estimate)} "
        f"({format_percent(entry.level)} CI {format_interval(entry.low, entry.high)}, "
        f"{entry.guarantee})"
        for name, entry in intervals.items()
    ]


def gap_table(monitor: CalibrationMonitor) -> Table:
    """Return a table of the gaps with the strongest evidence."""
    gaps = sorted(monitor.gaps(), key=lambda gap: -gap.nats)[:_MOST_GAPS]
    rows = [
        [
            gap.claim,
            f"{gap.n_rows:,}",
            format_number(gap.mean, signed=True),
            format_interval(gap.low, gap.high, signed=True),
            format_number(gap.nats),
            "check" if gap.is_listed else "",
        ]
        for gap in gaps
    ]
    return _table(("", "rows", "mean gap", "95% CI", "log e-value", "mark"), rows)


def show_monitor(monitor: CalibrationMonitor, output: Output) -> None:
    """Print the state of a monitor: sentences, and a table of gaps on a terminal."""
    first, *lines = str(monitor).split("\n")
    output.headline(first, "bad" if monitor.alarm else "good")
    output.show(*lines)
    if output.is_terminal and monitor.n_rows:
        output.show("", gap_table(monitor))


def show_comparison(result: Comparison, output: Output) -> None:
    """Print a comparison: tables on a terminal, Markdown for a pipe."""
    if not output.is_terminal:
        output.show(str(result))
        return
    _show_tables(result, output, has_titles=len(result.datasets) > 1)
    output.show("", _COMPARISON_NOTE.format(first=printable(result.methods[0])))
    if result.by_group is not None:
        output.show("")
        _show_tables(result.by_group, output, has_titles=True)
        output.show("", _GROUP_NOTE)
    if len(result.methods) > 2:
        output.show("", _SELECTION_NOTE)
    output.show(*result.notes)


def _show_tables(result: Comparison, output: Output, *, has_titles: bool) -> None:
    for place, name in enumerate(result.datasets):
        if has_titles:
            output.show(*([""] if place else []), name)
        titles, rows = _comparison_cells(result, place)
        whole = _table(titles, rows, has_names=True)
        if output.measure(whole).maximum <= output.out.width:
            output.show(whole)
            continue
        # The last two columns describe the reduction in log-loss.
        metrics = _table(titles[:-2], [row[:-2] for row in rows], has_names=True)
        reduction = [[row[0], *row[-2:]] for row in (titles, *rows)]
        output.show(metrics, "", _table(reduction[0], reduction[1:], has_names=True))


def _comparison_cells(result: Comparison, place: int) -> tuple[list[str], list[list[str]]]:
    """Titles and rows of the table of one data set."""
    titles = [_metric_title(name, name) for name in result.metrics]
    rows = []
    for m, method in enumerate(result.methods):
        values = [format_number(value) for value in result.mean[place, m].tolist()]
        gain = result.gains[result.datasets[place], method, "log_loss"]
        reduction = [
            format_number(gain.gain, signed=True),
            format_interval(gain.low, gain.high, signed=True),
        ]
        # The first method is uncalibrated, so it has no reduction in log-loss.
        rows.append([method, *values, *(reduction if m else ["", ""])])
    return ["method", *titles, "log-loss reduction", "95% CI"], rows


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, has_names: bool = False
) -> Table:
    """Return a table without lines. The first column is text, and the other columns are numbers.

    ``has_names`` keeps the cells of the first column on one line.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, title in enumerate(titles):
        # Titles are wrapped to the width of the cells, so they do not widen the table.
        width = max([len(row[place]) for row in rows] + [len(word) for word in title.split()] + [1])
        lines = textwrap.wrap(title, width, break_long_words=False, break_on_hyphens=False)
        justify: Any = "right" if place else "left"
        no_wrap = has_names and place == 0
        head = escape("\n".join(lines))
        style = _COLORS.get(title)
        table.add_column(
            head,
            justify=justify,
            no_wrap=no_wrap,
            style=style,
            header_style=style,
            min_width=_longest_word(title, *(row[place] for row in rows)),
        )
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    return table


def _longest_word(*texts: str) -> int:
    """Length of the longest word, so no word is cut in a narrow terminal."""
    return max((len(word) for text in texts for word in text.split()), default=1)
