"""Names of columns, of data frames and of files: they say which column is which class.

Names are compared with labels as text, so a column ``"2"`` is the column of the label 2. The text
that all names share before or after a sign that is neither letter nor digit (``p_cat``, ``P(dog)``,
``owl.prob``) may be left out, and so may letters before numbers (``p0``, ``p1``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from calibrant._typing import AnyArray, IntArray, LabelsLike, ScoresLike
from calibrant._validation._arrays import as_array
from calibrant._validation._labels import check_classes
from calibrant._validation._text import shortened

POSITION_HINT = "to go by position, pass an array (X.to_numpy()) instead of a frame"


def column_names(data: ScoresLike) -> list[Any] | None:
    """Names of the columns of a pandas or polars frame or an Arrow table; None for anything else,
    and for the numbers 0..K-1 that pandas gives to columns without names.
    """
    names = getattr(data, "column_names", None)  # Arrow, whose `columns` are the data
    if names is None and hasattr(data, "columns"):
        names = data.columns
    if names is None or callable(names) or len(getattr(data, "shape", ())) != 2:
        return None
    listed = list(names)
    return None if listed == list(range(len(listed))) else listed


def arrange(
    table: AnyArray,
    names: list[Any] | None,
    y: AnyArray,
    categories: AnyArray | None,
    classes: LabelsLike | None,
) -> tuple[AnyArray, AnyArray | None]:
    """Scores with their columns in the order of the classes, and these; None where integer labels
    are column indices, or text labels are to be matched in sorted order.
    """
    if classes is None:
        classes = _implied_classes(table, names, y, categories)
    if classes is None or names is None:
        return table, classes
    order = order_of(names, check_classes(classes, len(names)))
    return (table if order is None else _in_order(table, order)), classes


def arrange_as_fitted(scores: ScoresLike, fitted: AnyArray | None, classes: AnyArray) -> AnyArray:
    """Scores to predict with their columns in the order of the fit: by the names that these had
    then, or by those of the classes.
    """
    table, names = as_array(scores), column_names(scores)
    if names is None:
        return table
    if fitted is None or not all(isinstance(name, str) for name in names):
        order = order_of(names, classes)
        return table if order is None else _in_order(table, order)
    wanted = fitted.tolist()
    if sorted(names) != sorted(wanted):
        raise ValueError(
            f"X has its columns with other names than at fit: {shortened(names)} instead of "
            f"{shortened(wanted)}; select them by X[calibrator.feature_names_in_.tolist()]"
        )
    return _in_order(table, np.array([names.index(name) for name in wanted], dtype=np.intp))


def _in_order(table: AnyArray, order: IntArray) -> AnyArray:
    return table if (order == np.arange(len(order))).all() else table[:, order]


def _implied_classes(
    table: AnyArray, names: list[Any] | None, y: AnyArray, categories: AnyArray | None
) -> AnyArray | None:
    """What the categories of the labels and the names of the columns say about the classes."""
    if table.ndim != 2:
        _raise_if_unclear(table, y)
        return None
    if categories is not None and len(categories) != table.shape[1]:
        categories = None
    if names is not None and (categories is None or order_of(names, categories) is None):
        named = classes_of(names, y)
        if named is not None:
            return named
    return categories


def _raise_if_unclear(table: AnyArray, y: AnyArray) -> None:
    """Text labels do not say which of two classes one score a row is about."""
    if table.ndim == 1 and y.dtype.kind in "OSUMm":
        listed = sorted(map(str, _distinct(y)))
        raise ValueError(
            f"the labels are {shortened(listed, show=repr)}, and one score a row does not say "
            "which of two classes it is about: give both by classes=[other, scored], the one that "
            "the scores are the probability of at the end"
        )


def categories_of(labels: LabelsLike) -> AnyArray | None:
    """The categories of a pandas Categorical or a polars Enum, whose order was declared; None for
    anything else (categories of polars and Arrow are in the order in which they occur).
    """
    dtype = getattr(labels, "dtype", None)
    module, kind = type(dtype).__module__.partition(".")[0], type(dtype).__name__
    if (module, kind) in {("pandas", "CategoricalDtype"), ("polars", "Enum")}:
        categories: Any = dtype.categories  # type: ignore[union-attr]
        return np.asarray(categories)
    return None


def match_columns(names: Sequence[Any], classes: Sequence[Any] | AnyArray) -> IntArray | None:
    """For each class the position of the column that is named after it; None if the names are not
    those of the classes.
    """
    wanted = [_key(label) for label in classes]
    for keys in readings(names):
        place_of = {key: place for place, key in reversed(list(enumerate(keys)))}
        if len(keys) == len(wanted) and place_of.keys() == set(wanted):
            return np.array([place_of[key] for key in wanted], dtype=np.intp)
    return None


def match_labels(names: Sequence[Any], labels: Collection[str]) -> list[str] | None:
    """The classes that columns are named after, as text; None if some labels are not among them."""
    for keys in readings(names):
        if len(set(keys)) == len(keys) and set(labels) <= set(keys):
            return None if _may_count_from_zero(names, keys, labels) else keys
    return None


def order_of(names: Sequence[Any], classes: Sequence[Any] | AnyArray) -> IntArray | None:
    """For each class the position of its column; None where the names are not about the classes.

    Some names that are classes beside some that are not are a contradiction, and an error.
    """
    order = match_columns(names, classes)
    if order is not None:
        return order
    columns, wanted = [_key(name) for name in names], [_key(label) for label in classes]
    matches = [key for key in columns if key in set(wanted)]
    if matches and len(columns) == len(wanted):
        strange = next((key for key in columns if key not in set(wanted)), columns[0])
        raise ValueError(
            f"the columns are called {shortened(columns)} and the classes {shortened(wanted)}: "
            f"column {strange!r} is none of the classes, although {matches[0]!r} is; rename the "
            f"columns, or give classes=[...] with the names of the columns; {POSITION_HINT}"
        )
    return None


def classes_of(names: Sequence[Any], labels: AnyArray) -> AnyArray | None:
    """The classes that the columns are named after, in the order of the columns (numbers and dates
    in theirs); None where the labels are not among the names.
    """
    labels = labels.astype(np.intp) if labels.dtype.kind == "b" else labels
    label_of = {_key(label): label for label in _distinct(labels)}
    keys = match_labels(names, label_of)
    if keys is not None and labels.dtype.kind in "OSU":
        return _text_classes(keys, label_of, labels.dtype)
    if keys is not None:
        return _number_classes(keys, labels.dtype)
    columns = {_key(name) for name in names}
    matches = [label for label in label_of if label in columns]
    if matches and len(matches) < len(label_of) and labels.dtype.kind in "OSU":
        strange = next(label for label in label_of if label not in columns)
        raise ValueError(
            f"label {strange!r} is none of the columns {shortened(list(names))}, although "
            f"{matches[0]!r} is: add its column, or rename the columns; {POSITION_HINT}"
        )
    return None


def _may_count_from_zero(names: Sequence[Any], keys: list[str], labels: Collection[str]) -> bool:
    """Whether columns such as p1, p2, p3 are called so by who counts from one, while the labels,
    column indices, do not: 1 and 2 among them do not say.
    """
    n_classes = len(keys)
    numbered = {*map(str, range(1, n_classes + 1))} == {*keys} and str(n_classes) not in labels
    return numbered and all(str(name)[0].isalpha() and str(name).isalnum() for name in names)


def _text_classes(keys: list[str], label_of: dict[str, Any], dtype: np.dtype[Any]) -> AnyArray:
    """The names as labels; those that no row has are of the type of the others."""
    if dtype.kind == "S":
        return np.array([key.encode() for key in keys])
    return np.array([label_of.get(key, key) for key in keys], dtype=dtype.kind)


def _number_classes(keys: list[str], dtype: np.dtype[Any]) -> AnyArray | None:
    """The names as numbers or dates, in their order; None where they are none."""
    if dtype.kind in "iu":
        whole = all(key.removeprefix("-").isdecimal() for key in keys)
        return np.array(sorted(map(int, keys))) if whole else None
    try:
        return np.sort(np.array(keys).astype(dtype))
    except ValueError:
        return None


def readings(names: Sequence[Any]) -> Iterator[list[str]]:
    """The names as text: as they are, then without what they share at their ends, then as the
    truth values or whole numbers in them.
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
"""A whole number, perhaps with letters before it or written as a float."""


def _shared(names: list[str]) -> list[int]:
    """Lengths of the beginnings that all names share and that end in a sign, the longest first;
    and 0.
    """
    first, last = min(names), max(names)  # what these two share, all do
    n_same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    ends = range(len(first) if n_same is None else n_same, 0, -1)
    return [*(end for end in ends if not first[end - 1].isalnum()), 0]


def _distinct(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return list(np.unique(labels))


def _key(label: Any) -> str:
    """A label as text; 2.0 and 2 are the same, and so are a day and its midnight."""
    if isinstance(label, bytes):
        return label.decode(errors="backslashreplace")
    if isinstance(label, np.datetime64):
        return _MIDNIGHT.sub("", str(label))
    if isinstance(label, datetime):
        return _MIDNIGHT.sub("", label.isoformat())
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_MIDNIGHT = re.compile(r"T00:00(:00)?(\.0+)?$")
