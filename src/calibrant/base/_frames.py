"""Data frames out: pandas and polars are imported only where a user asks for their frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import AnyArray, FloatArray, ScoresLike


def n_columns(data: ScoresLike) -> int:
    """Columns of what the user passed; 1 for a flat array."""
    shape = np.shape(data)
    return int(shape[1]) if len(shape) > 1 else 1


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
