"""Text of others, such as names of classes, columns and files, as it may be shown."""

from __future__ import annotations

import unicodedata
from typing import Any

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
    return "".join(map(_shown, text))


def printable_lines(value: Any) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(map(printable, str(value).split("\n")))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
