"""The content: frozen, plain, and complete."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import pytest

from calibrant.report import _content


def test_content_is_plain_and_names_its_schema(hostile):
    content = hostile.to_dict()
    assert content["schema"] == "calibrant.report/1"
    assert set(content) == {"schema", *(entry.name for entry in fields(hostile))}
    json.dumps(content, allow_nan=False)


def test_content_is_frozen(hostile):
    with pytest.raises(FrozenInstanceError):
        hostile.name = "other"


def test_no_class_is_taken_for_tests():
    assert not [name for name in vars(_content) if name.startswith("Test")]
