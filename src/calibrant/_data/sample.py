"""Samples are scores, column codes and weights of rows, in memory or in chunks.

All fits and metrics work on a `Sample`. The rows of a `Sample` come in chunks, each of which is in
memory while it is processed. An array or a memory map is one chunk (`ArraySample`). A dask array or
a file has many chunks (`ChunkedSample`). Sums over rows are functions of a chunk or of a block of
rows, so the same code works for all kinds of data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._kernels.blocks import WORK_MEMORY, sum_blocks
from calibrant._kernels.simplex import (
    class_sums,
    effective_weights,
    is_unit,
    total_weight,
    true_class,
)
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import warn_data

_FEW_CLASSES = 16
"""Up to this many columns, computing the minimum of all scores is faster than looking up the scores
of true classes."""

_MAX_COPIES = 100
"""Rows are duplicated at most this many times on average. Larger weights remain weights."""

_MANY_ROWS = 20
"""With fewer rows, any sum of weights is plausible, so weights are not rescaled."""

Transform = Callable[[FloatArray], FloatArray]
"""A function of scores that works row by row."""


_SUMMARY_ROWS = 1000
"""Minimum number of rows of a summary, if there are enough rows."""

_SUMMARY_SCORES = 2**13
"""Number of scores of a summary. Reading these scores takes a sixth of a millisecond, a tenth of
the time of the fastest fit to ten times as many scores."""


def summary_places(n_rows: int, n_columns: int) -> IntArray:
    """Return the positions of evenly spaced rows for a summary, or of all rows if there are few."""
    most = max(_SUMMARY_ROWS, _SUMMARY_SCORES // n_columns)
    return np.arange(n_rows) if n_rows <= most else np.arange(most) * n_rows // most


class PickedRows:
    """Select rows of an array, and copy the rows only when they are needed."""

    def __init__(self, u: Rows, places: IntArray) -> None:
        self.u, self.places = u, places
        self.shape = (len(places), u.shape[1])

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.u[self.places[rows]]


class LazyRows:
    """An ``(n, K)`` array that is computed from another array when its rows are needed.

    ``u[rows]`` is ``function(scores[rows])``. This class is used if a transformed copy of the data
    would take too much memory.
    """

    def __init__(self, scores: FloatArray | PickedRows, function: Transform) -> None:
        self.scores = scores
        self.function = function
        self.shape: tuple[int, int] = (scores.shape[0], scores.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.function(self.scores[rows])

    def map(self, function: Transform) -> LazyRows:
        """Apply ``function`` to the transformed rows when they are needed."""
        return LazyRows(self.scores, lambda scores: function(self.function(scores)))

    def take(self, rows: Any) -> LazyRows:
        """Select rows without computing them."""
        return LazyRows(self.scores[rows], self.function)


Rows = FloatArray | LazyRows
"""Transformed scores: an array, or an object that computes its rows when they are needed."""


class RowBlock(NamedTuple):
    """Consecutive rows of a chunk.

    The fields are scores (m, K), column codes, weights, and the number of the first row in the
    chunk.
    """

    u: FloatArray
    y: IntArray
    weight: FloatArray
    start: int


class Sample(ABC):
    """Scores, column codes and weights of rows that come in chunks.

    Functions of chunks must not depend on global state, because they may run in other processes and
    more than once.
    """

    shape: tuple[int, int]
    groups: IntArray | None = None
    """Group codes, if there are groups. The rows of a group stay together in folds."""

    columns: tuple[AnyArray, ...] = ()
    """Other columns of the same rows, of a sample or of its chunks."""

    is_chunked: ClassVar[bool] = False
    """Whether every pass reads the data again."""

    is_multilabel: ClassVar[bool] = False
    """Whether ``y`` has one column of zeros and ones per class."""

    pass_cost: ClassVar[float] = 1.0
    """Cost of a pass relative to a pass over rows in memory."""

    even_weight: float | None = None
    """The weight of every row, if all rows are known to have the same weight."""

    @property
    @abstractmethod
    def class_weights(self) -> FloatArray:
        """Sum of the weights of each class, (K,)."""

    @property
    @abstractmethod
    def class_rows(self) -> list[tuple[int, IntArray]]:
        """Number of the first row of each chunk, and the rows per class of the chunk, (K,).

        Only rows with positive weight are counted.
        """

    @property
    @abstractmethod
    def is_weighted(self) -> bool:
        """Whether any row has a weight other than 0 and 1."""

    @abstractmethod
    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        """Sum the results of ``function`` over chunks in row order, in one pass."""

    @abstractmethod
    def map(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        """Apply ``function`` to each chunk when the chunks are read."""

    @abstractmethod
    def transformed(self, function: Transform) -> Sample:
        """Return the same rows with ``function`` applied to their scores."""

    @abstractmethod
    def rescored(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        """Apply to each chunk a ``function`` that changes only the scores of rows."""

    @abstractmethod
    def claims(self, notion: Any, cuts: FloatArray | None = None) -> Any:
        """Return the binary problems of a type of calibration, for a sample of probabilities.

        If rows are counted in cells of scores, the edges of the cells include ``cuts``.
        """

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.class_weights.sum())

    @property
    def n_columns(self) -> int:
        """Number of classes."""
        return self.shape[1]

    @property
    def n_passes(self) -> int:
        """Number of passes over the data so far."""
        return 1

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return 1

    @property
    def n_rows(self) -> int:
        """Number of rows with positive weight."""
        return sum(int(rows.sum()) for _, rows in self.class_rows)

    @abstractmethod
    def count_impossible(self, inputs: str) -> int:
        """Count rows with positive weight whose true class has the score zero, or -inf."""

    def known_impossible(self, inputs: str) -> int:
        """Return `count_impossible` if it needs no additional pass over the data, else 0."""
        return 0

    def rows(self, reason: str, remedy: str = "pass some of the rows") -> ArraySample:
        """Return all rows in memory, or raise an error if the rows are read in chunks."""
        raise TypeError(
            f"{reason} needs all rows in memory, but the scores are read in chunks. Load the "
            f"scores first, for example with X.compute(), or {remedy}."
        )

    def note_on(self, calibrator: Any) -> str:
        """Describe how a fit to this sample differs from a fit to all rows in memory."""
        return ""

    def kept_rows(self, most: int | None) -> int | None:
        """Return how many rows may be kept in memory (``most`` for data that are in memory)."""
        return most

    def block_store(self) -> dict[int, Any] | None:
        """Return a new dictionary in which passes store results of blocks by their first row.

        Return None if passes share no memory.
        """
        return {}

    def dispatch(self, of_rows: Callable[[Sample], Any], of_top: Callable[[Any], Any]) -> Any:
        """Call ``of_rows`` for a sample of whole rows, or ``of_top`` for a `TopSample`."""
        return of_rows(self)

    def present(self) -> Sample:
        """Return the rows with positive weight if the sample is in memory, else all rows."""
        return self

    def with_copies(self) -> Sample:
        """Duplicate rows with integer weights if the sample is in memory.

        Methods that count rows use the copies.
        """
        return self

    def sum(
        self, function: Callable[[RowBlock], Any], *, elements: int | None = None, work: int = 1
    ) -> Any:
        """Sum the results of ``function`` over row blocks that fit the cache, in one pass."""
        return self.sum_chunks(partial(_sum_rows, function, elements, work))

    def whole_block(self, elements: int) -> RowBlock | None:
        """Return all rows as one block, or None for large or chunked data."""
        return None

    def normalized(self) -> Sample:
        """Return the same rows with weights that sum to one."""
        return self.map(partial(_divide_weight, self.total))

    def effective(self) -> Sample:
        """Return the same rows with weights that sum to the effective number of rows (Kish).

        If all weights are equal, each weight becomes one.
        """
        if not self.is_weighted:
            return self
        squares = self.sum_chunks(_squared_weights)
        return self.map(partial(_divide_weight, squares / self.total))

    def countable(self) -> Sample:
        """Return the same rows with weights that fits can treat as numbers of copies.

        Methods with a prior, smoothing, bins or folds count rows. Weights that sum to less than
        two, or that are not integers and sum to more than twice the number of rows, are importance
        weights. Importance weights are scaled to the effective number of rows.
        """
        if self.n_rows < _MANY_ROWS or 2 <= self.total <= 2 * self.n_rows:
            return self
        if self.total >= 2 and self.is_whole:
            return self
        sample = self.effective()
        warn_data(
            f"The weights of {self.n_rows:,} rows sum to {self.total:.6g}, so they are not numbers "
            f"of copies. The weights were scaled to the effective number of rows, "
            f"{sample.total:,.6g}. To avoid this warning, pass w * w.sum() / (w**2).sum()."
        )
        return sample

    @property
    def is_whole(self) -> bool:
        """Whether all weights are integers."""
        return bool(self.sum_chunks(_count_fractions) == 0)

    def memory_rows(self, most_scores: int | None = None) -> ArraySample | None:
        """Return all rows, or None if they are chunked or have more than ``most_scores`` scores."""
        return None

    def summary_rows(self) -> ArraySample | None:
        """Return evenly spaced rows with positive weight for a summary, or None for top scores."""
        return self.take(self.summary_places)

    @property
    def summary_places(self) -> IntArray:
        """Positions of the rows of a summary among the rows with positive weight."""
        return summary_places(self.n_rows, self.n_columns)

    def take(self, places: IntArray) -> ArraySample:
        """Return some of the rows with positive weight, by their positions, in one pass."""
        starts, first = {}, 0
        for start, rows in self.class_rows:
            starts[start] = first
            first += int(rows.sum())
        return join_rows(self.sum_chunks(partial(_taken_rows, starts, places)))


class ArraySample(Sample):
    """A sample in memory, or in a memory map.

    ``start`` is the number of the first row if the sample is one chunk of a larger sample.
    """

    def __init__(
        self,
        u: Rows,
        y: IntArray,
        weight: FloatArray,
        start: int = 0,
        groups: IntArray | None = None,
    ) -> None:
        self.u, self.y, self.weight, self.start, self.groups = u, y, weight, start, groups
        self.shape = (u.shape[0], u.shape[1])

    @cached_property
    def class_weights(self) -> FloatArray:
        return class_sums(self.y, self.weight, self.shape[1])

    @cached_property
    def total(self) -> float:
        return total_weight(self.weight)

    @property
    def even_weight(self) -> float | None:  # type: ignore[override]
        is_even = bool((self.weight == self.weight[0]).all())
        return float(self.weight[0]) if is_even else None

    @property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        return [(self.start, np.bincount(self.y[self.weight > 0], minlength=self.shape[1]))]

    @property
    def n_rows(self) -> int:
        return len(self.weight) if is_unit(self.weight) else int(np.count_nonzero(self.weight))

    @property
    def is_weighted(self) -> bool:
        weight = self.weight
        return not is_unit(weight) and bool((weight[weight > 0] != 1).any())

    def count_impossible(self, inputs: str) -> int:
        zero = 0.0 if inputs == "proba" else -np.inf
        # A positive minimum rules out zeros without looking up the true classes.
        if self.shape[1] <= _FEW_CLASSES and np.min(self.u[:]) > zero:
            return 0
        is_zero = true_class(self.u[:], self.y) == zero
        return int(np.count_nonzero(is_zero & (self.weight > 0))) if is_zero.any() else 0

    def known_impossible(self, inputs: str) -> int:
        return self.count_impossible(inputs)

    def rows(self, reason: str, remedy: str = "") -> ArraySample:
        return self

    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        return function(self)

    def sum(
        self, function: Callable[[RowBlock], Any], *, elements: int | None = None, work: int = 1
    ) -> Any:
        return _sum_rows(function, elements, work, self)

    def map(self, function: Callable[[ArraySample], ArraySample]) -> ArraySample:
        return function(self)

    def transformed(self, function: Transform) -> ArraySample:
        """Return the same rows with ``function`` applied to their scores, lazily for large data."""
        u: Rows
        if isinstance(self.u, LazyRows):
            u = self.u.map(function)
        elif self.u.size <= WORK_MEMORY:
            u = function(self.u)
        else:
            u = LazyRows(self.u, function)
        return self.with_scores(u)

    def rescored(self, function: Callable[[ArraySample], ArraySample]) -> ArraySample:
        return function(self)

    def with_scores(self, u: Rows) -> ArraySample:
        """Replace the scores of the rows."""
        rows = type(self)(u, self.y, self.weight, self.start, self.groups)
        rows.columns = self.columns
        return rows

    def weighted(self, weight: FloatArray) -> ArraySample:
        """Replace the weights of the rows."""
        rows = type(self)(self.u, self.y, weight, self.start, self.groups)
        rows.columns = self.columns
        return rows

    def subset(self, rows: Any, weight: FloatArray | None = None) -> ArraySample:
        """Copy some of the rows, with their weights or with other weights."""
        weight = self.weight[rows] if weight is None else weight
        groups = None if self.groups is None else self.groups[rows]
        u = self.u.take(rows) if isinstance(self.u, LazyRows) else self.u[rows]
        sample = type(self)(u, self.y[rows], weight, self.start, groups)
        sample.columns = tuple(column[rows] for column in self.columns)
        return sample

    def effective(self) -> ArraySample:
        return self.weighted(effective_weights(self.weight))

    def present(self) -> ArraySample:
        return self if np.all(self.weight) else self.subset(np.flatnonzero(self.weight))

    def with_copies(self) -> ArraySample:
        weight = self.weight
        is_whole = bool((weight == np.floor(weight)).all())
        if is_unit(weight) or not is_whole or weight.sum() > _MAX_COPIES * len(weight):
            return self
        rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
        return self.subset(rows, np.ones(len(rows)))

    def claims(self, notion: Any, cuts: FloatArray | None = None) -> Any:
        return notion.claims(self.u, self.y, self.weight)

    def every(self, step: int) -> ArraySample:
        """Return every ``step``-th row, contiguous in memory."""
        rows = slice(None, None, step)
        u = np.ascontiguousarray(self.u[rows])
        return ArraySample(u, self.y[rows], self.weight[rows], self.start)

    def whole_block(self, elements: int) -> RowBlock | None:
        n_rows, n_columns = self.shape
        return self.block(slice(0, n_rows)) if n_rows * n_columns <= elements else None

    def block(self, rows: slice) -> RowBlock:
        """Return a slice of rows with transformed scores."""
        return RowBlock(self.u[rows], self.y[rows], self.weight[rows], rows.start)

    def columns_of(self, rows: IntArray) -> tuple[AnyArray, ...]:
        """Return scores, codes, weights and other columns of some rows."""
        other_columns = (column[rows] for column in self.columns)
        return self.u[rows], self.y[rows], self.weight[rows], *other_columns

    def take(self, places: IntArray) -> ArraySample:
        return join_rows([self.columns_of(self._rows_at(places))])

    def memory_rows(self, most_scores: int | None = None) -> ArraySample | None:
        is_small = most_scores is None or self.shape[0] * self.n_columns <= most_scores
        return self if is_small else None

    def summary_rows(self) -> ArraySample:
        if len(self.summary_places) == self.shape[0]:
            return self
        # Rows of many classes are large, so they are copied block by block when they are read.
        rows = self._rows_at(self.summary_places)
        summary = ArraySample(
            LazyRows(PickedRows(self.u, rows), np.asarray), self.y[rows], self.weight[rows]
        )
        summary.columns = tuple(column[rows] for column in self.columns)
        return summary

    def _rows_at(self, places: IntArray) -> IntArray:
        return places if is_unit(self.weight) else np.flatnonzero(self.weight)[places]


def join_rows(chunks: list[tuple[AnyArray, ...]]) -> ArraySample:
    """Join scores, codes, weights and other columns of chunks to a sample."""
    u, y, weight, *other_columns = (
        np.concatenate(columns) for columns in zip(*chunks, strict=True)
    )
    rows = ArraySample(u, y, weight)
    rows.columns = tuple(other_columns)
    return rows


def _sum_rows(
    function: Callable[[RowBlock], Any], elements: int | None, work: int, chunk: ArraySample
) -> Any:
    return sum_blocks(
        lambda rows: function(chunk.block(rows)), *chunk.shape, elements=elements, work=work
    )


def _divide_weight(total: float, chunk: ArraySample) -> ArraySample:
    return chunk.weighted(np.asarray(chunk.weight) / total)


def _count_fractions(chunk: ArraySample) -> int:
    return int(np.count_nonzero(chunk.weight != np.floor(chunk.weight)))


def _squared_weights(chunk: ArraySample) -> float:
    return float(chunk.weight @ chunk.weight)


def _taken_rows(
    starts: dict[int, int], places: IntArray, chunk: ArraySample
) -> list[tuple[AnyArray, ...]]:
    """Scores, codes, weights and columns of those rows of a chunk that are among ``places``."""
    rows, first = np.flatnonzero(chunk.weight), starts[chunk.start]
    positions = places[(places >= first) & (places < first + len(rows))] - first
    return [chunk.columns_of(rows[positions])]
