"""Read dask arrays, whose chunks are checked and summed where they are stored.

The user's scheduler computes the sum of each chunk, and adds the sums in pairs in row order. The
client therefore receives a single sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from calibrant._data.chunks import Chunk, ChunkedScores, ChunkSource
from calibrant._kernels.blocks import add_results, sum_in_pairs
from calibrant._typing import AnyArray
from calibrant._validation import check_same_length
from calibrant._validation.labels import as_labels

_GROUP_SIZE = 4
"""Number of sums that one task adds up. More sums would wait in the memory of a worker. Fewer sums
would need more tasks, each of which costs the scheduler a millisecond."""

_PATIENCE = 10
"""Number of seconds without workers after which an error is raised. A worker that failed is often
replaced within this time."""


def is_dask(data: Any) -> bool:
    """Return whether data is a dask array or data frame, without importing dask."""
    return type(data).__module__.startswith(("dask.array", "dask.dataframe"))


class DaskScores(ChunkedScores):
    """A dask array of scores."""

    def __init__(self, scores: Any) -> None:
        self.rows = whole_rows(scores)

    @property
    def dtype(self) -> Any:
        """Data type of the scores."""
        return self.rows.dtype

    @property
    def n_columns(self) -> int:
        return 2 if self.rows.ndim == 1 else int(self.rows.shape[1])

    @property
    def n_features(self) -> int:
        return 1 if self.rows.ndim == 1 else int(self.rows.shape[1])

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> DaskSource:
        return DaskSource(self, y, weight, groups)

    def map(
        self,
        function: Callable[..., Any],
        shape: tuple[int, ...],
        dtype: Any,
        columns: tuple[Any, ...] = (),
    ) -> Any:
        """Return a dask array with ``function`` applied to each chunk and its rows of columns."""
        rows = self.rows
        if dtype is None:
            dtype = np.float32 if rows.dtype == np.float32 else np.float64
        chunks = (rows.chunks[0], *((size,) for size in shape))
        meta = np.empty((0,) * len(chunks), dtype=dtype)
        axes: dict[str, int] = {"new_axis": 1} if rows.ndim < len(chunks) else {}
        axes |= {"drop_axis": 1} if rows.ndim > len(chunks) else {}
        options = {"dtype": dtype, "chunks": chunks, "meta": meta, **axes}
        if not columns:
            return rows.map_blocks(function, **options)
        # Blocks are aligned by their last axes, so a column needs as many axes as the scores.
        tables = [_as_table(column, rows) for column in columns]
        return rows.map_blocks(partial(_apply_with_columns, function), *tables, **options)


def _as_table(column: Any, rows: Any) -> Any:
    """Return a column as a dask array with the chunks and the number of axes of the scores."""
    from dask.array import asarray

    values = asarray(as_dask_or_array(column))
    check_same_length(X=rows, by=values)
    values = values.rechunk((rows.chunks[0],))
    return values[:, None] if rows.ndim == 2 else values


def _apply_with_columns(function: Callable[..., Any], scores: Any, *tables: Any) -> Any:
    return function(scores, *(table.reshape(-1) for table in tables))


class DaskSource(ChunkSource):
    """The chunks of a dask array of scores with their labels, weights and group columns.

    The columns may be dask arrays, which are chunked like the scores, or NumPy arrays, which are
    sent to the workers.
    """

    def __init__(
        self, scores: DaskScores, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()
    ) -> None:
        self._scores, self._rows = scores, scores.rows
        self.n_rows = len(scores.rows)
        sizes = self._rows.chunks[0]
        columns = [as_dask_or_array(column) for column in (y, weight, *groups)]
        self._labels = columns[0]
        self._columns = [_split(column, sizes) for column in columns]

    @property
    def n_columns(self) -> int:
        return self._scores.n_columns

    def map_chunks(self, function: Callable[[Chunk], Any]) -> list[Any]:
        from dask import delayed

        results: list[Any] = compute(delayed(list)(self._tasks(function)))
        return results

    def add_up(
        self, function: Callable[[Chunk], Any], add: Callable[[Any, Any], Any] = add_results
    ) -> Any:
        from dask import delayed

        sums, add_group = self._tasks(function), delayed(sum_in_pairs)
        while len(sums) > 1:
            groups = [sums[k : k + _GROUP_SIZE] for k in range(0, len(sums), _GROUP_SIZE)]
            sums = [add_group(group, add) for group in groups]
        return compute(sums[0])

    def _tasks(self, function: Callable[[Chunk], Any]) -> list[Any]:
        """Return a delayed task per chunk that applies ``function``."""
        from dask import delayed

        delayed_function, apply = delayed(function, pure=False), delayed(_apply_to_chunk)
        starts = np.concatenate([[0], np.cumsum(self._rows.chunks[0])[:-1]]).tolist()
        blocks = self._rows.to_delayed().ravel()
        return [
            apply(delayed_function, start, *columns)
            for start, *columns in zip(starts, blocks, *self._columns, strict=True)
        ]

    def distinct_labels(self) -> AnyArray | None:
        if self._labels is None or self._labels.dtype.kind in "bui":
            return None
        from dask import delayed

        chunks = [delayed(np.unique)(labels) for labels in self._columns[0]]
        return as_labels(compute(delayed(_union)(chunks)))


def whole_rows(scores: Any) -> Any:
    """Return a dask array whose chunks contain whole rows and have known lengths."""
    scores = as_dask(scores)
    if scores.ndim not in (1, 2):
        raise ValueError(
            "A dask array of scores must have shape (n_samples, n_classes), or (n_samples,) for a "
            f"binary problem, got shape {scores.shape}. If the classes are on the last axis, pass "
            "X.reshape(-1, X.shape[-1])."
        )
    if np.isnan(scores.shape[0]):
        raise ValueError(
            f"A dask array of scores must have chunks of known length, got shape {scores.shape}. "
            "Call X.compute_chunk_sizes() first."
        )
    return scores.rechunk({1: -1}) if scores.ndim == 2 else scores


def as_dask(data: Any) -> Any:
    """Return a dask array, or the columns of a dask data frame with known partition lengths."""
    return data if hasattr(data, "chunks") else data.to_dask_array(lengths=True)


def as_dask_or_array(column: Any) -> Any:
    """Return a dask column as a dask array, any other column as a NumPy array, and None as None."""
    if is_dask(column):
        return as_dask(column)
    return None if column is None else as_labels(column)


def compute(task: Any) -> Any:
    """Compute a delayed task with the user's scheduler, or raise if all workers are gone."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):
        return task.compute()
    future: Any = client.compute(task)
    _wait_for(future, client)
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise RuntimeError(f"{_KILLED}: {error}") from error
        raise


