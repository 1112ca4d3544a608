"""Matching of columns to classes by name, for data frames and files.

Names are compared with labels as text, so a column ``"2"`` is the column of the label 2. A prefix
or suffix that all names share is ignored if it ends at a character that is neither letter nor digit
(``p_cat``, ``P(dog)``, ``owl.prob``). Letters before numbers are also ignored (``p0``, ``p1``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, IntArray, LabelsLike, ScoresLike
from calibrant._validation._text import shortened
from calibrant._validation.arrays import as_array
from calibrant._validation.labels import check_classes

POSITION_HINT = "or pass X.to_numpy() to match columns by position"


def column_names(data: ScoresLike) -> list[Any] | None:
    """Return the column names of a pandas or polars frame or an Arrow table.

    Return None for anything else, and for the numbers 0..K-1 that pandas assigns to unnamed
    columns.
    """
    names = getattr(data, "column_names", None)  # in Arrow, `columns` contains the data
    if names is None and hasattr(data, "columns"):
        names = data.columns
    if names is None or callable(names) or len(getattr(data, "shape", ())) != 2:
        return None
    names_list = list(names)
    return None if names_list == list(range(len(names_list))) else names_list


def arrange(
    table: AnyArray,
    names: list[Any] | None,
    y: AnyArray,
    categories: AnyArray | None,
    classes: LabelsLike | None,
) -> tuple[AnyArray, AnyArray | None]:
    """Return scores with their columns in the order of the classes, and the classes.

    The classes are None if integer labels are column indices, or if text labels will be matched to
    the columns in sorted order.
    """
    if classes is None:
        classes = _implied_classes(table, names, y, categories)
    if classes is None or names is None:
        return table, classes
    order = order_of(names, check_classes(classes, len(names)))
    return (table if order is None else _in_order(table, order)), classes


def arrange_as_fitted(scores: ScoresLike, fitted: AnyArray | None, classes: AnyArray) -> AnyArray:
    """Return new scores with their columns in the order of the fit.

    Columns are matched to the names in `fit`, or to the classes.
    """
    table, names = as_array(scores), column_names(scores)
    if names is None:
        return table
    if fitted is None or not all(isinstance(name, str) for name in names):
        order = order_of(names, classes)
        return table if order is None else _in_order(table, order)
    targets = fitted.tolist()
    if sorted(names) != sorted(targets):
        raise ValueError(
            f"X has the columns {shortened(names)}, but the calibrator was fitted with the columns "
            f"{shortened(targets)}. Pass X[calibrator.feature_names_in_.tolist()]."
        )
    return _in_order(table, np.array([names.index(name) for name in targets], dtype=np.intp))


def _in_order(table: AnyArray, order: IntArray) -> AnyArray:
    return table if (order == np.arange(len(order))).all() else table[:, order]


def _implied_classes(
    table: AnyArray, names: list[Any] | None, y: AnyArray, categories: AnyArray | None
) -> AnyArray | None:
    """Derive the classes from the categories of the labels and the names of the columns."""
    if table.ndim != 2:
        _raise_if_unclear(table, y)
        return None
    if categories is not None and len(categories) != table.shape[1]:
        categories = None
    if names is not None and (categories is None or order_of(names, categories) is None):
        name_classes = classes_of(names, y)
        if name_classes is not None:
            return name_classes
    return categories


def _raise_if_unclear(table: AnyArray, y: AnyArray) -> None:
    """Raise for one score per row with text labels, because the positive class is unknown."""
    if table.ndim == 1 and y.dtype.kind in "OSUMm":
        values = sorted(map(str, _distinct(y)))
        raise ValueError(
            f"The positive class is ambiguous, because the scores have one column and the labels "
            f"are {shortened(values, show=repr)}. Pass classes=[negative, positive] if the scores "
            "are the probabilities of the positive class."
        )


def categories_of(labels: LabelsLike) -> AnyArray | None:
    """Return the categories of a pandas Categorical or a polars Enum, whose order was declared.

    Return None for anything else, because categories of polars and Arrow are in the order of their
    occurrence.
    """
    dtype = getattr(labels, "dtype", None)
    module, kind = type(dtype).__module__.partition(".")[0], type(dtype).__name__
    if (module, kind) in {("pandas", "CategoricalDtype"), ("polars", "Enum")}:
        categories: Any = dtype.categories  # type: ignore[union-attr]
        return np.asarray(categories)
    return None


def match_columns(names: Sequence[Any], classes: Sequence[Any] | AnyArray) -> IntArray | None:
    """Return the position of the column of each class, or None if names differ."""
    targets = [_key(label) for label in classes]
    for keys in readings(names):
        # The order is reversed, so the first of several equal names is used.
        place_of = {key: place for place, key in reversed(list(enumerate(keys)))}
        if len(keys) == len(targets) and place_of.keys() == set(targets):
            return np.array([place_of[key] for key in targets], dtype=np.intp)
    return None


def match_labels(names: Sequence[Any], labels: Collection[str]) -> list[str] | None:
    """Return the classes in the column names as text, or None if the names lack some labels."""
    for keys in readings(names):
        if len(set(keys)) == len(keys) and set(labels) <= set(keys):
            return None if _may_count_from_zero(names, keys, labels) else keys
    return None


def order_of(names: Sequence[Any], classes: Sequence[Any] | AnyArray) -> IntArray | None:
    """Return the position of the column of each class, or None if no column is named after a class.

    Raise an error if only some columns are named after a class.
    """
    order = match_columns(names, classes)
    if order is not None:
        return order
    columns, targets = [_key(name) for name in names], [_key(label) for label in classes]
    matches = [key for key in columns if key in set(targets)]
    if matches and len(columns) == len(targets):
        mismatch = next((key for key in columns if key not in set(targets)), columns[0])
        raise ValueError(
            f"The column name {mismatch!r} is not one of the classes {shortened(targets)}, "
            f"although the column name {matches[0]!r} is one of them. Rename the columns "
            f"({shortened(columns)}), pass classes=[...] with the names of the columns, "
            f"{POSITION_HINT}."
        )
    return None


def classes_of(names: Sequence[Any], labels: AnyArray) -> AnyArray | None:
    """Return the classes in the column names, or None if the names lack some labels.

    Text classes keep the order of the columns. Numbers and dates are sorted.
    """
    labels = labels.astype(np.intp) if labels.dtype.kind == "b" else labels
    label_of = {_key(label): label for label in _distinct(labels)}
    keys = match_labels(names, label_of)
    if labels.dtype.kind not in "OSU":
        return None if keys is None else _number_classes(keys, labels.dtype)
    if keys is None:
        _raise_if_some_match(names, label_of)
        return None
    return _text_classes(keys, label_of, labels.dtype)


def _raise_if_some_match(names: Sequence[Any], labels: Collection[str]) -> None:
    """Raise if some labels, but not all of them, are the names of columns."""
    columns = set(map(_key, names))
    matches = [label for label in labels if label in columns]
    if 0 < len(matches) < len(labels):
        mismatch = next(label for label in labels if label not in columns)
        raise ValueError(
            f"No column has the name of label {mismatch!r}, although a column has the name of "
            f"label {matches[0]!r}. The columns are {shortened(list(names))}. Add a column for "
            f"this label, rename the columns, {POSITION_HINT}."
        )


def _may_count_from_zero(names: Sequence[Any], keys: list[str], labels: Collection[str]) -> bool:
    """Return whether columns p1, p2, p3 may count from 1 while the labels count from 0.

    Labels 1 and 2 could then be the names of columns or column indices, so names are not used.
    """
    n_classes = len(keys)
    numbered = {*map(str, range(1, n_classes + 1))} == {*keys} and str(n_classes) not in labels
    return numbered and all(str(name)[0].isalpha() and str(name).isalnum() for name in names)


def _text_classes(keys: list[str], label_of: dict[str, Any], dtype: np.dtype[Any]) -> AnyArray:
    """Return the names as labels. Names without rows get the type of the labels."""
    if dtype.kind == "S":
        return np.array([key.encode() for key in keys])
    return np.array([label_of.get(key, key) for key in keys], dtype=dtype.kind)


def _number_classes(keys: list[str], dtype: np.dtype[Any]) -> AnyArray | None:
    """Return the names as sorted numbers or dates, or None if they are neither."""
    if dtype.kind in "iu":
        is_whole = all(key.removeprefix("-").isdecimal() for key in keys)
        return np.array(sorted(map(int, keys))) if is_whole else None
    try:
        return np.sort(np.array(keys).astype(dtype))
    except ValueError:
        return None


def readings(names: Sequence[Any]) -> Iterator[list[str]]:
    """Yield interpretations of the names as labels, the most literal first.

    Names are first used unchanged, then without shared prefixes and suffixes, then as booleans or
    integers.
    """
    keys = [_key(name) for name in names]
    yield keys
    for start in _shared(keys):
        for end in _shared([key[start:][::-1] for key in keys]):
            if start or end:
                yield [key[start : len(key) - end] for key in keys]
    if {key.lower() for key in keys} == {"false", "true"}:
        yield [key.capitalize() for key in keys]
        yield [str(int(key.lower() == "true")) for key in keys]
    numbers = [_NUMBER.fullmatch(key) for key in keys]
    if len({number and number["letters"] for number in numbers}) == 1 and all(numbers):
        yield [str(int(number["number"])) for number in numbers if number]


_NUMBER = re.compile(r"(?P<letters>[^\W\d]*)(?P<number>-?\d+)(\.0*)?")
"""An integer, perhaps with letters before it or written as a float."""


def _shared(names: list[str]) -> list[int]:
    """Return the lengths of shared prefixes that end in punctuation, longest first, and 0."""
    # A prefix that the first and the last name in sorted order share is shared by all names.
    first, last = min(names), max(names)
    n_same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    ends = range(len(first) if n_same is None else n_same, 0, -1)
    return [*(end for end in ends if not first[end - 1].isalnum()), 0]


def _distinct(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return list(np.unique(labels))


def _key(label: Any) -> str:
    """Return a label as text. 2.0 and 2 have the same text, and so have a date and its midnight."""
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    if isinstance(label, np.datetime64):
        return _MIDNIGHT.sub("", str(label))
    if isinstance(label, datetime):
        return _MIDNIGHT.sub("", label.isoformat())
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_MIDNIGHT = re.compile(r"T00:00(:00)?(\.0+)?$")
