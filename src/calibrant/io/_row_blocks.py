"""Predictions that are read in blocks of rows at every pass over the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._data.chunks import Chunk, ChunkedScores, ChunkSource
from calibrant._kernels.blocks import map_in_order, n_threads
from calibrant._output.progress import tracked
from calibrant._typing import AnyArray, LabelsLike, WeightsLike
from calibrant._validation import as_array, check_classes


class RowBlocks(ChunkedScores):
    """Predictions that a function returns block by block, for data larger than memory.

    Most calibrators, `evaluate` and the metrics accept ``scores``, ``labels`` and ``weight`` in
    place of arrays. Calibrators and metrics call the function once per pass over the data. Only a
    few blocks are in memory at a time.

    Parameters
    ----------
    read : callable without arguments
        Returns an iterable of blocks, which starts with the first row at each call. A block is a
        tuple ``(scores, labels)`` or ``(scores, labels, weights)``.
    n_rows : int, optional
        Number of all rows, if it is known, for the progress bar.
    classes : array-like, optional
        Labels of the columns.
    progress : bool
        Whether to show a progress bar for each pass over the data if standard error is a terminal.

    Attributes
    ----------
    scores, labels, weight
        Placeholders for the columns of all rows. ``weight`` is None if blocks have no weights.
    n_classes : int
        Number of columns.

    See Also
    --------
    open_scores : Open a file of predictions.
    ScoreChunks : Scores that another system stores in chunks.

    Examples
    --------
    >>> from calibrant import evaluate
    >>> def read():
    ...     yield [[0.9, 0.1], [0.2, 0.8]], [0, 1]
    ...     yield [[0.4, 0.6]], [0]
    >>> blocks = RowBlocks(read)
    >>> round(evaluate(blocks.labels, blocks.scores).accuracy, 3)
    0.667
    """

    def __init__(
        self,
        read: Callable[[], Iterable[tuple[Any, ...]]],
        *,
        n_rows: int | None = None,
        classes: LabelsLike | None = None,
        progress: bool = False,
    ) -> None:
        self.read = read
        self.n_rows = n_rows
        self._given_classes = classes
        self.progress = progress
        self._n_rows_read: int | None = None
        self._started: Iterator[tuple[Any, ...]] | None = None
        self.labels = BlockColumn(self, "labels")

    @property
    def scores(self) -> RowBlocks:
        """Placeholder for the scores of all rows."""
        return self

    @property
    def weight(self) -> BlockColumn | None:
        """Placeholder for the weights of all rows."""
        has_none = len(self._first) < 3 or self._first[2] is None
        return None if has_none else BlockColumn(self, "weights")

    @cached_property
    def _first(self) -> tuple[Any, ...]:
        self._started = iter(self.read())
        for block in self._started:
            return block
        raise ValueError(
            "read() returned no blocks. Every call to read() must return at least one block."
        )

    def _blocks(self) -> Iterator[tuple[Any, ...]]:
        """All blocks.

        If the first block was already read for inspection, the first pass does not read the block
        again.
        """
        started, self._started = self._started, None
        if started is not None:
            yield self._first
        yield from self.read() if started is None else started

    @cached_property
    def n_classes(self) -> int:
        """Number of columns of the scores, or 2 if there is one score per row."""
        scores = as_array(self._first[0])
        return int(scores.shape[1]) if scores.ndim == 2 else 2

    @property
    def n_columns(self) -> int:
        return self.n_classes

    @cached_property
    def n_features(self) -> int:
        return 1 if np.ndim(as_array(self._first[0])) == 1 else self.n_classes

    @cached_property
    def classes(self) -> AnyArray | None:
        """Labels of the columns, or None if they were not passed."""
        given = self._given_classes
        return None if given is None else check_classes(given, self.n_classes)

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> BlockSource:
        return BlockSource(self, y, weight, groups)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the blocks from the first row on, in one pass."""
        start = 0
        for scores, labels, *weights in self._blocks():
            yield Chunk(scores, labels, weights[0] if weights else None, start)
            start += len(scores)
        if self._n_rows_read not in (None, start):
            raise ValueError(
                f"read() returned {start:,} rows, but {self._n_rows_read:,} rows in an earlier "
                "call. Every call to read() must start with the first row."
            )
        self._n_rows_read = start

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"<{type(self).__name__}: {rows} in blocks>"


class BlockColumn:
    """Placeholder for the labels, or the weights, of `RowBlocks`."""

    def __init__(self, blocks: RowBlocks, name: str) -> None:
        self.blocks, self.name = blocks, name

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"This operation needs all rows in memory, but the {self.name} are read in blocks. "
            "Load all blocks first, or process each block separately."
        )

    def __repr__(self) -> str:
        return f"<{self.name} of {self.blocks!r}>"


