"""Values as JSON and back, one kind at a time; whole calibrators are in `test_saving`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant.io._codec import Reader, Writer
from calibrant.notions import as_notion


def there_and_back(value):
    text = json.dumps(Writer({}).value(value, "x"), allow_nan=False)
    return Reader({}).value(json.loads(text))


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -2.5, "text", float("inf"), -float("inf"), [1, [2.0]], (1, "a"), {"a": (1,)}],
)
def test_plain_values_come_back_with_their_types(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back_bit_by_bit_and_in_their_order_in_memory(dtype, order, rng):
    array = np.asarray(10 * rng.random((3, 4)), dtype=dtype, order=order)
    back = there_and_back(array)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    assert back.flags.f_contiguous == array.flags.f_contiguous


def test_arrays_of_text_and_of_anything_come_back():
    text, anything = np.array(["a", "øl"]), np.array(["a", 1, None], dtype=object)
    np.testing.assert_array_equal(there_and_back(text), text)
    assert there_and_back(anything).tolist() == anything.tolist()


def test_a_notion_is_written_by_its_name():
    assert Writer({}).value(as_notion("top-label"), "x") == {"notion": "top-label"}
    assert there_and_back(as_notion("rank-2")) == as_notion("rank-2")


def test_what_cannot_be_written_is_named_with_its_place():
    with pytest.raises(TypeError, match=r"here is .* a Generator, which cannot be saved"):
        Writer({}).value(np.random.default_rng(0), "here")
    with pytest.raises(ValueError, match="here is NaN"):
        Writer({}).value(float("nan"), "here")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"what": 1},
        {"float": "nan"},
        {"tuple": 3},
        {"map": [[1]]},
        {"model": 0},
        {"record": "X"},
    ],
)
def test_what_no_writer_wrote_is_rejected(value):
    with pytest.raises(ValueError, match=r"."):
        Reader({}).value(value)
