"""Truth and scores in each other's place, on their side, or of different length: said before
anything else is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray
from calibrant._validation._labels import check_label_shape, is_one_hot
from calibrant._validation._layouts import raise_if_deep
from calibrant._validation._remarks import remark


def check_arguments(y: AnyArray, table: AnyArray) -> None:
    """Raise where labels and scores cannot be of the same rows."""
    raise_if_deep(y, table)
    _raise_if_one_row(y, table)
    if _are_swapped(y, table):
        raise ValueError(
            f"the labels (shape {y.shape}) look like scores and the scores (shape {table.shape}) "
            "like labels: functions take (y_true, y_prob), the truth first, and the fit of an "
            "estimator takes (X, y), the scores first"
        )
    check_label_shape(y, table.shape[1] if table.ndim == 2 else None)
    if table.ndim == 0 or len(table) == len(y):
        return
    said = f"rows do not match: y has {len(y)} rows, scores has {len(table)} rows"
    if table.ndim == 2 and table.shape[1] == len(y):
        said += "; the scores lie on their side: pass scores.T, one row a case"
    raise ValueError(said)


def remark_other_order(y_true: Any, *others: Any) -> None:
    """Say that rows are matched by position where pandas says that they have another order."""
    index = _index_of(y_true)
    if index is None:
        return
    for other in map(_index_of, others):
        if other is not None and _is_permuted(index, other):
            remark(
                "the indexes of labels, scores and weights hold the same rows in different orders, "
                "and rows were matched by position; to go by the index, pass X.loc[y.index], and "
                "to go by position without a remark, y.to_numpy()"
            )
            return


def _index_of(data: Any) -> Any:
    """The index of a pandas object; None for anything else."""
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    index = getattr(data, "index", None) if is_pandas else None
    return index if hasattr(index, "equals") else None


def _is_permuted(one: Any, other: Any) -> bool:
    return len(one) == len(other) and not one.equals(other) and set(one) == set(other)


def _raise_if_one_row(y: AnyArray, table: AnyArray) -> None:
    """Several scores of a single label are one row, whose shape says otherwise."""
    if y.size == 1 and table.ndim == 1 and len(table) > 1:
        raise ValueError(
            f"scores of shape {table.shape} are one score a row of a binary problem, and there is "
            f"one label: for one row of {len(table)} classes pass scores[None], of shape "
            f"(1, {len(table)}), and the label as [y]"
        )


def _are_swapped(y: AnyArray, table: AnyArray) -> bool:
    if table.ndim != 1 or y.ndim == 0 or len(table) != len(y) or y.dtype.kind != "f":
        return False
    if y.ndim == 2:
        return y.shape[1] > 1 and not is_one_hot(y)
    is_label = table.dtype.kind in "OSUb" or bool(np.isin(table, (0, 1)).all())
    return is_label and bool(((y >= 0) & (y <= 1)).all()) and not np.isin(y, (0, 1)).all()