class BlockSource(ChunkSource):
    """The blocks with their labels and weights, which may also be arrays of all rows.

    Group columns are arrays with one entry per row.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        y: LabelsLike | BlockColumn | None,
        weight: WeightsLike | BlockColumn | None = None,
        groups: tuple[AnyArray, ...] = (),
    ) -> None:
        self.blocks, self.n_rows = blocks, blocks.n_rows
        self._columns = [_check_column(blocks, column) for column in (y, weight, *groups)]
        classes = blocks.classes if isinstance(self._columns[0], BlockColumn) else None
        # Labels that are column numbers need no lookup.
        is_numbered = classes is not None and np.array_equal(classes, np.arange(self.n_columns))
        self.classes = None if is_numbered else classes

    @property
    def n_columns(self) -> int:
        return self.blocks.n_classes

    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterator[Any]:
        # Threads process some blocks while this thread reads the next block.
        with ThreadPoolExecutor(n_threads()) as pool:
            yield from map_in_order(pool, function, self._tracked(), ahead=n_threads() + 1)

    def distinct_labels(self) -> AnyArray | None:
        labels = self._columns[0]
        if labels is None:
            return None
        if not isinstance(labels, BlockColumn):
            return None if labels.dtype.kind in "bui" else np.unique(labels)
        if as_array(self.blocks._first[1]).dtype.kind in "bui":
            return None
        chunks = self.blocks.chunks()
        return np.unique(np.concatenate([np.unique(as_array(chunk.y)) for chunk in chunks]))

    def _tracked(self) -> Iterator[Chunk]:
        return tracked(
            self._with_columns(),
            total=self.blocks.n_rows,
            description="Reading",
            progress=self.blocks.progress,
            size=lambda chunk: len(chunk.scores),
        )

    def _with_columns(self) -> Iterator[Chunk]:
        """Blocks with the labels, weights and groups that the caller passed."""
        n_rows = 0
        for chunk in self.blocks.chunks():
            n_rows = chunk.start + len(chunk.scores)
            rows = slice(chunk.start, n_rows)
            y, weight, *groups = (_rows_of(column, chunk, rows) for column in self._columns)
            yield chunk._replace(y=y, weight=weight, groups=tuple(groups))
        for column in self._columns:
            if isinstance(column, np.ndarray) and len(column) != n_rows:
                raise ValueError(
                    f"Labels, weights and groups must have one entry per row of scores, but there "
                    f"are {len(column):,} entries and {n_rows:,} rows."
                )


class ScoreChunks(ChunkedScores, ChunkSource):
    """Scores that another system stores in chunks, such as the tables of a cluster.

    Define ``map_chunks`` in a subclass. ``map_chunks`` applies a function to each chunk where the
    chunk is stored. Pass an instance in place of an array of scores, and None for the labels, which
    come with the chunks. A chunk is ``Chunk(scores, labels, weights, start)``. Labels are column
    numbers or values of ``classes``, and weights may be None. ``start`` is the number of the first
    row, for error messages.

    See Also
    --------
    RowBlocks : Predictions that a function returns block by block.
    Chunk : Consecutive rows with their labels and weights.

    Examples
    --------
    >>> from calibrant import evaluate
    >>> from calibrant.io import Chunk
    >>> class Two(ScoreChunks):
    ...     n_columns = 2
    ...     def map_chunks(self, function):
    ...         return [function(Chunk([[0.9, 0.1]], [k], None, k)) for k in (0, 1)]
    >>> evaluate(None, Two()).accuracy
    0.5
    """

    classes: AnyArray | None = None
    """Labels of the columns, if they are not column numbers."""

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        if y is not None or weight is not None:
            raise TypeError(
                "The chunks already contain labels and weights. Pass None as labels and None as "
                "weights."
            )
        if groups:
            raise TypeError(
                "The groups of these chunks are unknown. Evaluate each group separately."
            )
        return self


def _rows_of(column: Any, chunk: Chunk, rows: slice) -> Any:
    """The rows of a column that belong to a block."""
    if isinstance(column, BlockColumn):
        return chunk.y if column.name == "labels" else chunk.weight
    return None if column is None else column[rows]


def _check_column(blocks: RowBlocks, column: Any) -> Any:
    """A column of the blocks themselves, or an array of all rows."""
    if isinstance(column, BlockColumn):
        if column.blocks is not blocks:
            raise ValueError(f"The {column.name} and the scores come from different blocks.")
        return column
    return None if column is None else as_array(column)
