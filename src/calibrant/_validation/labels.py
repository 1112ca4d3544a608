"""Validation of labels, and their encoding as column codes.

Missing labels raise an error. Ambiguous labels raise an error, or a warning that states the
assumption.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike
from calibrant._validation._text import shortened
from calibrant._validation._warnings import warn_data
from calibrant._validation.arrays import as_array

_ROWS_FOR_ORDER, _CLASSES_FOR_ORDER = 40, 200
"""Search for another order of the columns only with at least this many rows and at most this many
classes. Fewer rows give no evidence, and the search is cubic in the number of classes."""

_STANDARD_ERRORS = 4.0
"""Another order of the columns is reported only if it is more accurate by this many standard
errors."""

_EXPECTED = 7.0
"""Expected number of rows from which the absence of a label is suspicious. If a calibrated model
expects 7 rows of a class, a sample has none with probability exp(-7), about 0.001."""


def check_classes(classes: LabelsLike | None, n_classes: int) -> AnyArray:
    """Return the labels of the columns: ``classes``, or 0..K-1 if None."""
    if classes is None:
        return np.arange(n_classes)
    _raise_if_unordered(classes)
    array = as_array(classes)
    if array.ndim != 1 or len(array) != n_classes:
        got = f"{len(array)} labels" if array.ndim == 1 else f"an array of shape {array.shape}"
        raise ValueError(
            f"classes must contain one label for each of the {n_classes} columns of scores, got "
            f"{got}. Pass one label and one column per class."
        )
    if len(set(array.tolist())) != n_classes:
        raise ValueError(f"classes must not contain duplicates, got {array.tolist()}.")
    return array


def _raise_if_unordered(classes: LabelsLike) -> None:
    """Raise if classes are a string or a set instead of a list."""
    if isinstance(classes, str):
        raise TypeError(
            f"classes must be a list of labels, got the string {classes!r}. For example, pass "
            f"classes={classes.replace(',', ' ').split()!r}."
        )
    if isinstance(classes, set | frozenset | dict):
        raise TypeError(
            f"classes must be in the order of the columns, but a {type(classes).__name__} has no "
            "order. Pass a list."
        )


def as_labels(labels: LabelsLike) -> AnyArray:
    """Return labels as an array.

    Data frames with columns of several types return numbers with dtype object. Such numbers get a
    numeric dtype.
    """
    y = as_array(labels)
    if y.dtype.kind != "O" or y.ndim != 1 or not y.size:
        return y
    kinds = set(map(type, y.tolist()))
    return np.array(y.tolist()) if kinds == {bool} or kinds <= {int, float} else y


def check_label_shape(y: AnyArray, n_classes: int | None = None) -> None:
    """Raise unless there is one label per row, and suggest what to pass instead."""
    if y.ndim == 1 and y.size:
        return
    if y.size == 0:
        raise ValueError("Labels are empty. Pass at least one row.")
    if y.ndim == 0:
        raise ValueError(
            f"Labels must have shape (n_samples,), got the single value {y.item()!r}. Pass one "
            "label per row."
        )
    raise ValueError(
        f"Labels must have shape (n_samples,), got shape {y.shape}. {_shape_hint(y, n_classes)}"
    )


def _shape_hint(y: AnyArray, n_classes: int | None) -> str:
    """Suggest how to pass labels that have more than one axis."""
    if y.ndim == 2 and y.shape[1] == 1:
        return "Pass np.ravel(y)."
    if is_one_hot(y) and n_classes in (None, y.shape[1]):
        return (
            "These rows are one-hot. Pass np.argmax(y, axis=1). If you pass classes, pass "
            "np.take(classes, np.argmax(y, axis=1)) instead."
        )
    if y.ndim == 2 and y.dtype.kind in "buif" and np.isin(y, (0, 1)).all():
        return (
            "Rows have several labels (multilabel). Pass y[:, k] and scores[:, k] for a single "
            "label. evaluate() accepts such labels if the scores have the same shape."
        )
    return "These rows are not one-hot, so pass one label per row."


def is_one_hot(y: AnyArray) -> bool:
    """Return whether each row of a table is one-hot."""
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
    """Return the column code of each row, and the label of each column.

    Integers and booleans are column indices unless ``classes`` is given. Other labels are matched
    to ``classes`` or, if exactly K different labels occur, to the columns in sorted order, with a
    warning. A missing label (NaN, None, NaT) raises an error. Row numbers in errors start at
    ``first_row``.
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
        raise ValueError(
            f"{missing} If this value is a class, pass classes=[...] with all classes."
        )
    names = np.unique(y)
    if len(names) != n_classes:
        raise ValueError(_unclear(names, n_classes))
    warn_data(
        f"The columns are assumed to be the classes {shortened(names, show=repr)}, in sorted "
        "order. To avoid this warning, pass classes=[...] in the order of the columns."
    )
    return _match(y, names), names


