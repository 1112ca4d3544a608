"""Markdown tables of comparisons and reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibrant._output.numbers import format_number
from calibrant._validation import printable


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table with one line per row.

    Floats have three significant digits, and None is shown as "-".

    Examples
    --------
    >>> print(markdown_table(["method", "loss"], [["a|b", 0.25], ["none", None]]))
    | method | loss |
    | --- | --- |
    | a\|b | 0.250 |
    | none | - |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return format_number(value)
    return "-" if value is None else plain(str(value))


def plain(text: str) -> str:
    """Escape text for Markdown, and remove line breaks."""
    one_line = printable(" ".join(text.split()))
    return (
        one_line.replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("`", "\\`")
    )
