"""JSON of unknown origin."""

from __future__ import annotations

import pytest

from calibrant._output.documents import parse_json


def test_a_document_is_what_json_says():
    assert parse_json('{"a": [1, null, "x"], "b": {"a": true}}') == {
        "a": [1, None, "x"],
        "b": {"a": True},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "'a' more than once"),
        ('{"b": {"a": 1, "c": 0, "a": 2}}', "'a' more than once"),
        ("[NaN]", "NaN is not allowed"),
        ("[-Infinity]", "-Infinity is not allowed"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ],
)
def test_everything_else_is_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)
