"""Samples: scores, column codes and weights of rows, wherever the rows are stored.

Everything that is fitted or measured works on a `Sample`. Its rows come in chunks, each of which is
in memory while it is processed: an array or a memory map is one chunk (`ArraySample`), a dask array
or a file has many (`ChunkedSample`). Whatever is a sum over rows is one function of a chunk or of
a block of rows, so the same code serves all of them.
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
"""Up to this many columns, the minimum of all scores is faster than the scores of true classes."""

_MAX_COPIES = 100
"""Rows are duplicated at most so often on average; above, their weights are kept instead."""

_MANY_ROWS = 20
"""With fewer rows, any sum of weights is plausible, so weights are not rescaled."""

Transform = Callable[[FloatArray], FloatArray]
"""A function of scores that works row by row."""


_SUMMARY_ROWS = 1000
"""Minimum number of rows of a summary, if the data have so many."""

_SUMMARY_SCORES = 2**14
"""Number of scores of a summary. Reading them takes half a millisecond, which is negligible for a
fit to many rows."""


def summary_places(n_rows: int, n_columns: int) -> IntArray:
    """Places of evenly spaced rows for a summary: all of them, if there are few."""
    most = max(_SUMMARY_ROWS, _SUMMARY_SCORES // n_columns)
    return np.arange(n_rows) if n_rows <= most else np.arange(most) * n_rows // most


class PickedRows:
    """Some rows of an array, which are copied when they are needed."""

    def __init__(self, u: Rows, places: IntArray) -> None:
        self.u, self.places = u, places
        self.shape = (len(places), u.shape[1])

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.u[self.places[rows]]


class LazyRows:
    """An ``(n, K)`` array that is computed from another one when its rows are needed.

    ``u[rows]`` is ``function(scores[rows])``: transformed data that are too large to be kept twice.
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
        """``function`` of the transformed rows, computed when they are needed."""
        return LazyRows(self.scores, lambda scores: function(self.function(scores)))

    def take(self, rows: Any) -> LazyRows:
        """Some of the rows, not yet computed."""
        return LazyRows(self.scores[rows], self.function)


Rows = FloatArray | LazyRows
"""Transformed scores: an array, or an object that computes its rows when they are needed."""


class RowBlock(NamedTuple):
    """Consecutive rows of a chunk.

    Scores (m, K), column codes, weights, and the number of the first row in its chunk.
    """

    u: FloatArray
    y: IntArray
    weight: FloatArray
    start: int


