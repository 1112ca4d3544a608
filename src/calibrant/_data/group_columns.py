"""Columns that define groups of rows, such as the country and the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.sample import Sample
from calibrant._typing import AnyArray, IntArray
from calibrant._validation import as_array, check_same_length, is_missing

MISSING = "missing"
"""Name of the group of rows whose group is missing."""

_MOST_GROUPS = 200


def as_columns(by: Any) -> dict[str, Any]:
    """Return the columns that define groups by name, from a mapping, data frame, series or array.

    Dask columns are not computed.
    """
    columns = {str(name): _as_column(part) for name, part in _named_columns(by).items()}
    if not columns:
        raise ValueError(
            "by has no columns. Pass an array with the group of each row, or a dict of such arrays."
        )
    for name, part in columns.items():
        if part.ndim != 1:
            raise ValueError(
                f"by {name!r} must be a 1D array with the group of each row, got shape "
                f"{part.shape}. To combine several columns, pass a dict, such as "
                f"by={{'site': site, 'sex': sex}}."
            )
    return columns


def _named_columns(by: Any) -> Mapping[Any, Any]:
    if isinstance(by, Mapping):
        return by
    if getattr(by, "columns", None) is not None:  # pandas, polars and dask
        return {name: by[name] for name in by.columns}
    # The name of a dask array is a key of its graph, which means nothing to users.
    name = None if hasattr(by, "chunks") else getattr(by, "name", None)
    return {name or "group": by}


def _as_column(column: Any) -> Any:
    if hasattr(column, "chunks"):
        return column
    array = as_array(column)
    # In an array of strings, NumPy turns None and NaN into text, so keep the original values.
    is_text_list = array.dtype.kind == "U" and isinstance(column, list | tuple)
    return np.array(column, dtype=object) if is_text_list and array.ndim == 1 else array


def name_groups(by: Any) -> AnyArray:
    """Return the name of each row's group, (n,)."""
    columns = as_columns(by)
    check_same_length(**columns)
    names = np.empty(len(next(iter(columns.values()))), dtype=object)
    for name, rows in cut_groups({key: np.asarray(part) for key, part in columns.items()}).items():
        names[rows] = name
    return names.astype(str)


def cut_groups(columns: Mapping[str, AnyArray]) -> dict[str, IntArray]:
    """Return the rows of every combination of values that occurs, in the order of the values."""
    codes_and_names = [_code(name, part) for name, part in columns.items()]
    codes = np.stack([code for code, _ in codes_and_names], axis=1)
    combinations, place = np.unique(codes, axis=0, return_inverse=True)
    order = np.argsort(place.ravel(), kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(place.ravel()))[:-1])
    levels = [values for _, values in codes_and_names]
    names = [_name(tuple(columns), levels, combination) for combination in combinations]
    if len(set(names)) < len(names):  # a value may contain ", " and "="
        quoted = [[repr(value) for value in values] for values in levels]
        names = [_name(tuple(columns), quoted, combination) for combination in combinations]
    return dict(zip(names, rows, strict=True))


def _name(columns: tuple[str, ...], levels: Sequence[list[str]], codes: IntArray) -> str:
    values = [values[code] for values, code in zip(levels, codes, strict=True)]
    if len(columns) == 1:
        return values[0]
    return ", ".join(f"{name}={value}" for name, value in zip(columns, values, strict=True))


def _code(name: str, column: AnyArray) -> tuple[IntArray, list[str]]:
    """Return the codes of a column and their names. Missing values form the last group."""
    values = (_dated(column) if column.dtype.kind == "M" else column).tolist()
    distinct = {value for value in values if not is_missing_group(value)}
    if len(distinct) > _MOST_GROUPS:
        raise ValueError(
            f"by {name!r} has {len(distinct):,} different values, but at most {_MOST_GROUPS} are "
            "allowed. Bin the values first, for example with np.digitize(x, edges) or "
            "dates.astype('datetime64[M]')."
        )
    place = {value: code for code, value in enumerate(_sorted(distinct))}
    # Missing values are never keys, because NaN differs from itself.
    codes = [len(place) if is_missing_group(value) else place[value] for value in values]
    names = [*map(_group_text, place), MISSING]
    if len(set(names)) < len(names):  # 1 and "1" have the same str(), but not the same repr()
        names = [*map(repr, place), MISSING]
    return np.array(codes, dtype=np.intp), names


