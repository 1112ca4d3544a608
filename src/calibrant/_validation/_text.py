"""Pieces of messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from calibrant._typing import AnyArray

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Kinds of characters that are not seen, or that command what shows them: control and escape
characters, marks that turn the direction of writing, halves of characters, line ends."""

_JOINERS = "\u200c\u200d"
"""Of that kind, but parts of words of some languages and of emoji."""


def printable(value: Any) -> str:
    r"""A value as text that a terminal, a log and a page show as it is: what would command them is
    written out.

    Examples
    --------
    >>> print(printable("red \x1b[31m and\nnext"))
    red \x1b[31m and\nnext
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_written_out, text))


def printable_lines(value: Any) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(map(printable, str(value).split("\n")))


def _written_out(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def shortened(
    values: Sequence[Any] | AnyArray, limit: int = 8, show: Callable[[Any], str] = printable
) -> str:
    """The first of some values for a message, and how many more there are."""
    first = values[:limit].tolist() if isinstance(values, np.ndarray) else values[:limit]
    rest = len(values) - limit
    return ", ".join(map(show, first)) + (f" and {rest:,} more" if rest > 0 else "")


def unknown_name(kind: str, name: Any, valid: Iterable[str], otherwise: str = "") -> str:
    """The message about a name that does not exist: the nearest one, and all that do."""
    names = list(valid)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    rest = f", or {otherwise}" if otherwise else ""
    return f"unknown {kind} {name!r}; {hint}valid are {', '.join(names)}{rest}"
