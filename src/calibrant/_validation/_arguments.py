"""Checks that labels and scores belong to the same rows.

These checks run before all other checks. Otherwise, swapped, transposed or truncated arrays would
be reported as bad values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray
from calibrant._validation._layouts import raise_if_deep
from calibrant._validation._warnings import warn_data
from calibrant._validation.labels import check_label_shape, is_one_hot


def check_arguments(y: AnyArray, table: AnyArray) -> None:
    """Raise if labels and scores cannot belong to the same rows."""
    raise_if_deep(y, table)
    _raise_if_single_row(y, table)
    _raise_if_swapped(y, table)
    check_label_shape(y, table.shape[1] if table.ndim == 2 else None)
    if table.ndim == 0 or len(table) == len(y):
        return
    problem = f"The labels have {len(y)} rows, but the scores have {len(table)} rows."
    if table.ndim == 2 and table.shape[1] == len(y):
        raise ValueError(f"{problem} The scores are transposed. Pass scores.T, one row per case.")
    raise ValueError(f"{problem} Pass labels and scores of the same rows.")


def warn_other_order(y_true: Any, *others: Any, what: str = "labels, scores and weights") -> None:
    """Warn if pandas indexes contain the same rows in different orders."""
    index = _index_of(y_true)
    if index is None:
        return
    for other in map(_index_of, others):
        if other is not None and _is_permuted(index, other):
            warn_data(
                f"The indexes of {what} contain the same rows in different "
                "orders. Rows were matched by position. Pass X.loc[y.index] to match rows by "
                "index, or y.to_numpy() to match rows by position without this warning."
            )
            return


def _index_of(data: Any) -> Any:
    """Return the index of a pandas object, or None for anything else."""
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    index = getattr(data, "index", None) if is_pandas else None
    return index if hasattr(index, "equals") else None


def _is_permuted(index: Any, other: Any) -> bool:
    return len(index) == len(other) and not index.equals(other) and set(index) == set(other)


def raise_if_many_labels(labels: AnyArray, shape: tuple[int, ...]) -> None:
    """Raise if there is one score per row, but labels have more than two values."""
    # Sorting all labels is expensive, and binary labels are nearly always 0 and 1.
    if labels.dtype.kind not in "iuf" or not labels.max() > 1:
        return
    n_values = len(np.unique(labels))
    if n_values > 2:
        raise ValueError(
            f"Scores of shape {shape} are the scores of class 1 of a binary problem, but the "
            f"labels have {n_values} different values. Pass one column per class, for example "
            "model.predict_proba(X)."
        )


def _raise_if_single_row(y: AnyArray, table: AnyArray) -> None:
    """Raise if there are several scores but one label, such as for a row passed as a vector."""
    if y.size == 1 and table.ndim == 1 and len(table) > 1:
        raise ValueError(
            f"Scores of shape {table.shape} are {len(table)} rows of a binary problem, but there "
            f"is one label. For one row of {len(table)} classes, pass scores[None] and [y]."
        )


def _raise_if_swapped(y: AnyArray, table: AnyArray) -> None:
    if _are_swapped(y, table):
        raise ValueError(
            f"The labels (shape {y.shape}) look like scores and the scores (shape {table.shape}) "
            "look like labels. Swap the two arguments. Metrics take (y_true, y_prob), and the fit "
            "method of an estimator takes (X, y)."
        )


def _are_swapped(y: AnyArray, table: AnyArray) -> bool:
    """Return whether labels look like scores, and scores like labels."""
    if y.ndim == 0 or table.ndim == 0 or len(table) != len(y) or y.dtype.kind != "f":
        return False
    if y.ndim == 2:
        looks_like_labels = table.ndim == 1 or (is_one_hot(table) and table.shape == y.shape)
        return looks_like_labels and y.shape[1] > 1 and not is_one_hot(y)
    if table.ndim != 1:
        return False
    is_label = table.dtype.kind in "OSUb" or bool(np.isin(table, (0, 1)).all())
    return is_label and bool(((y >= 0) & (y <= 1)).all()) and not np.isin(y, (0, 1)).all()
