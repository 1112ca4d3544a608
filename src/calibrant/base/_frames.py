"""Data frames out: pandas and polars are imported only where a user asks for their frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, ScoresLike
from calibrant._validation import shortened


def n_columns(data: ScoresLike) -> int:
    """Columns of what the user passed; 1 for a flat array."""
    shape = np.shape(data)
    return int(shape[1]) if len(shape) > 1 else 1


def column_names(data: ScoresLike) -> AnyArray | None:
    """Names of the columns of a frame where all are text; None for anything else."""
    names = getattr(data, "columns", None)
    if names is None or len(np.shape(data)) != 2:
        return None
    listed = np.asarray(names, dtype=object)
    return listed if all(isinstance(name, str) for name in listed) else None


def check_column_names(data: ScoresLike, fitted: AnyArray | None) -> None:
    """Raise where a frame names its columns otherwise than the frame of the fit.

    Columns without names, and those of a fit without names, are taken in their order.
    """
    names = column_names(data)
    if names is None or fitted is None or names.tolist() == fitted.tolist():
        return
    listed = fitted.tolist()
    what = "in another order" if sorted(names) == sorted(listed) else "with other names"
    raise ValueError(
        f"X has its columns {what} than at fit: {shortened(names.tolist())} instead of "
        f"{shortened(listed)}; select them by X[calibrator.feature_names_in_]"
    )


def wrapped(values: FloatArray, like: ScoresLike, columns: AnyArray, output: str) -> Any:
    """``values`` as a frame with the index of ``like``, or as they are."""
    if output == "default":
        return values
    if output == "polars":
        import polars

        return polars.DataFrame(values, schema=[str(c) for c in columns])
    import pandas

    index = like.index if isinstance(like, pandas.DataFrame | pandas.Series) else None
    return pandas.DataFrame(values, index=index, columns=columns)
