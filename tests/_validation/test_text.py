"""Pieces of messages: lists are short, names have a nearest one, text of others is harmless."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation._text import printable, printable_lines, shortened, unknown_name


def test_long_lists_are_shortened_and_counted():
    assert shortened(["a", "b"]) == "a, b"
    assert shortened(np.arange(2000), 2) == "0, 1 and 1,998 more"
    assert shortened(["a", "b", "c"], 2, show=repr) == "'a', 'b' and 1 more"


def test_an_unknown_name_suggests_the_nearest_and_lists_all():
    message = unknown_name("method", "temprature", ["identity", "temperature"], "a calibrator")
    expected = "Did you mean 'temperature'? Valid names are identity, temperature, or a calibrator."
    assert message == f"Unknown method 'temprature'. {expected}"
    assert unknown_name("method", "magic", ["identity"]) == (
        "Unknown method 'magic'. Valid names are identity."
    )


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
