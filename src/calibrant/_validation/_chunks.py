"""dask arrays: chunks of rows, each checked and added up where it is.

Whatever is a sum over rows is computed chunk by chunk by the scheduler that the user chose, and the
sums are added in pairs, in the order of the rows: the client receives one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def is_chunked(data: Any) -> bool:
    """Whether data is a dask array; dask is not imported to find out."""
    return type(data).__module__.startswith("dask.array")


def sum_chunks(
    function: Callable[[Any, Any, Any], Any],
    y: Any,
    scores: Any,
    weight: Any = None,
    add: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """The sum of ``function(y, scores, weight)`` over the chunks of rows of ``scores``.

    Labels and weights may be dask arrays, which are cut alike, or NumPy arrays, which are sent.
    """
    from dask import delayed

    scores = whole_rows(scores)
    sizes = scores.chunks[0]
    columns = [_cut(column, sizes) for column in (y, weight)]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
    blocks = scores.to_delayed()[:, 0]
    parts = [
        delayed(_of_chunk)(function, start, *rows)
        for start, *rows in zip(starts, blocks, *columns, strict=True)
    ]
    plus = delayed(add or _add)
    while len(parts) > 1:
        pairs = [plus(*parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0].compute()


def whole_rows(scores: Any) -> Any:
    """A dask array whose chunks hold whole rows, and are of known length."""
    if scores.ndim != 2 or np.isnan(scores.shape[0]):
        raise ValueError(
            f"a dask array of scores must have shape (n, K) and chunks of known length, got shape "
            f"{scores.shape}: call compute_chunk_sizes() first"
        )
    return scores.rechunk({1: -1})


def _cut(column: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Labels or weights as one part a chunk."""
    if column is None:
        return [None] * len(sizes)
    if len(column) != sum(sizes):
        raise ValueError(f"rows do not match: {len(column)} labels or weights, {sum(sizes)} scores")
    if is_chunked(column):
        return list(column.rechunk((sizes,)).to_delayed())
    return np.split(np.asarray(column), np.cumsum(sizes)[:-1])


def _of_chunk(function: Callable[..., Any], start: int, scores: Any, y: Any, weight: Any) -> Any:
    try:
        return function(y, scores, weight)
    except (TypeError, ValueError) as error:
        raise type(error)(f"in the chunk that begins with row {start}: {error}") from None


def _add(a: Any, b: Any) -> Any:
    return tuple(x + y for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b
