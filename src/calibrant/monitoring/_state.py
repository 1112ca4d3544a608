"""States as JSON: plain numbers, checked one by one when they are read; nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray

_LARGEST_TEXT = 2**28
"""Characters of a state that are read at most: no state that was written here is near it."""


def as_numbers(array: FloatArray) -> list[Any]:
    """Numbers for JSON, bit by bit; -inf, the logarithm of nothing, is null."""
    return [None if value == -np.inf else value for value in np.ravel(array).tolist()]


def read_state(text: str, schema: str, what: str) -> dict[str, Any]:
    """The state of a text; anything else is a ``ValueError``."""
    if not isinstance(text, str) or len(text) > _LARGEST_TEXT:
        raise ValueError(f"not the JSON of a {what}: a text of at most 256 MB is expected")
    try:
        state = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not the JSON of a {what}: {error}") from None
    if not isinstance(state, dict) or state.get("schema") != schema:
        found = state.get("schema") if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"not the JSON of a {what}: schema is {found!r}, expected {schema!r}")
    return state


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of a state")


def numbers(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...], *, low: float = -1e15
) -> FloatArray:
    """The array of that key and shape: finite numbers of at least ``low``, or null for -inf."""
    values = entry(state, key)
    if not isinstance(values, list) or len(values) != int(np.prod(shape)):
        raise ValueError(f"{key} of the state must be a list of {int(np.prod(shape))} numbers")
    if not all(value is None or _is_number(value) for value in values):
        raise ValueError(f"{key} of the state holds something that is no number")
    array = np.array([-np.inf if value is None else float(value) for value in values])
    finite = array[np.isfinite(array)]
    if not ((finite >= low) & (finite <= 1e15)).all():
        raise ValueError(f"{key} of the state holds a number that cannot be")
    return array.reshape(shape)


def finite_numbers(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...], *, low: float = -1e15
) -> FloatArray:
    """As `numbers`, without null."""
    array = numbers(state, key, shape, low=low)
    if not np.isfinite(array).all():
        raise ValueError(f"{key} of the state must hold finite numbers")
    return array


def number(state: Mapping[str, Any], key: str, low: float, high: float) -> float:
    """One number within bounds."""
    value = entry(state, key)
    if not _is_number(value) or not low <= value <= high:
        raise ValueError(f"{key} of the state must be a number from {low:g} to {high:g}")
    return value


def entry(state: Mapping[str, Any], key: str) -> Any:
    """What a state holds at a key."""
    if key not in state:
        raise ValueError(f"the state lacks {key!r}")
    return state[key]


def read_classes(state: Mapping[str, Any], low: int = 2) -> AnyArray | None:
    """Labels of columns: different strings, different whole numbers or false and true; or null."""
    values = entry(state, "classes")
    if values is None:
        return None
    if not isinstance(values, list) or len(values) < low:
        raise ValueError("classes of the state must be a list of labels")
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}, {bool}) or len(set(values)) != len(values):
        raise ValueError("classes of the state must be different texts, whole numbers or truths")
    return np.array(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