def raise_if_other_order(scores: FloatArray, y: IntArray, names: AnyArray) -> None:
    """Raise if the labels agree far better with another order of the columns than ``names``.

    The order is found on the even rows and tested on the odd rows, so overfitting cannot cause an
    error.
    """
    n_classes = len(names)
    if len(y) < _ROWS_FOR_ORDER or n_classes > _CLASSES_FOR_ORDER:
        return
    top = scores.argmax(axis=1)
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (top[::2], y[::2]), 1.0)
    # The assignment below takes much longer than this test, which nearly all data pass.
    if (counts.diagonal() == counts.max(axis=1)).all():
        return
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(-counts)
    is_correct, would_be_correct = top[1::2] == y[1::2], order[top[1::2]] == y[1::2]
    gained = int((would_be_correct & ~is_correct).sum())
    lost = int((is_correct & ~would_be_correct).sum())
    # The condition below is McNemar's test. Rows on which both orders agree contain no information.
    # If both orders are equally accurate, the difference of the two other counts, gained and lost,
    # has standard deviation sqrt(gained + lost).
    if gained - lost > _STANDARD_ERRORS * (gained + lost) ** 0.5:
        raise ValueError(
            "The labels agree far better with the columns in the order "
            f"{shortened(names[order], show=repr)} than in sorted order. Pass "
            f"classes={names[order].tolist()} for this order, or classes={names.tolist()} for "
            "sorted order."
        )


def _unclear(names: AnyArray, n_classes: int) -> str:
    problem = (
        f"The labels have {len(names)} different values ({shortened(names, show=repr)}), but the "
        f"scores have {n_classes} columns."
    )
    if names.dtype.kind == "f" and (names % 1).any():
        return f"{problem} These values look like scores or a continuous target. Pass class labels."
    if len(names) > n_classes:
        return f"{problem} Pass scores with one column per class."
    return f"{problem} Pass classes=[...] in the order of the columns."


def raise_if_missing(
    labels: LabelsLike, y: AnyArray, what: str = "label", *, first_row: int = 0
) -> None:
    """Raise an error that names the first row without a label."""
    # In an array of strings, NumPy turns NaN into the text "nan", so inspect the original list.
    if y.dtype.kind in "US" and isinstance(labels, list | tuple):
        y = np.array(labels, dtype=object)
    rows = _missing_rows(y)
    if len(rows):
        others = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        raise ValueError(
            f"The {what} of row {rows[0] + first_row}{others} is missing ({y[rows[0]]}). Remove "
            "such rows from labels and scores."
        )


def _missing_rows(y: AnyArray) -> IntArray:
    if y.dtype.kind == "f":
        return np.flatnonzero(np.isnan(y))
    if y.dtype.kind in "Mm":
        return np.flatnonzero(np.isnat(y))
    if y.dtype.kind == "O":
        return np.flatnonzero(np.fromiter(map(is_missing, y), dtype=bool, count=len(y)))
    return np.empty(0, dtype=np.intp)


def raise_if_other_kind(**arrays: AnyArray) -> None:
    """Raise if labels can never be equal, because one array has only text and another has none."""
    (first, one), (second, other) = arrays.items()
    if not (one.size and other.size) or _kinds(one) & _kinds(other):
        return
    names = (first, second) if True in _kinds(one) else (second, first)
    raise ValueError(
        f"{names[0]} contains text, but {names[1]} contains {arrays[names[1]].dtype} values, so no "
        f"labels could be equal. Pass labels of the same type."
    )


def _kinds(y: AnyArray) -> set[bool]:
    """Return whether labels are text: {True}, {False} or both."""
    if y.dtype.kind != "O":
        return {y.dtype.kind in "SU"}
    return {isinstance(label, str) for label in y.ravel().tolist()}


def check_new_labels(y: LabelsLike, n_rows: int, classes: AnyArray) -> AnyArray:
    """Return labels to compare with predictions, or raise. Labels may be unknown classes."""
    labels = as_labels(y)
    check_label_shape(labels)
    raise_if_missing(y, labels)
    if len(labels) != n_rows:
        raise ValueError(
            f"Arrays must have the same number of rows, but X has {n_rows:,} rows and y has "
            f"{len(labels):,} rows."
        )
    raise_if_other_kind(y=labels, classes_=classes)
    return labels


