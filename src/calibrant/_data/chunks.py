"""Chunked data that users pass: chunks of a dask array, and blocks of a file or of an iterator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from calibrant._kernels.blocks import add_results, sum_in_pairs
from calibrant._typing import AnyArray


class Chunk(NamedTuple):
    """Consecutive rows as the user passed them.

    ``weight`` is None if the rows have no weights. ``start`` is the number of the first row.
    ``groups`` contains the group columns if the caller requested them.
    """

    scores: Any
    y: Any
    weight: Any
    start: int
    groups: tuple[Any, ...] = ()


class ChunkSource(ABC):
    """Rows with labels that can be read chunk by chunk, any number of times."""

    classes: AnyArray | None = None
    """Labels of the columns, if they are known."""

    n_rows: int | None = None
    """Number of rows, or None if it is unknown before a pass."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of classes, which is 2 if there is one score per row."""

    @abstractmethod
    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterable[Any]:
        """Apply ``function`` to each chunk in row order, in one pass.

        The function may run in other processes and more than once. The function and its results
        must be picklable and must not depend on other state.
        """

    def add_up(
        self, function: Callable[[Chunk], Any], add: Callable[[Any, Any], Any] = add_results
    ) -> Any:
        """Sum ``function(chunk)`` in one pass, by adding pairs in row order."""
        return sum_in_pairs(self.map_chunks(function), add)

    def distinct_labels(self) -> AnyArray | None:
        """Return the sorted distinct labels, or None if labels are integers (column numbers)."""
        return None


class ChunkedScores(ABC):
    """Scores that are passed in place of an array and read chunk by chunk."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of classes, which is 2 if there is one score per row."""

    @property
    def n_features(self) -> int:
        """Number of columns that the user passed, which is 1 if there is one score per row."""
        return self.n_columns

    @abstractmethod
    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        """Return the chunks with their labels, weights and group columns."""

    def map(
        self,
        function: Callable[..., Any],
        shape: tuple[int, ...],
        dtype: Any,
        columns: tuple[Any, ...] = (),
    ) -> Any:
        """Apply ``function`` to the scores of each chunk when the chunks are read.

        ``shape`` is the shape of a result without its first axis. ``columns`` contains additional
        columns of the same rows, which are passed to the function after the scores.
        """
        return MappedScores(self, function, shape[0] if shape else 1, columns)

    def __iter__(self) -> Iterator[Any]:
        """Yield the scores of each chunk in row order, in one pass."""
        return iter(self.source(None).map_chunks(_scores_of))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "This operation needs all rows in memory, but the scores are read in chunks. Pass "
            "np.concatenate(list(scores)), or process each chunk."
        )


class MappedScores(ChunkedScores):
    """Chunked scores to which a function is applied when they are read."""

    def __init__(
        self,
        scores: ChunkedScores,
        function: Callable[..., Any],
        n_columns: int,
        columns: tuple[Any, ...] = (),
    ) -> None:
        self._scores, self._function, self._n_columns = scores, function, n_columns
        self._columns = columns

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        source = self._scores.source(y, weight, (*self._columns, *groups))
        return _MappedSource(source, self._function, self.n_columns, len(self._columns))

    def __repr__(self) -> str:
        return f"<{self._function!r} of {self._scores!r}>"


class _MappedSource(ChunkSource):
    def __init__(
        self, source: ChunkSource, function: Callable[..., Any], n_columns: int, n_extra: int
    ) -> None:
        self._source, self._function, self._n_columns = source, function, n_columns
        self._n_extra = n_extra
        """Number of the first group columns that only the function gets."""
        self.classes, self.n_rows = source.classes, source.n_rows

    @property
    def n_columns(self) -> int:
        return self._n_columns

    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterable[Any]:
        rule = partial(_apply_to_scores, self._function, self._n_extra, function)
        return self._source.map_chunks(rule)

    def distinct_labels(self) -> AnyArray | None:
        return self._source.distinct_labels()


def _scores_of(chunk: Chunk) -> Any:
    return chunk.scores


def _apply_to_scores(
    change: Callable[..., Any], n_extra: int, function: Callable[[Chunk], Any], chunk: Chunk
) -> Any:
    scores = change(chunk.scores, *chunk.groups[:n_extra])
    return function(chunk._replace(scores=scores, groups=chunk.groups[n_extra:]))
