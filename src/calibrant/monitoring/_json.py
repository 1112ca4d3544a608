"""Read and write the states of monitors as JSON.

All values are checked, and no code in a state is executed.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._output.documents import parse_json
from calibrant._typing import AnyArray, FloatArray

_MAX_CHARACTERS = 2**28
"""Maximum length of the text. The states that this package writes are far shorter."""

_MAX_SIZE = 1e15
"""Largest valid number in a state."""


def as_numbers(array: FloatArray) -> list[Any]:
    """Convert an array to exact numbers for JSON. -inf, the logarithm of zero, becomes null."""
    return [None if value == -np.inf else value for value in np.ravel(array).tolist()]


def read_state(text: str, schema: str, name: str) -> dict[str, Any]:
    """Parse the state of the class ``name``, and raise ValueError if the state is not valid."""
    fix = f"Pass the text that {name}.to_json() returned."
    state = _parse_state(text, name, fix)
    if not isinstance(state, dict) or state.get("schema") != schema:
        schema_found = state.get("schema") if isinstance(state, dict) else type(state).__name__
        raise ValueError(
            f"The text is not the JSON text of {name} (schema is {schema_found!r}, expected "
            f"{schema!r}). {fix}"
        )
    return state


def _parse_state(text: str, name: str, fix: str) -> Any:
    if not isinstance(text, str) or len(text) > _MAX_CHARACTERS:
        actual = f"{len(text):,} characters" if isinstance(text, str) else type(text).__name__
        raise ValueError(
            f"The state of {name} must be a string of at most {_MAX_CHARACTERS:,} characters, got "
            f"{actual}. {fix}"
        )
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"The text is not the JSON text of {name} ({error}). {fix}") from None


def read_numbers(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...], *, low: float = -1e15
) -> FloatArray:
    """Read an array of numbers of at least ``low``, in which null means -inf."""
    values = read_value(state, key)
    if not isinstance(values, list) or len(values) != int(np.prod(shape)):
        raise ValueError(
            f"{key!r} in the state must be a list of {int(np.prod(shape))} numbers, got "
            f"{reprlib.repr(values)}"
        )
    _check_numbers(values, key, low)
    array = np.array([-np.inf if value is None else float(value) for value in values])
    return array.reshape(shape)


def _check_numbers(values: list[Any], key: str, low: float) -> None:
    if not all(value is None or _is_number(value) for value in values):
        raise ValueError(
            f"{key!r} in the state must contain only numbers and null, got {reprlib.repr(values)}"
        )
    # Check the range before the conversion, because an integer may be too large for a float.
    if not all(value is None or low <= value <= _MAX_SIZE for value in values):
        raise ValueError(
            f"{key!r} in the state must contain numbers from {low:g} to 1e15, got "
            f"{reprlib.repr(values)}"
        )


def read_finite_numbers(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...], *, low: float = -1e15
) -> FloatArray:
    """Read an array as `read_numbers` does, but reject null."""
    array = read_numbers(state, key, shape, low=low)
    if not np.isfinite(array).all():
        raise ValueError(f"{key!r} in the state must contain only numbers, got null")
    return array


def read_number(state: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """Read a number between ``low`` and ``high``."""
    value = read_value(state, key)
    if not _is_number(value) or not low <= value <= high:
        raise ValueError(
            f"{key!r} in the state must be a number from {low:g} to {high:g}, got "
            f"{reprlib.repr(value)}"
        )
    return value


def read_count(state: Mapping[str, Any], key: str) -> int:
    """Read a number of rows."""
    return int(read_number(state, key, 0, 1e15))


def read_value(state: Mapping[str, Any], key: str) -> Any:
    """Read the value of a required key."""
    if key not in state:
        raise ValueError(f"the key {key!r} is missing from the state")
    return state[key]


def read_classes(state: Mapping[str, Any], low: int = 2) -> AnyArray | None:
    """Read the class labels, which are distinct strings, integers or booleans.

    Return None for null.
    """
    values = read_value(state, "classes")
    if values is None:
        return None
    _check_labels(values, low)
    labels = np.array(values)
    # Integers that do not all fit into int64, or all into uint64, become floats or objects.
    if labels.dtype.kind not in "Uib":
        raise ValueError("'classes' in the state must be integers of at most 64 bits")
    return labels


def _check_labels(values: Any, low: int) -> None:
    if not isinstance(values, list) or len(values) < low:
        raise ValueError(
            f"'classes' in the state must be a list of at least {low} labels, got "
            f"{reprlib.repr(values)}"
        )
    types = {type(value) for value in values}
    if types not in ({str}, {int}, {bool}) or len(set(values)) != len(values):
        raise ValueError(
            "'classes' in the state must be distinct labels of one type (strings, integers or "
            f"booleans), got {reprlib.repr(values)}"
        )


def read_metadata(state: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values that the caller stored with the state."""
    metadata = read_value(state, "metadata")
    if not isinstance(metadata, dict):
        raise ValueError("'metadata' in the state must be an object")
    return metadata


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