def missing_as_text(y: AnyArray) -> str | None:
    """Return a message if a label is a string such as "nan", which probably was a missing value."""
    if y.dtype.kind not in "OSU":
        return None
    rows = np.flatnonzero(np.isin(y.astype(str), _MISSING_TEXT))
    if not rows.size:
        return None
    return (
        f"The label of row {rows[0]} is the text {str(y[rows[0]])!r}, which usually stands for a "
        "missing label. Remove such rows from labels and scores."
    )


_MISSING_TEXT = ("nan", "NaT", "<NA>")


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NaT or the NA value of pandas."""
    # Compare the pandas value NA by name, because NA has no truth value and pandas may not be
    # installed.
    if label is None or type(label).__name__ == "NAType":
        return True
    # NaN and NaT are the values that differ from themselves.
    return not isinstance(label, str) and bool(label != label)


def _encode_floats(y: AnyArray, n_classes: int) -> tuple[IntArray, AnyArray]:
    """Encode float labels: integers below K are column indices, other floats are sorted classes."""
    values = np.unique(y)
    if np.isin(values, np.arange(n_classes)).all():
        names = np.arange(n_classes, dtype=y.dtype)
        assumption = f"column indices 0..{n_classes - 1}"
        fix = "y.astype(int)"
    elif len(values) == n_classes:
        names = values
        assumption = f"the classes {shortened(values)}, in this order of the columns"
        fix = "classes=[...] in the order of the columns"
    else:
        raise ValueError(_unclear(values, n_classes))
    warn_data(
        f"The labels are floats and are assumed to be {assumption}. To avoid this warning, pass "
        f"{fix}."
    )
    return _match(y, names), names


def _check_codes(y: AnyArray, n_classes: int, first_row: int) -> IntArray:
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= n_classes:
        bad = low if low < 0 else high
        row = int(np.flatnonzero(y == bad)[0])
        raise ValueError(
            f"Label {bad} in row {row + first_row} is out of range. Integer labels are column "
            f"indices, and the {n_classes} columns of the scores have the indices 0 to "
            f"{n_classes - 1}. {_code_remedy(np.unique(y), n_classes)}"
        )
    return y.astype(np.intp, copy=False)


def _code_remedy(values: AnyArray, n_classes: int) -> str:
    """Suggest classes or more columns for integer labels that are not column indices."""
    if len(values) > n_classes:
        return "Pass scores with one column per class."
    if len(values) < n_classes:
        return "Pass classes=[...] with the label of each column, in the order of the columns."
    if n_classes > 2 and values[-1] - values[0] == n_classes - 1:
        classes = f"range({values[0]}, {values[-1] + 1})"
    else:
        classes = f"[{shortened(values)}]"
    return f"Pass classes={classes} if this is the order of the columns."


def warn_count_from_one(y: IntArray, proba: FloatArray) -> None:
    """Warn if column indices start at 1 although the model expects label 0 several times."""
    n_classes, expected = proba.shape[1], float(proba[:, 0].sum())
    if expected >= _EXPECTED:
        warn_data(
            f"The labels are assumed to be column indices 0..{n_classes - 1}, but 0 never occurs, "
            f"although the scores of column 0 sum to {expected:.0f} expected rows. Pass "
            f"classes=range(1, {n_classes + 1}) if the labels start at 1, else "
            f"classes=range({n_classes})."
        )


def _match(y: AnyArray, names: AnyArray, first_row: int = 0) -> IntArray:
    """Return the position of each label in ``names``."""
    try:
        order = np.argsort(names, kind="stable")
        place = np.searchsorted(names[order], y)
        codes = order[np.minimum(place, len(names) - 1)]
        unknown = np.flatnonzero(names[codes] != y)
    except TypeError:
        raise TypeError(
            f"Labels ({shortened(y, show=repr)}) and classes ({shortened(names, show=repr)}) "
            "have different types. Pass both as strings, or both as numbers."
        ) from None
    if unknown.size:
        row = int(unknown[0])
        raise ValueError(
            f"Label {shortened(y[row : row + 1], show=repr)} in row {row + first_row} is not among "
            f"the classes {shortened(names, show=repr)}. {_remedy(y, names, row)}"
        )
    return codes.astype(np.intp, copy=False)


def _remedy(y: AnyArray, names: AnyArray, row: int) -> str:
    """Suggest a fix for a label that is not a class, or that has another type than the classes."""
    label = y[row].decode(errors="replace") if isinstance(y[row], bytes) else str(y[row])
    if label in {
        name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        for name in names.tolist()
    }:
        return "Labels and classes have different types. Pass both as strings, or both as numbers."
    return "Add this label to classes=[...] and its column to the scores."
