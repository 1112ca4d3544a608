"""Labels become column codes; what is missing, or could mean two things, is said."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike
from calibrant._validation._arrays import as_array
from calibrant._validation._remarks import remark
from calibrant._validation._text import shortened

_ROWS_FOR_ORDER, _CLASSES_FOR_ORDER = 40, 200
"""Fewer rows do not show another order of the columns, and more classes take too long to try."""

_STANDARD_ERRORS = 4.0
"""Of the gain in accuracy by which another order is found to be the right one."""

_EXPECTED = 7.0
"""A label that forecasts expect so often is absent by chance once in a thousand samples."""


def check_classes(classes: LabelsLike | None, n_classes: int) -> AnyArray:
    """Labels of the columns: ``classes``, or 0..K-1."""
    if classes is None:
        return np.arange(n_classes)
    if isinstance(classes, str):
        raise TypeError(
            f"classes must be a list of labels, got the text {classes!r}; "
            f"for example classes={classes.replace(',', ' ').split()!r}"
        )
    if isinstance(classes, set | frozenset | dict):
        raise TypeError(
            f"classes must be in the order of the columns, and a {type(classes).__name__} has no "
            "order: pass a list"
        )
    array = as_array(classes)
    if array.ndim != 1 or len(array) != n_classes:
        got = f"{len(array)} names" if array.ndim == 1 else f"an array of shape {array.shape}"
        raise ValueError(f"classes must name each of the {n_classes} columns once, got {got}")
    if len(set(array.tolist())) != n_classes:
        raise ValueError(f"classes must be different from each other, got {array.tolist()}")
    return array


def as_labels(labels: LabelsLike) -> AnyArray:
    """Labels as an array; numbers that came as objects, as from a table of text and numbers, are
    numbers.
    """
    y = as_array(labels)
    if y.dtype.kind != "O" or y.ndim != 1 or not y.size:
        return y
    kinds = set(map(type, y.tolist()))
    return np.array(y.tolist()) if kinds == {bool} or kinds <= {int, float} else y


def check_label_shape(y: AnyArray, n_classes: int | None = None) -> None:
    """Raise unless there is one label a row, and say what to pass instead."""
    if y.ndim == 1 and y.size:
        return
    if y.size == 0:
        raise ValueError("labels are empty: at least one row is needed")
    said = f"labels must have shape (n_samples,), got shape {y.shape}"
    if y.ndim == 2 and y.shape[1] == 1:
        raise ValueError(f"{said}; pass np.ravel(y)")
    if is_one_hot(y) and n_classes in (None, y.shape[1]):
        raise ValueError(
            f"{said}; for these one-hot rows pass np.argmax(y, axis=1), the number of the column, "
            "or with classes= np.take(classes, np.argmax(y, axis=1))"
        )
    raise ValueError(f"{said}; one label a row is needed, and these rows are not one-hot")


def is_one_hot(y: AnyArray) -> bool:
    """Whether each row of a table holds a single one beside zeros."""
    if y.ndim != 2 or y.shape[1] < 2 or y.dtype.kind not in "buif":
        return False
    return bool(((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all())


def encode_labels(
    labels: LabelsLike,
    n_classes: int,
    classes: LabelsLike | None = None,
    *,
    first_row: int = 0,
) -> tuple[IntArray, AnyArray]:
    """Column codes of the labels, and the label of each column.

    Integers and booleans are column indices unless ``classes`` is given. Anything else is matched
    to ``classes``, or, if exactly K different labels occur, to the columns in sorted order, which
    is said. A missing label (NaN, None, NaT) is an error. Errors count rows from ``first_row``.
    """
    y = as_labels(labels)
    check_label_shape(y, n_classes)
    raise_if_missing(labels, y, first_row=first_row)
    if classes is not None:
        names = check_classes(classes, n_classes)
        return _match(y, names, first_row), names
    if y.dtype.kind in "bui":
        return _check_codes(y, n_classes, first_row), np.arange(n_classes)
    if y.dtype.kind == "f":
        return _encode_floats(y, n_classes)
    missing = missing_as_text(y)
    if missing:
        raise ValueError(f"{missing}, or give classes=[...] with this one among them")
    names = np.unique(y)
    if len(names) != n_classes:
        raise ValueError(_unclear(names, n_classes))
    remark(
        f"the columns are taken to be the classes {shortened(names, show=repr)}, in sorted order; "
        "to say so, or otherwise, pass classes=[...] in the order of the columns"
    )
    return _match(y, names), names


def raise_if_other_order(scores: FloatArray, y: IntArray, names: AnyArray) -> None:
    """Raise if another order of the columns than that of ``names`` agrees far better with labels.

    The order is found on every other row and tested on the rest, so that chance finds none.
    """
    n_classes = len(names)
    if len(y) < _ROWS_FOR_ORDER or n_classes > _CLASSES_FOR_ORDER:
        return
    top = scores.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (top[::2], y[::2]), 1.0)
    if (counts.diagonal() == counts.max(axis=1)).all():  # nearly always
        return
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(-counts)
    is_right, would_be = top[1::2] == y[1::2], order[top[1::2]] == y[1::2]
    gained, lost = int((would_be & ~is_right).sum()), int((is_right & ~would_be).sum())
    if gained - lost > _STANDARD_ERRORS * (gained + lost) ** 0.5:
        raise ValueError(
            f"the labels agree far better with the columns in the order "
            f"{shortened(names[order], show=repr)} than in sorted order; pass "
            f"classes={names[order].tolist()} for this order, or classes={names.tolist()}"
        )


def _unclear(names: AnyArray, n_classes: int) -> str:
    return (
        f"the labels hold {len(names)} different values ({shortened(names, show=repr)}) for "
        f"{n_classes} columns: say which column is which by classes=[...], in the order of the "
        "columns"
    )


def raise_if_missing(
    labels: LabelsLike, y: AnyArray, what: str = "label", *, first_row: int = 0
) -> None:
    """Name the first row without a label. NumPy makes "nan" of a NaN beside text, so that lists
    are looked at before.
    """
    if y.dtype.kind in "US" and isinstance(labels, list | tuple):
        y = np.array(labels, dtype=object)
    if y.dtype.kind == "f":
        missing = np.isnan(y)
    elif y.dtype.kind in "Mm":
        missing = np.isnat(y)
    elif y.dtype.kind == "O":
        missing = np.fromiter(map(_is_missing, y), dtype=bool, count=len(y))
    else:
        return
    if missing.any():
        rows = np.flatnonzero(missing)
        where = f"row {rows[0] + first_row}" + (
            f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        )
        raise ValueError(
            f"the {what} of {where} is missing ({y[rows[0]]}): leave such rows out, of the scores "
            "too"
        )


def missing_as_text(y: AnyArray) -> str | None:
    """What is to be said of NaN beside text, which becomes the text "nan" in an array of NumPy
    before anybody can see it.
    """
    if y.dtype.kind not in "OSU":
        return None
    rows = np.flatnonzero(np.isin(y.astype(str), _MISSING_TEXT))
    if not rows.size:
        return None
    return (
        f"the label of row {rows[0]} is the text {str(y[rows[0]])!r}, which is what missing labels "
        "become as text: leave such rows out, of the scores too"
    )


_MISSING_TEXT = ("nan", "NaT", "<NA>")


def _is_missing(label: Any) -> bool:
    """None, NaN, NaT and pandas' NA: what is not equal to itself, and what cannot say."""
    if label is None or type(label).__name__ == "NAType":
        return True
    return not isinstance(label, str) and bool(label != label)


