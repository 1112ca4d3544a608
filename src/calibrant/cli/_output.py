"""Print the results of commands on standard output, and notes and progress on standard error."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.measure import Measurement

from calibrant._output import palette
from calibrant._output.progress import counted, spinning, tracked
from calibrant._validation import printable, printable_lines
from calibrant.cli import wrap_lines

_STYLES = {
    "good": "bold green",
    "mixed": "bold yellow",
    "bad": f"bold {palette.ALARM}",
}
"""Styles of headlines by the advice of a report. rich omits styles if there is no terminal."""

_UNLIMITED = 100_000
"""Width of tables that must not be wrapped."""


class _Console(Console):
    """A console that raises an error for a closed pipe, so the command line sets the exit code."""

    def on_broken_pipe(self) -> None:
        raise


class Output:
    """Destination and form of results and notes.

    Text is wrapped between words on a terminal. Lines of piped text are not wrapped, because
    programs read them.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.out = _Console(highlight=False)
        self.err = _Console(stderr=True, highlight=False)

    @property
    def is_terminal(self) -> bool:
        """Whether results are printed on a terminal."""
        return bool(self.out.is_terminal)

    def say(self, line: str) -> None:
        """Print a note on standard error, except with ``--quiet``."""
        if not self.quiet:
            _print_text(self.err, printable(line))

    def show(self, *parts: Any) -> None:
        """Print text and tables, except with ``--json``."""
        if self.as_json:
            return
        for part in parts:
            if isinstance(part, str):
                _print_text(self.out, printable_lines(part))
            else:
                self._print_table(part)

    def headline(self, text: str, advice: str) -> None:
        """Print the most important sentence, except with ``--json``. Terminals show a color."""
        if not self.as_json:
            _print_text(self.out, printable_lines(text), _STYLES[advice])

    def _print_table(self, table: Any) -> None:
        """Print a table, wrapped between words of cells if it is wider than the terminal.

        The table keeps its width if words would be broken, or if the output is piped.
        """
        width = self.out.width
        if not self.is_terminal or self.measure(table).minimum > width:
            self.out.width = _UNLIMITED
        self.out.print(table, soft_wrap=True)
        self.out.width = width

    def measure(self, table: Any) -> Measurement:
        """Return the minimum and the maximum width of a table, for any width of the terminal."""
        return self.out.measure(table, options=self.out.options.update(width=_UNLIMITED))

    def result(self, values: dict[str, Any]) -> None:
        """Print the result as JSON with ``--json``."""
        if self.as_json:
            sys.stdout.write(json.dumps(values, allow_nan=False) + "\n")

    def watch(self, blocks: Iterator[Any], n_rows: int | None) -> Iterator[Any]:
        """Yield the blocks of a file, with a progress bar over its rows."""
        return tracked(
            blocks,
            total=n_rows,
            description="Rows",
            progress=not self.quiet,
            size=lambda block: len(block.scores),
        )

    @contextmanager
    def working(self, what: str, *, spins: bool = True, n_steps: int = 0) -> Iterator[None]:
        """Show a spinner during long work, and print warnings as notes at the end.

        With ``n_steps``, a progress bar replaces the spinner. ``spins`` is False if the work shows
        its own progress.
        """
        is_shown = spins and not self.quiet
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if n_steps:
                shown = counted(n_steps, progress=is_shown)
            else:
                shown = spinning(what, progress=is_shown)
            with shown:
                yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.say(f"note: {text}")


def _print_text(console: Console, text: str, style: str | None = None) -> None:
    if console.is_terminal:
        text = wrap_lines(text, console.width)
    console.print(text, markup=False, soft_wrap=True, style=style)