def _dated(column: AnyArray) -> AnyArray:
    """Return dates as text, without the time if all times are midnight."""
    days = column.astype("datetime64[D]")
    is_finer = column.dtype > days.dtype
    has_hours = is_finer and bool((column != days)[~np.isnat(column)].any())
    return (days if is_finer and not has_hours else column).astype(str)


def _sorted(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # values of different types cannot be compared
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


class GroupLevels(NamedTuple):
    """Sorted names of the groups of each column.

    The groups of all columns are numbered in this order. Names are text, so 1 of a data frame and
    "1" of a text file are the same group.
    """

    names: tuple[AnyArray, ...]

    @classmethod
    def of(cls, sample: Sample) -> GroupLevels:
        """Find the groups of all rows with positive weight in one pass."""
        chunks = sample.sum_chunks(_names_in_chunk)
        columns = zip(*chunks, strict=True)
        return cls(tuple(np.array(sorted(set().union(*names)), dtype=str) for names in columns))

    @property
    def n_groups(self) -> int:
        """Number of groups of all columns."""
        return sum(map(len, self.names))

    def codes(self, columns: Sequence[AnyArray]) -> IntArray:
        """Return the group number of each row and column, or -1 for missing and unknown groups."""
        first, codes = 0, []
        for column, names in zip(columns, self.names, strict=True):
            place = {name: first + number for number, name in enumerate(names.tolist())}
            texts, inverse = distinct_names(column)
            numbers = np.array([-1 if text is None else place.get(text, -1) for text in texts])
            codes.append(numbers[inverse])
            first += len(names)
        return np.stack(codes, axis=1)


def _names_in_chunk(chunk: Any) -> list[tuple[set[str], ...]]:
    is_present = chunk.weight > 0
    names = (distinct_names(column[is_present])[0] for column in chunk.columns)
    return [tuple({name for name in texts if name is not None} for texts in names)]


def distinct_names(column: AnyArray) -> tuple[list[str | None], IntArray]:
    """Return the names of the distinct values of a column, and the position of each row's value.

    The name of a missing value is None.
    """
    if column.dtype.kind == "O":
        place: dict[Any, int] = {}
        inverse = [place.setdefault(value, len(place)) for value in column.tolist()]
        return [group_name(value) for value in place], np.array(inverse, dtype=np.intp)
    values, codes = np.unique(column, return_inverse=True)
    # tolist() would convert dates with nanoseconds to integers.
    distinct = list(values) if column.dtype.kind == "M" else values.tolist()
    return [group_name(value) for value in distinct], codes


def group_name(value: Any) -> str | None:
    """Return the name of a value, or None for a missing value.

    2.0 and 2 have the same name. A date has the same name in all types, and its name contains the
    time only if the time is not midnight.
    """
    return None if is_missing_group(value) else _group_text(value)


def is_missing_group(value: Any) -> bool:
    """Return whether a value stands for a missing group."""
    return is_missing(value) or (isinstance(value, str) and value == "NaT")


def _group_text(value: Any) -> str:
    # A column of integers with missing values is a column of floats in pandas.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, np.datetime64) and value.dtype > np.dtype("M8[D]"):
        value = value.astype("M8[us]").item()
    if isinstance(value, datetime):
        is_midnight = value.time() == time.min and value.tzinfo is None
        return (value.date() if is_midnight else value).isoformat()
    return str(value)
