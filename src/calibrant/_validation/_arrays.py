"""Whatever holds numbers or labels, as a NumPy array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from calibrant._typing import AnyArray


def as_array(data: Any) -> AnyArray:
    """NumPy array of lists, data frames, Arrow tables, memory maps and torch tensors, in the byte
    order of the machine; no copy where none is needed.
    """
    if type(data) is np.ndarray and data.dtype.isnative:
        return data
    if type(data).__module__.partition(".")[0] == "torch":
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
        return np.asarray(data.numpy())
    if type(data).__module__.startswith("dask."):
        raise TypeError(
            "this needs all rows at once, and those of a dask array are not gathered: pass "
            "X.compute() where they fit into memory, or some of them"
        )
    if isinstance(data, set | frozenset | dict):
        raise TypeError(f"a {type(data).__name__} has no order: pass a list or a data frame")
    if issparse(data):
        raise TypeError(f"a sparse {type(data).__name__} is not taken: pass it as .toarray()")
    if isinstance(data, np.ma.MaskedArray):
        _raise_if_masked(data)
    try:
        array = np.asarray(data)
    except ValueError:
        _raise_if_ragged(data)
        raise
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _raise_if_masked(data: Any) -> None:
    """What is masked is missing, and NumPy would take what lies below the mask."""
    masked = np.argwhere(np.ma.getmaskarray(data))
    if len(masked):
        place = ", ".join(map(str, masked[0].tolist()))
        raise ValueError(
            f"entry [{place}] of a masked array is masked, which is to say missing: leave such "
            "rows out, of labels, scores and weights alike"
        )


def _raise_if_ragged(data: Any) -> None:
    """Name the first row of nested lists that has another length than the first."""
    lengths = [len(row) if hasattr(row, "__len__") else None for row in data]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            has = "is a single value" if length is None else f"has {length} values"
            first = "is a single value" if lengths[0] is None else f"has {lengths[0]}"
            raise ValueError(
                f"row {i} {has} and row 0 {first}: all rows need one value for each class"
            )