def _encode_floats(y: AnyArray, n_classes: int) -> tuple[IntArray, AnyArray]:
    """Whole numbers below K are column indices; others are classes in increasing order."""
    values = np.unique(y)
    if np.isin(values, np.arange(n_classes)).all():
        names = np.arange(n_classes, dtype=y.dtype)
        how = f"column indices 0..{n_classes - 1}; to say so, pass y.astype(int)"
    elif len(values) == n_classes:
        names = values
        how = (
            f"the classes {shortened(values)}, in this order of the columns; to say so, or "
            "otherwise, pass classes=[...] in the order of the columns"
        )
    else:
        raise ValueError(_unclear(values, n_classes))
    remark(f"the labels are floats and are taken to be {how}")
    return _match(y, names), names


def _check_codes(y: AnyArray, n_classes: int, first_row: int) -> IntArray:
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= n_classes:
        bad = low if low < 0 else high
        row = int(np.flatnonzero(y == bad)[0])
        raise ValueError(
            f"label {bad} in row {row + first_row} is out of range: integer labels are column "
            f"indices 0..{n_classes - 1}; "
            "if your labels have other values, give them in the order of the columns by "
            "classes=[...]"
        )
    return y.astype(np.intp, copy=False)


def remark_count_from_one(y: IntArray, proba: FloatArray) -> None:
    """Say what was assumed of column indices that begin with 1, where the forecasts would have had
    0 among them.
    """
    n_classes, expected = proba.shape[1], float(proba[:, 0].sum())
    if expected >= _EXPECTED:
        remark(
            f"the labels are taken to be column indices 0..{n_classes - 1}, and 0 never occurs, "
            f"although column 0 expects it {expected:.0f} times; if they count from 1, pass "
            f"classes=range(1, {n_classes + 1}), and classes=range({n_classes}) if they do not"
        )


def _match(y: AnyArray, names: AnyArray, first_row: int = 0) -> IntArray:
    """Position in ``names`` of each label."""
    try:
        order = np.argsort(names, kind="stable")
        place = np.searchsorted(names[order], y)
        codes = order[np.minimum(place, len(names) - 1)]
        unknown = np.flatnonzero(names[codes] != y)
    except TypeError:
        raise TypeError(
            f"labels ({shortened(y, show=repr)}) and classes ({shortened(names, show=repr)}) are "
            "of different types"
        ) from None
    if unknown.size:
        row = int(unknown[0])
        raise ValueError(
            f"label {shortened(y[row : row + 1], show=repr)} in row {row + first_row} is not among "
            f"the classes {shortened(names, show=repr)}; {_remedy(y, names, row)}"
        )
    return codes.astype(np.intp, copy=False)


def _remedy(y: AnyArray, names: AnyArray, row: int) -> str:
    """What to do about a label that is no class: one of another type is one all the same."""
    label = y[row].decode(errors="replace") if isinstance(y[row], bytes) else str(y[row])
    if label in {
        name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        for name in names.tolist()
    }:
        return "they are of different types: pass both as text, or both as numbers"
    return "add it to classes=[...] and to the scores"
