"""Data frames speak: which column is which class is read from their names, never from their order.

Names are compared with labels as text, so that a column ``"2"`` is that of the label 2. A prefix
that all columns share, up to a sign that is neither letter nor digit (``p_cat``, ``prob.dog``), may
be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    if names is None or callable(names) or len(np.shape(data)) != 2:
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
        found = classes_of(names, y)
        if found is not None:
            return found
    return categories


def _raise_if_unclear(table: AnyArray, y: AnyArray) -> None:
    """Text labels do not say which of two classes one score a row is about."""
    if table.ndim == 1 and y.dtype.kind in "OSU":
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


def order_of(names: Sequence[Any], classes: Sequence[Any] | AnyArray) -> IntArray | None:
    """For each class the position of its column; None where the names are not about the classes.

    Some names that are classes beside some that are not are a contradiction, and an error.
    """
    wanted = [_key(label) for label in classes]
    for keys in _readings(names):
        if len(keys) == len(wanted) and set(keys) == set(wanted):
            return np.array([keys.index(key) for key in wanted], dtype=np.intp)
    own = [_key(name) for name in names]
    known = [key for key in own if key in set(wanted)]
    if known and len(own) == len(wanted) and own != wanted:
        strange = next((key for key in own if key not in set(wanted)), own[0])
        raise ValueError(
            f"the columns are called {shortened(own)} and the classes {shortened(wanted)}: column "
            f"{strange!r} is none of the classes, although {known[0]!r} is; rename the columns, "
            f"or give classes=[...] with the names of the columns; {POSITION_HINT}"
        )
    return None


def classes_of(names: Sequence[Any], labels: AnyArray) -> AnyArray | None:
    """The classes that the columns are named after, in the order of the columns (whole numbers in
    theirs); None where the labels are not among the names.
    """
    occur = {_key(label): label for label in _distinct(labels)}
    for keys in _readings(names):
        if len(set(keys)) == len(keys) and occur.keys() <= set(keys):
            if labels.dtype.kind in "OSU":
                return np.array([occur.get(key, key) for key in keys], dtype=labels.dtype.kind)
            whole = all(key.removeprefix("-").isdecimal() for key in keys)
            return np.array(sorted(map(int, keys)), dtype=labels.dtype) if whole else None
    own = {_key(name) for name in names}
    known = [label for label in occur if label in own]
    if known and labels.dtype.kind in "OSU":
        strange = next(label for label in occur if label not in own)
        raise ValueError(
            f"label {strange!r} is none of the columns {shortened(list(names))}, although "
            f"{known[0]!r} is: add its column, or rename the columns; {POSITION_HINT}"
        )
    return None


def _readings(names: Sequence[Any]) -> Iterator[list[str]]:
    """The names as text: as they are, then without a prefix that they share."""
    own = [_key(name) for name in names]
    yield own
    first = min(own)
    for end in range(len(first), 0, -1):
        if not first[end - 1].isalnum() and all(name.startswith(first[:end]) for name in own):
            yield [name[end:] for name in own]


def _distinct(labels: AnyArray) -> list[Any]:
    if labels.dtype.kind == "O":
        return list(dict.fromkeys(labels.tolist()))
    return np.unique(labels).tolist()


def _key(label: Any) -> str:
    """A label as text; 2.0 and 2 are the same."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
