"""What the commands print: results on standard output, remarks and progress on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from calibrant._output.progress import spinning, tracked
from calibrant._validation import printable, printable_lines

if TYPE_CHECKING:  # each command imports what it shows
    from calibrant.metrics import Evaluation, TopEvaluation
    from calibrant.report import Estimate, Report


class _Console(Console):
    """A console that leaves a closed pipe to the command line, which decides the exit code."""

    def on_broken_pipe(self) -> None:
        raise


class Output:
    """Where results and remarks go, and in which form."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.out = _Console(highlight=False, soft_wrap=True)
        self.err = _Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, line: str) -> None:
        """A remark."""
        if not self.quiet:
            self.err.print(printable(line), markup=False)

    def show(self, *shown: Any) -> None:
        """Text and tables for people; nothing where JSON is asked for."""
        if self.as_json:
            return
        for part in shown:
            if isinstance(part, str):
                self.out.print(printable_lines(part), markup=False)
            else:
                self.out.print(part)

    def result(self, values: dict[str, Any]) -> None:
        """The result as JSON, where it is asked for."""
        if self.as_json:
            sys.stdout.write(json.dumps(values, allow_nan=False) + "\n")

    def watch(self, blocks: Iterator[Any], n_rows: int | None) -> Iterator[Any]:
        """The blocks of a file, with a bar of its rows."""
        return tracked(
            blocks,
            total=n_rows,
            description="rows",
            progress=not self.quiet,
            size=lambda block: len(block.scores),
        )

    @contextmanager
    def working(self, what: str, *, spins: bool = True) -> Iterator[None]:
        """A spinner while something takes long, unless it shows itself; warnings of fits become
        remarks.
        """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with spinning(what, progress=spins and not self.quiet):
                yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.say(f"note: {text}")


def before_after(before: Evaluation | TopEvaluation, after: Evaluation | TopEvaluation) -> Table:
    """Two evaluations side by side."""
    from calibrant.metrics.registry import METRICS

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for name in before.to_dict():
        if name in METRICS:
            pair = (getattr(evaluation, name) for evaluation in (before, after))
            shown = ("-" if value is None else f"{value:.5f}" for value in pair)
            table.add_row(METRICS[name].title, *shown)
    return table


def report_table(report: Report) -> Table:
    """The table of a report: before and after with intervals."""
    table = Table(box=None, pad_edge=False)
    for title in ("", "before", "", "after", ""):
        table.add_column(title, justify="left" if not title else "right")
    for row in report.metrics:
        table.add_row(f"  {row.title}", *_with_interval(row.before), *_with_interval(row.after))
    return table


def _with_interval(estimate: Estimate) -> tuple[str, str]:
    interval = "" if estimate.low is None else f"[{estimate.low:.3f}, {estimate.high:.3f}]"
    return f"{estimate.value:.4f}", escape(interval)