class Sample(ABC):
    """Scores, column codes and weights of rows that come in chunks.

    Functions of chunks must not depend on other state than what they carry: they may run in other
    processes, and more than once.
    """

    shape: tuple[int, int]
    groups: IntArray | None = None
    """Codes of groups whose rows stay together in folds, if there are any."""

    columns: tuple[AnyArray, ...] = ()
    """Other columns of the same rows, of a sample or of its chunks."""

    is_chunked: ClassVar[bool] = False
    """Whether every pass reads the data again."""

    pass_cost: ClassVar[float] = 1.0
    """Cost of a pass relative to one over rows in memory: how much arithmetic is worth a pass."""

    even_weight: float | None = None
    """The weight of every row, if all rows are known to have the same weight."""

    @property
    @abstractmethod
    def class_weights(self) -> FloatArray:
        """Sum of the weights of each class, (K,)."""

    @property
    @abstractmethod
    def class_rows(self) -> list[tuple[int, IntArray]]:
        """For each chunk its first row, and its rows of positive weight of each class, (K,)."""

    @property
    @abstractmethod
    def is_weighted(self) -> bool:
        """Whether any row has a weight other than 0 and 1."""

    @abstractmethod
    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        """Sum of what ``function`` returns for each chunk, in row order: one pass."""

    @abstractmethod
    def map(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        """``function`` of each chunk, computed when the chunks are read."""

    @abstractmethod
    def transformed(self, function: Transform) -> Sample:
        """The same rows with ``function`` of their scores."""

    @abstractmethod
    def rescored(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        """``function`` of each chunk, which changes only the scores of its rows."""

    @abstractmethod
    def claims(self, notion: Any, cuts: FloatArray | None = None) -> Any:
        """The binary problems of a type of calibration, for a sample of probabilities.

        If rows are counted in cells of scores, the ``cuts`` are among the edges of the cells.
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
        """How often the data were read."""
        return 1

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return 1

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""
        return sum(int(rows.sum()) for _, rows in self.class_rows)

    @abstractmethod
    def count_impossible(self, inputs: str) -> int:
        """Rows of positive weight whose true class has the score zero, or -inf."""

    def known_impossible(self, inputs: str) -> int:
        """The same count if it needs no additional pass over the data, else 0."""
        return 0

    def rows(self, reason: str, remedy: str = "pass some of the rows") -> ArraySample:
        """All rows in memory; an error with the ``reason`` if they are read in chunks."""
        raise TypeError(
            f"{reason} needs all rows in memory, but the scores are read in chunks. Load them "
            f"first, for example with X.compute(), or {remedy}."
        )

    def note_on(self, calibrator: Any) -> str:
        """How the fit of a calibrator to this sample differs from a fit to all rows at once."""
        return ""

    def kept_rows(self, most: int | None) -> int | None:
        """Number of rows that may be kept in memory; at most ``most`` for data in memory."""
        return most

    def block_store(self) -> dict[int, Any] | None:
        """A new dictionary for results of blocks, by their first row, that later passes reuse.

        None if passes share no memory.
        """
        return {}

    def dispatch(self, of_rows: Callable[[Sample], Any], of_top: Callable[[Any], Any]) -> Any:
        """``of_rows`` of a sample of whole rows, or ``of_top`` of a `TopSample`."""
        return of_rows(self)

    def present(self) -> Sample:
        """The rows of positive weight, if the sample is in memory; else all rows."""
        return self

    def with_copies(self) -> Sample:
        """Duplicate rows with integer weights, if the sample is in memory.

        For methods that count rows.
        """
        return self

    def sum(
        self, function: Callable[[RowBlock], Any], *, elements: int | None = None, work: int = 1
    ) -> Any:
        """Sum of what ``function`` returns for row blocks that fit the cache: one pass."""
        return self.sum_chunks(partial(_sum_rows, function, elements, work))

    def whole_block(self, elements: int) -> RowBlock | None:
        """All rows as one block; None for more than ``elements`` elements or chunked data."""
        return None

    def normalized(self) -> Sample:
        """The same rows with weights that sum to one."""
        return self.map(partial(_divide_weight, self.total))

    def effective(self) -> Sample:
        """The same rows with weights that sum to their effective number (Kish).

        Equal weights become one.
        """
        if not self.is_weighted:
            return self
        squares = self.sum_chunks(_squared_weights)
        return self.map(partial(_divide_weight, squares / self.total))

    def countable(self) -> Sample:
        """The same rows with weights that can be numbers of copies, as fits need them.

        Methods with a prior, smoothing, bins or folds count rows. Weights that sum to less than
        two, or that are not integers and sum to more than twice the number of rows, are importance
        weights. They are scaled to the effective number of rows.
        """
        if self.n_rows < _MANY_ROWS or 2 <= self.total <= 2 * self.n_rows:
            return self
        if self.total >= 2 and self.is_whole:
            return self
        scaled = self.effective()
        warn_data(
            f"The weights of {self.n_rows:,} rows sum to {self.total:.6g}, so they are not numbers "
            f"of copies. They were scaled to the effective number of rows, {scaled.total:,.6g}. To "
            "avoid this warning, pass w * w.sum() / (w**2).sum()."
        )
        return scaled

    @property
    def is_whole(self) -> bool:
        """Whether all weights are integers."""
        return bool(self.sum_chunks(_count_fractions) == 0)

    def summary_rows(self) -> ArraySample | None:
        """Evenly spaced rows of positive weight, for a summary; None for top scores."""
        return self.take(self.summary_places)

    @property
    def summary_places(self) -> IntArray:
        """Places of the rows of a summary among those of positive weight."""
        return summary_places(self.n_rows, self.n_columns)

    def take(self, places: IntArray) -> ArraySample:
        """Some of the rows of positive weight, by their places among these: one pass."""
        starts, first = {}, 0
        for start, rows in self.class_rows:
            starts[start] = first
            first += int(rows.sum())
        return join_rows(self.sum_chunks(partial(_taken_rows, starts, places)))


class ArraySample(Sample):
    """A sample in memory, or in a memory map.

    ``start`` is the number of the first row if the sample is one chunk of a larger one.
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
        """The same rows with ``function`` of their scores: at once if they are few."""
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
        """The same rows with other scores."""
        return ArraySample(u, self.y, self.weight, self.start, self.groups)

    def weighted(self, weight: FloatArray) -> ArraySample:
        """The same rows with other weights."""
        return ArraySample(self.u, self.y, weight, self.start, self.groups)

    def subset(self, rows: Any, weight: FloatArray | None = None) -> ArraySample:
        """Some of the rows, copied, with their weights or with others."""
        weight = self.weight[rows] if weight is None else weight
        groups = None if self.groups is None else self.groups[rows]
        u = self.u.take(rows) if isinstance(self.u, LazyRows) else self.u[rows]
        chosen = ArraySample(u, self.y[rows], weight, self.start, groups)
        chosen.columns = tuple(column[rows] for column in self.columns)
        return chosen

    def effective(self) -> ArraySample:
        rows = self.weighted(effective_weights(self.weight))
        rows.columns = self.columns
        return rows

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
        """Evenly spaced rows, contiguous in memory."""
        rows = slice(None, None, step)
        u = np.ascontiguousarray(self.u[rows])
        return ArraySample(u, self.y[rows], self.weight[rows], self.start)

    def whole_block(self, elements: int) -> RowBlock | None:
        n_rows, n_columns = self.shape
        return self.block(slice(0, n_rows)) if n_rows * n_columns <= elements else None

    def block(self, rows: slice) -> RowBlock:
        """Some consecutive rows, transformed."""
        return RowBlock(self.u[rows], self.y[rows], self.weight[rows], rows.start)

    def columns_of(self, rows: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Scores, codes and weights of some rows."""
        return self.u[rows], self.y[rows], self.weight[rows]

    def take(self, places: IntArray) -> ArraySample:
        return ArraySample(*self.columns_of(self._rows_at(places)))

    def summary_rows(self) -> ArraySample:
        if len(self.summary_places) == self.shape[0]:
            return self
        # Rows of many classes are large, so they are copied block by block when they are read.
        rows = self._rows_at(self.summary_places)
        return ArraySample(
            LazyRows(PickedRows(self.u, rows), np.asarray), self.y[rows], self.weight[rows]
        )

    def _rows_at(self, places: IntArray) -> IntArray:
        return places if is_unit(self.weight) else np.flatnonzero(self.weight)[places]


def join_rows(chunks: list[tuple[FloatArray, IntArray, FloatArray]]) -> ArraySample:
    """A sample of scores, codes and weights that were gathered chunk by chunk."""
    u, y, weight = (np.concatenate(columns) for columns in zip(*chunks, strict=True))
    return ArraySample(u, y, weight)


def _sum_rows(
    function: Callable[[RowBlock], Any], elements: int | None, work: int, chunk: ArraySample
) -> Any:
    return sum_blocks(
        lambda rows: function(chunk.block(rows)), *chunk.shape, elements=elements, work=work
    )


def _divide_weight(total: float, chunk: ArraySample) -> ArraySample:
    rows = chunk.weighted(np.asarray(chunk.weight) / total)
    rows.columns = chunk.columns
    return rows


def _count_fractions(chunk: ArraySample) -> int:
    return int(np.count_nonzero(chunk.weight != np.floor(chunk.weight)))


def _squared_weights(chunk: ArraySample) -> float:
    return float(chunk.weight @ chunk.weight)


def _taken_rows(
    starts: dict[int, int], places: IntArray, chunk: ArraySample
) -> list[tuple[FloatArray, IntArray, FloatArray]]:
    """Scores, codes and weights of the rows of a chunk that are among ``places``."""
    rows, first = np.flatnonzero(chunk.weight), starts[chunk.start]
    chosen = rows[places[(places >= first) & (places < first + len(rows))] - first]
    return [chunk.columns_of(chosen)]