def _wait_for(future: Any, client: Any) -> None:
    """Wait until a future is done, or raise if all workers are gone."""
    is_done = Event()
    future.add_done_callback(lambda _: is_done.set())
    idle_seconds = 0
    while not is_done.wait(1):
        idle_seconds = 0 if client.scheduler_info()["workers"] else idle_seconds + 1
        if idle_seconds >= _PATIENCE:
            future.cancel()
            raise RuntimeError(_NO_WORKERS)


_NO_WORKERS = (
    "All workers of the dask cluster are gone, and none came back. Start workers, and fit again."
)
_KILLED = (
    "The workers of the dask cluster died repeatedly on the same chunk. The chunk may be too large "
    "for their memory"
)


def _split(column: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Split a column of labels, weights or groups like the chunks of the scores."""
    if column is None:
        return [None] * len(sizes)
    if len(column) != sum(sizes):
        raise ValueError(
            f"Labels, weights and groups must have one entry per row of scores, but there are "
            f"{len(column):,} entries and {sum(sizes):,} rows. Pass columns of the same rows."
        )
    if column.ndim != 1:
        raise ValueError(
            "Labels, weights and groups of chunked scores must have one value per row, got shape "
            f"{column.shape}. Pass one column, such as y[:, k] for the label k of multilabel data."
        )
    if hasattr(column, "rechunk"):
        return list(column.rechunk((sizes,)).to_delayed())
    return np.split(np.asarray(column), np.cumsum(sizes)[:-1])


def _apply_to_chunk(
    function: Callable[..., Any], start: int, scores: Any, y: Any, weight: Any, *groups: Any
) -> Any:
    return function(Chunk(scores, y, weight, start, groups))


def _union(labels: list[AnyArray]) -> AnyArray:
    return np.unique(np.concatenate(labels))
