"""Rows and labels of all containers that a classifier accepts, such as arrays and data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from calibrant._typing import AnyArray, IntArray, LabelsLike
from calibrant._validation import as_array, missing_as_text, raise_if_missing, warn_data


def n_rows(data: Any) -> int:
    """Number of rows."""
    shape = getattr(data, "shape", ())
    return int(shape[0]) if shape else len(data)


def take_rows(data: Any, rows: IntArray | slice) -> Any:
    """Select rows, in the same type of container.

    Sparse matrices must be indexable, see `sklearn.utils.indexable`.
    """
    if hasattr(data, "iloc"):  # pandas: brackets select columns
        return data.iloc[rows]
    if hasattr(data, "column_names"):  # pyarrow: brackets accept slices, `take` accepts indices
        return data[rows] if isinstance(rows, slice) else data.take(rows)
    if isinstance(data, list | tuple) and not isinstance(rows, slice):
        return [data[i] for i in rows]
    return data[rows]


def params_of_rows(params: Mapping[str, Any], n_samples: int, rows: IntArray) -> dict[str, Any]:
    """Select rows of all parameters of a fit that have one value per row."""
    return {
        name: take_rows(value, rows) if _is_per_row(value, n_samples) else value
        for name, value in params.items()
    }


def _is_per_row(value: Any, n_samples: int) -> bool:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
        return False
    # Use the shape, because arrays without dimensions and sparse matrices have no length.
    shape = getattr(value, "shape", None)
    return bool(shape and shape[0] == n_samples) if shape is not None else len(value) == n_samples


def check_targets(y: LabelsLike) -> AnyArray:
    """Return labels of shape (n,), and raise if any label is missing or not finite."""
    labels = None if y is None else as_array(y)
    if labels is not None and labels.ndim == 1:
        _check_no_label_missing(y, labels)
    check_classification_targets(y)
    targets: AnyArray = column_or_1d(y, warn=True)
    if len(targets) == 0:
        raise ValueError(
            "The labels are empty (n_samples=0), but at least one row of each class is needed. "
            "Pass rows of all classes."
        )
    return targets


def _check_no_label_missing(y: LabelsLike, labels: AnyArray) -> None:
    if labels.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    else:
        raise_if_missing(y, labels)
    note = missing_as_text(labels)
    if note:
        warn_data(f"{note} It is treated as a class.")
