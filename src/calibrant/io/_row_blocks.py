"""Predictions that come as blocks of rows, any number of times: more than memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from calibrant._blocks import in_order, n_threads
from calibrant._data.chunks import Chunk, ChunkedScores, ChunkSource
from calibrant._output.progress import tracked
from calibrant._typing import AnyArray, LabelsLike, WeightsLike
from calibrant._validation import as_array, check_classes

Block = tuple[Any, ...]
"""Scores and labels, or scores, labels and weights."""


class RowBlocks:
    """Predictions that a function gives block by block, and gives again at each pass over them.

    What is a sum over rows takes ``scores``, ``labels`` and ``weight`` in the place of arrays: fits
    of the scaling family, of histogram binning, `evaluate`, the metrics. A few blocks are in memory
    at a time; threads work on some while the next is read.

    Parameters
    ----------
    read : callable without arguments
        Gives an iterable of blocks that begins with the first row at each call: tuples ``(scores,
        labels)`` or ``(scores, labels, weights)``.
    n_rows : int, optional
        Rows in all, where they are known, for the bar.
    classes : labels of the columns, optional
    progress : bool
        Show a bar for each pass, where there is a terminal.

    Attributes
    ----------
    scores, labels, weight
        Stand for all rows; ``weight`` is None where blocks have none.
    n_classes : int

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
        read: Callable[[], Iterable[Block]],
        *,
        n_rows: int | None = None,
        classes: LabelsLike | None = None,
        progress: bool = False,
    ) -> None:
        self.read = read
        self.n_rows = n_rows
        self._given_classes = classes
        self.progress = progress
        self._seen: int | None = None
        self.scores, self.labels = BlockScores(self), BlockColumn(self, "labels")

    @cached_property
    def _first(self) -> Block:
        for block in self.read():
            return block
        raise ValueError("there are no blocks: read() must give at least one, at every call")

    @cached_property
    def n_classes(self) -> int:
        """Columns of the scores; 2 where there is one score a row."""
        scores = as_array(self._first[0])
        return int(scores.shape[1]) if scores.ndim == 2 else 2

    @cached_property
    def classes(self) -> AnyArray | None:
        """Labels of the columns, or None where nobody said them."""
        given = self._given_classes
        return None if given is None else check_classes(given, self.n_classes)

    @property
    def weight(self) -> BlockColumn | None:
        """Stands for the weights of all rows."""
        has_none = len(self._first) < 3 or self._first[2] is None
        return None if has_none else BlockColumn(self, "weights")

    def __iter__(self) -> Iterator[Chunk]:
        """The blocks, from the first row on: scores, labels, weights or None, and the number of the
        first row.
        """
        start = 0
        for scores, labels, *rest in self.read():
            yield Chunk(scores, labels, rest[0] if rest else None, start)
            start += len(scores)
        if self._seen not in (None, start):
            raise ValueError(
                f"read() gave {start:,} rows, and {self._seen:,} before: it must begin anew with "
                "the first row at every call"
            )
        self._seen = start

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        return f"<{type(self).__name__}: {rows} in blocks>"


class BlockColumn:
    """Stands for the labels, or the weights, of `RowBlocks`."""

    def __init__(self, rows: RowBlocks, name: str) -> None:
        self.rows, self.name = rows, name

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"This operation needs all rows in memory, but these {self.name} are read in blocks. "
            "Load them first, for example with ScoreFile.load(), or process each block."
        )

    def __repr__(self) -> str:
        return f"<{self.name} of {self.rows!r}>"


class BlockScores(ChunkedScores):
    """Stands for the scores of `RowBlocks`."""

    def __init__(self, rows: RowBlocks) -> None:
        self.rows = rows

    @property
    def n_columns(self) -> int:
        return self.rows.n_classes

    @property
    def n_features(self) -> int:
        return 1 if np.ndim(as_array(self.rows._first[0])) == 1 else self.n_columns

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> BlockSource:
        return BlockSource(self.rows, y, weight, groups)

    def __repr__(self) -> str:
        return f"<scores of {self.rows!r}>"


