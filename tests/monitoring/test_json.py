"""States as JSON: numbers that are checked one by one, and nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant.monitoring._json import (
    as_numbers,
    read_classes,
    read_finite_numbers,
    read_number,
    read_numbers,
    read_state,
    read_value,
)


def test_numbers_go_to_json_and_back_bit_by_bit(rng):
    array = rng.normal(size=(2, 3)) * 1e9
    array[1, 2] = -np.inf
    state = json.loads(json.dumps({"a": as_numbers(array)}, allow_nan=False))
    assert state["a"][-1] is None
    np.testing.assert_array_equal(read_numbers(state, "a", (2, 3)), array)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("text", "a list of 2 numbers"),
        ([1.0], "a list of 2 numbers"),
        ([1.0, True], "must contain only numbers and null"),
        ([1.0, "2"], "must contain only numbers and null"),
        ([1.0, -1.0], "must contain numbers from 0 to 1e15"),
        ([1.0, 1e16], "must contain numbers from 0 to 1e15"),
    ],
    ids=str,
)
def test_what_is_no_array_of_such_numbers_is_rejected(values, message):
    with pytest.raises(ValueError, match=f"'a' in the state .*{message}"):
        read_numbers({"a": values}, "a", (2,), low=0.0)


def test_null_is_no_finite_number():
    with pytest.raises(ValueError, match="must contain only numbers, got null"):
        read_finite_numbers({"a": [None]}, "a", (1,))


@pytest.mark.parametrize("value", [2.0, -0.1, True, "1", None])
def test_one_number_keeps_its_bounds(value):
    assert read_number({"a": 0.5}, "a", 0.0, 1.0) == 0.5
    with pytest.raises(ValueError, match="'a' in the state must be a number from 0 to 1"):
        read_number({"a": value}, "a", 0.0, 1.0)


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="the key 'a' is missing from the state"):
        read_value({}, "a")


def test_a_text_is_read_by_its_schema():
    assert read_state('{"schema": "s/1", "a": 1}', "s/1", "thing") == {"schema": "s/1", "a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "a string of at most 268,435,456 characters, got bytes"),
        ("{", "The text is not the JSON text of thing"),
        ("[" * 100_000, "The text is not the JSON text of thing"),
        ('{"schema": NaN}', "NaN is not allowed"),
        ("[]", "schema is 'list', expected 's/1'"),
        ('{"schema": "s/2"}', "schema is 's/2', expected 's/1'"),
    ],
    ids=["bytes", "broken", "deep", "nan", "list", "version"],
)
def test_what_is_no_state_is_rejected(text, message):
    with pytest.raises(ValueError, match=message):
        read_state(text, "s/1", "thing")


@pytest.mark.parametrize("classes", [["a", "b"], [2, 1], [True, False]])
def test_classes_are_texts_whole_numbers_or_truths(classes):
    assert read_classes({"classes": classes}).tolist() == classes
    assert read_classes({"classes": None}) is None


@pytest.mark.parametrize("classes", ["ab", ["a"], ["a", "a"], ["a", 1], [0.5, 1.5], [True, 2]])
def test_other_classes_are_rejected(classes):
    with pytest.raises(ValueError, match="'classes' in the state must be"):
        read_classes({"classes": classes})
