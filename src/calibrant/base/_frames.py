"""Data frames as input and output. pandas and polars are imported only if they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, ScoresLike
from calibrant._validation import column_names, order_of


def n_columns(data: Any) -> int:
    """Return the number of columns of user input, 1 for a one-dimensional array."""
    if hasattr(data, "n_features"):  # chunked scores
        return int(data.n_features)
    if hasattr(data, "n_classes"):  # top scores
        return int(data.n_classes)
    shape = np.shape(data)
    return int(shape[1]) if len(shape) > 1 else 1


def fitted_names(data: ScoresLike, classes: AnyArray) -> AnyArray | None:
    """Return the column names in the order of the classes, or None if not all are distinct text."""
    names = column_names(data)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) < len(names):
        return None
    order = order_of(names, classes)
    labels = np.array(names, dtype=object)
    return labels if order is None else labels[order]


def reordered_names(data: ScoresLike, classes: AnyArray) -> list[Any] | None:
    """Return the column names if they name the classes in another order, else None."""
    names = column_names(data)
    order = None if names is None else order_of(names, classes)
    return None if order is None or (order == np.arange(len(order))).all() else names


def keep_columns(calibrator: Any, data: ScoresLike) -> None:
    """Set ``n_features_in_``, and ``feature_names_in_`` if all column names are text.

    Names are in the order of ``classes_`` if they name the classes.
    """
    calibrator.n_features_in_ = n_columns(data)
    names = fitted_names(data, calibrator.classes_)
    if names is not None:
        calibrator.feature_names_in_ = names
    calibrator._reordered_columns = reordered_names(data, calibrator.classes_)


def wrapped(values: Any, like: ScoresLike, columns: AnyArray, output: str) -> Any:
    """Convert ``values`` to a frame with the index of ``like``, if a frame was requested."""
    if output == "default" or not isinstance(values, np.ndarray):
        return values
    if output == "polars":
        import polars

        return polars.DataFrame(values, schema=[str(c) for c in columns])
    import pandas

    index = like.index if isinstance(like, pandas.DataFrame | pandas.Series) else None
    return pandas.DataFrame(values, index=index, columns=columns)