class BlockSource(ChunkSource):
    """The blocks with labels and weights of their own, or with those of an array of all rows.

    Group columns are arrays of all rows.
    """

    def __init__(
        self,
        rows: RowBlocks,
        y: LabelsLike | BlockColumn | None,
        weight: WeightsLike | BlockColumn | None = None,
        groups: tuple[AnyArray, ...] = (),
    ) -> None:
        self.rows, self.n_rows = rows, rows.n_rows
        self._columns = [_check_column(rows, column) for column in (y, weight, *groups)]
        classes = rows.classes if isinstance(self._columns[0], BlockColumn) else None
        # Column numbers need no lookup.
        is_numbered = classes is not None and np.array_equal(classes, np.arange(self.n_columns))
        self.classes = None if is_numbered else classes

    @property
    def n_columns(self) -> int:
        return self.rows.n_classes

    def map_chunks(self, function: Callable[[Chunk], Any]) -> Iterator[Any]:
        # Threads work on some blocks while the next one is read.
        with ThreadPoolExecutor(n_threads()) as pool:
            yield from in_order(pool, function, self._watched(), ahead=n_threads() + 1)

    def distinct_labels(self) -> AnyArray | None:
        labels = self._columns[0]
        if labels is None:
            return None
        if not isinstance(labels, BlockColumn):
            return None if labels.dtype.kind in "bui" else np.unique(labels)
        if as_array(self.rows._first[1]).dtype.kind in "bui":
            return None
        return np.unique(np.concatenate([np.unique(as_array(chunk.y)) for chunk in self.rows]))

    def _watched(self) -> Iterator[Chunk]:
        return tracked(
            self._with_columns(),
            total=self.rows.n_rows,
            description="Reading",
            progress=self.rows.progress,
            size=lambda chunk: len(chunk.scores),
        )

    def _with_columns(self) -> Iterator[Chunk]:
        """Blocks with the labels, weights and groups that were asked for."""
        stop = 0
        for chunk in self.rows:
            stop = chunk.start + len(chunk.scores)
            rows = slice(chunk.start, stop)
            blocks = (chunk.y, chunk.weight, *[None] * len(self._columns))
            y, weight, *groups = (
                block
                if isinstance(column, BlockColumn)
                else column
                if column is None
                else column[rows]
                for column, block in zip(self._columns, blocks, strict=False)
            )
            yield chunk._replace(y=y, weight=weight, groups=tuple(groups))
        for column in self._columns:
            if isinstance(column, np.ndarray) and len(column) != stop:
                raise ValueError(
                    f"rows do not match: {len(column):,} labels, weights or groups, {stop:,} scores"
                )


class ScoreChunks(ChunkedScores, ChunkSource):
    """Scores that another system holds in chunks, such as the tables of a cluster.

    A subclass applies a function to each chunk where it is stored. Pass an instance in place of an
    array of scores, with None for the labels, which come with the chunks. A chunk is
    ``Chunk(scores, labels, weights, start)``: labels are column numbers or values of ``classes``,
    weights may be None, and ``start`` is the number of the first row, for error messages.

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
            raise TypeError("Labels and weights come with the chunks. Pass None for them.")
        if groups:
            raise TypeError("Groups of these chunks are unknown. Evaluate each group separately.")
        return self


def _rows_of(column: Any, chunk: Chunk, rows: slice) -> Any:
    """The rows of a column that belong to a block."""
    if isinstance(column, BlockColumn):
        return chunk.y if column.name == "labels" else chunk.weight
    return None if column is None else column[rows]


def _check_column(rows: RowBlocks, column: Any) -> Any:
    """A column of the blocks themselves, or an array of all rows."""
    if isinstance(column, BlockColumn):
        if column.rows is not rows:
            raise ValueError(f"The {column.name} belong to other blocks than the scores.")
        return column
    return None if column is None else as_array(column)
