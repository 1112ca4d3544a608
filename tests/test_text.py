"""Text of others: what commands a terminal is written out, what is read stays."""

from __future__ import annotations

import pytest

from calibrant._text import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m", "\\x9b31m"),
        ("evil\u202egpj.exe", "evil\\u202egpj.exe"),
        ("half \udc80", "half \\udc80"),
        ("two\u2028lines", "two\\u2028lines"),
        ("straße 東京", "straße 東京"),
        ("👩\u200d🔬", "👩\u200d🔬"),
    ],
)
def test_what_is_unseen_is_written_out(text, shown):
    assert printable(text) == shown


def test_lines_stay_lines():
    assert printable_lines("one\x07\ntwo") == "one\\x07\ntwo"
