"""dask arrays: chunks of rows, each checked and added up where it is.

Whatever is a sum over rows is computed chunk by chunk by the scheduler that the user chose, and the
sums are added in pairs, in the order of the rows: the client receives one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np

from calibrant._blocks import added, sum_in_pairs
from calibrant._data.chunks import Chunk
from calibrant._typing import AnyArray
from calibrant._validation._labels import as_labels

_TOGETHER = 4
"""Sums that a task adds up, in pairs: they wait for each other in the memory of a worker, and every
task costs the scheduler a millisecond."""

_PATIENCE = 10
"""Seconds that a cluster may be without workers: one that died is often replaced."""


def is_dask(data: Any) -> bool:
    """Whether data is a dask array or data frame; dask is not imported to find out."""
    return type(data).__module__.startswith(("dask.array", "dask.dataframe"))


class DaskSource:
    """The chunks of a dask array of scores with their labels, weights and columns of groups.

    These may be dask arrays, which are cut alike, or NumPy arrays, which are sent.
    """

    classes: AnyArray | None = None

    def __init__(
        self, scores: Any, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()
    ) -> None:
        self.scores = whole_rows(scores)
        self.n_columns = 2 if self.scores.ndim == 1 else int(self.scores.shape[1])
        sizes = self.scores.chunks[0]
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist()
        self._labels = as_dask(y) if is_dask(y) else as_labels(y)
        others = (as_dask(one) if is_dask(one) else one for one in (weight, *groups))
        self._columns = [_cut(column, sizes) for column in (self._labels, *others)]

    def add_up(
        self, function: Callable[[Chunk], Any], add: Callable[[Any, Any], Any] = added
    ) -> Any:
        """The sum of ``function(part)`` over chunks, added in pairs in their order."""
        from dask import delayed

        shared = delayed(function, pure=False)
        of_chunk, sum_group = delayed(_of_chunk), delayed(sum_in_pairs)
        blocks = self.scores.to_delayed().ravel()
        parts = [
            of_chunk(shared, start, *rows)
            for start, *rows in zip(self._starts, blocks, *self._columns, strict=True)
        ]
        while len(parts) > 1:
            groups = [parts[k : k + _TOGETHER] for k in range(0, len(parts), _TOGETHER)]
            parts = [sum_group(group, add) for group in groups]
        return computed(parts[0])

    def distinct_labels(self) -> AnyArray | None:
        """The labels that occur, in order; None of integers."""
        if self._labels.dtype.kind in "bui":
            return None
        if not is_dask(self._labels):
            return np.unique(self._labels)
        from dask import delayed

        found = computed(delayed(_union)([delayed(np.unique)(p) for p in self._columns[0]]))
        return as_labels(found)


def whole_rows(scores: Any) -> Any:
    """A dask array whose chunks hold whole rows, and are of known length."""
    scores = as_dask(scores)
    if scores.ndim not in (1, 2) or np.isnan(scores.shape[0]):
        raise ValueError(
            f"a dask array of scores must have shape (n, K) and chunks of known length, got shape "
            f"{scores.shape}: call compute_chunk_sizes() first"
        )
    return scores.rechunk({1: -1}) if scores.ndim == 2 else scores


def as_dask(data: Any) -> Any:
    """A dask array of what is one, or of the columns of a dask data frame, whose partitions are
    counted.
    """
    return data if hasattr(data, "chunks") else data.to_dask_array(lengths=True)


def computed(total: Any) -> Any:
    """What a delayed sum comes to, by the user's scheduler; an error where all workers are gone."""
    from dask.base import get_scheduler

    client: Any = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):
        return total.compute()
    future: Any = client.compute(total)
    is_done = Event()
    future.add_done_callback(lambda _: is_done.set())
    waited = 0
    while not is_done.wait(1):
        waited = 0 if client.scheduler_info()["workers"] else waited + 1
        if waited >= _PATIENCE:
            future.cancel()
            raise RuntimeError(_NO_WORKERS)
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise RuntimeError(f"{_KILLED}: {error}") from error
        raise


_NO_WORKERS = (
    "all workers of the dask cluster are gone, and none came back: start others, and fit again"
)
_KILLED = "the workers of the dask cluster died again and again on the same chunk, which may be "
_KILLED += "too large for their memory"


def _cut(column: Any, sizes: tuple[int, ...]) -> list[Any]:
    """Labels or weights as one part a chunk."""
    if column is None:
        return [None] * len(sizes)
    if len(column) != sum(sizes):
        raise ValueError(
            f"rows do not match: {len(column)} labels, weights or groups, {sum(sizes)} scores"
        )
    if is_dask(column):
        return list(column.rechunk((sizes,)).to_delayed())
    return np.split(np.asarray(column), np.cumsum(sizes)[:-1])


def _of_chunk(
    function: Callable[..., Any], start: int, scores: Any, y: Any, weight: Any, *groups: Any
) -> Any:
    return function(Chunk(scores, y, weight, start, groups))


def _union(labels: list[AnyArray]) -> AnyArray:
    return np.unique(np.concatenate(labels))
