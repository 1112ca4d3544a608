"""Conversion of array-likes to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from calibrant._typing import AnyArray


def as_array(data: Any) -> AnyArray:
    """Convert lists, data frames, Arrow tables, memory maps and torch tensors to NumPy arrays.

    The result has the byte order of the machine. Data are copied only if necessary.
    """
    if type(data) is np.ndarray and data.dtype.isnative:
        return data
    if type(data).__module__.partition(".")[0] == "torch":
        # Compare the type by name, because importing torch takes seconds. NumPy has no bfloat16.
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
        return np.asarray(data.numpy())
    _raise_if_unsupported(data)
    try:
        array = np.asarray(data)
    except ValueError:
        _raise_if_ragged(data)
        raise
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _raise_if_unsupported(data: Any) -> None:
    """Raise if data have no order, are sparse, have masked values or are a dask array."""
    if type(data).__module__.startswith("dask."):
        raise TypeError(
            "This operation needs all rows in memory, but it got a dask array. Pass X.compute(), "
            "or a subset such as X[:100_000].compute()."
        )
    if isinstance(data, set | frozenset | dict):
        raise TypeError(
            f"The rows of a {type(data).__name__} have no order. Pass a list, an array or a data "
            "frame."
        )
    if issparse(data):
        raise TypeError(f"Sparse input ({type(data).__name__}) is not supported. Pass X.toarray().")
    if isinstance(data, np.ma.MaskedArray):
        _raise_if_masked(data)


def _raise_if_masked(data: Any) -> None:
    """Raise if an entry is masked, because NumPy would silently use the value below the mask."""
    positions = np.argwhere(np.ma.getmaskarray(data))
    if len(positions):
        place = ", ".join(map(str, positions[0].tolist()))
        raise ValueError(
            f"Entry [{place}] of a masked array is masked, but missing values are not allowed. "
            "Remove such rows from labels, scores and weights."
        )


def _raise_if_ragged(data: Any) -> None:
    """Name the first row of nested lists whose length differs from row 0."""
    lengths = [len(row) if hasattr(row, "__len__") else None for row in data]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"Row {i} has {_count(length)}, but row 0 has {_count(lengths[0])}. Pass one value "
                "per class in every row."
            )


def _count(length: int | None) -> str:
    if length is None:
        return "a single value without a list"
    return f"{length} value{'s' * (length != 1)}"
