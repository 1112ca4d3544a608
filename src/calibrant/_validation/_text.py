"""Formatting of values in messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from calibrant._typing import AnyArray

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of invisible characters and of characters that control a terminal. These are
control and escape characters, direction marks, surrogates, line and paragraph separators."""

_JOINERS = "\u200c\u200d"
"""Zero-width joiners, which belong to words and emoji. These invisible characters are shown."""


def printable(value: Any) -> str:
    r"""Return a value as text in which control characters are escaped.

    The text is safe to show in a terminal, a log and an HTML page.

    Examples
    --------
    >>> print(printable("red \x1b[31m and\nnext"))
    red \x1b[31m and\nnext
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escaped, text))


def printable_lines(value: Any) -> str:
    """Return text of several lines with control characters escaped, except for line ends."""
    return "\n".join(map(printable, str(value).split("\n")))


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def shortened(
    values: Sequence[Any] | AnyArray, limit: int = 8, show: Callable[[Any], str] = printable
) -> str:
    """List the first values for a message, and state the number of the other values."""
    first = values[:limit].tolist() if isinstance(values, np.ndarray) else values[:limit]
    n_more = len(values) - limit
    return ", ".join(map(show, first)) + (f" and {n_more:,} more" if n_more > 0 else "")


def unknown_name(kind: str, name: Any, valid: Iterable[str], otherwise: str = "") -> str:
    """Return the message for an unknown name: the nearest valid name, and all valid names."""
    names = list(valid)
    nearest = get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    alternative = f", or {otherwise}" if otherwise else ""
    return f"Unknown {kind} {name!r}.{hint} Valid names are {', '.join(names)}{alternative}."
