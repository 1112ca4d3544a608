"""Samples: scores, column codes and weights of rows, wherever the rows are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._blocks import KEEP_ELEMENTS, sum_blocks
from calibrant._simplex import class_sums, total_weight
from calibrant._typing import FloatArray, IntArray


class LazyRows:
    """An ``(n, K)`` array that is computed from another one when its rows are asked for.

    ``u[rows]`` is ``lift(scores[rows])``: the inner form of data that is too large to be held
    twice.
    """

    def __init__(self, scores: FloatArray, lift: Callable[[FloatArray], FloatArray]) -> None:
        self.scores = scores
        self.lift = lift
        self.shape: tuple[int, int] = (scores.shape[0], scores.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> FloatArray:
        return self.lift(self.scores[rows])

    def map(self, function: Callable[[FloatArray], FloatArray]) -> LazyRows:
        """``function`` of the lifted rows, by row, when they are asked for."""
        return LazyRows(self.scores, lambda scores: function(self.lift(scores)))

    def take(self, rows: Any) -> LazyRows:
        """Some of the rows, still to be lifted."""
        return LazyRows(self.scores[rows], self.lift)


Rows = FloatArray | LazyRows
"""Lifted scores: an array, or something that gives one when its rows are asked for."""


def lifted(scores: FloatArray, lift: Callable[[FloatArray], FloatArray]) -> Rows:
    """``lift(scores)``, at once where it is small and on demand where it is not."""
    if scores.size <= KEEP_ELEMENTS:
        return lift(scores)
    return LazyRows(scores, lift)


def mapped(u: Rows, function: Callable[[FloatArray], FloatArray]) -> Rows:
    """``function`` of lifted rows, by row: at once of an array, else when they are asked for."""
    return u.map(function) if isinstance(u, LazyRows) else function(u)


class RowBlock(NamedTuple):
    """Rows of a `Sample`: lifted scores (m, K), column codes, weights, and the number of the first
    of them in its part.
    """

    u: FloatArray
    y: IntArray
    weight: FloatArray
    start: int


class Sample(ABC):
    """Scores, column codes and weights that come in blocks of rows: all that a fit by sums over
    rows asks of its data, wherever they are.

    A sample has parts, each of them in memory where it is added up: an array or a memory map is one
    part (`ArraySample`), a dask array and a file have many. Functions of parts must not depend on
    other state than what they carry: they may run in other processes, and more than once.
    """

    shape: tuple[int, int]

    @property
    @abstractmethod
    def class_weights(self) -> FloatArray:
        """Sum of the weights of each class, (K,)."""

    @property
    @abstractmethod
    def class_rows(self) -> list[tuple[int, IntArray]]:
        """The first row of each part, and its rows of each class with a weight above zero, (K,)."""

    @abstractmethod
    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        """Sum of what ``function`` returns for each part, in their order: one pass."""

    @abstractmethod
    def map(self, function: Callable[[ArraySample], ArraySample]) -> Sample:
        """``function`` of each part, when it is asked for."""

    @abstractmethod
    def lifted(self, lift: Callable[[FloatArray], FloatArray]) -> Sample:
        """The same rows with ``lift`` of their scores, by row."""

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.class_weights.sum())

    @property
    def is_chunked(self) -> bool:
        """Whether every pass reads the data again, so that few of them matter more than little
        work in each.
        """
        return not isinstance(self, ArraySample)

    def sum(
        self, function: Callable[[RowBlock], Any], *, elements: int | None = None, work: int = 1
    ) -> Any:
        """Sum of what ``function`` returns for row blocks that fit the cache: one pass."""
        return self.sum_chunks(partial(_sum_rows, function, elements, work))

    def normalized(self) -> Sample:
        """The same with weights that sum to one."""
        return self.map(partial(_divided, self.total))


class ArraySample(Sample):
    """A sample in memory, or in a memory map: lifted scores, column codes and weights of all rows,
    ``start`` being the number of the first where it is a part of others.
    """

    def __init__(self, u: Rows, y: IntArray, weight: FloatArray, start: int = 0) -> None:
        self.u, self.y, self.weight, self.start = u, y, weight, start
        self.shape = (u.shape[0], u.shape[1])

    @cached_property
    def class_weights(self) -> FloatArray:
        return class_sums(self.y, self.weight, self.shape[1])

    @cached_property
    def total(self) -> float:
        return total_weight(self.weight)

    @property
    def class_rows(self) -> list[tuple[int, IntArray]]:
        return [(self.start, np.bincount(self.y[self.weight > 0], minlength=self.shape[1]))]

    def sum_chunks(self, function: Callable[[ArraySample], Any]) -> Any:
        return function(self)

    def map(self, function: Callable[[ArraySample], ArraySample]) -> ArraySample:
        return function(self)

    def lifted(self, lift: Callable[[FloatArray], FloatArray]) -> ArraySample:
        return ArraySample(mapped(self.u, lift), self.y, self.weight, self.start)

    def weighted(self, weight: FloatArray) -> ArraySample:
        """The same rows with other weights."""
        return ArraySample(self.u, self.y, weight, self.start)

    def every(self, step: int) -> ArraySample:
        """Evenly spaced rows, side by side in memory."""
        rows = slice(None, None, step)
        u = np.ascontiguousarray(self.u[rows])
        return ArraySample(u, self.y[rows], self.weight[rows], self.start)

    def block(self, rows: slice) -> RowBlock:
        """Some rows, lifted."""
        return RowBlock(self.u[rows], self.y[rows], self.weight[rows], rows.start)


def _sum_rows(
    function: Callable[[RowBlock], Any], elements: int | None, work: int, part: ArraySample
) -> Any:
    return sum_blocks(
        lambda rows: function(part.block(rows)), *part.shape, elements=elements, work=work
    )


def _divided(total: float, part: ArraySample) -> ArraySample:
    return part.weighted(np.asarray(part.weight) / total)
