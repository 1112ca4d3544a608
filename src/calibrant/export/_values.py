"""Arithmetic on the values of a program under construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.export._program import Builder

_IS_POSITIVE = {"edges": np.zeros(1), "values": np.array([0.0, 1.0]), "side": "left"}


@dataclass(frozen=True, eq=False)
class Value:
    """A value of a program: one row per case, ``width`` columns.

    It supports the arithmetic of NumPy arrays, so one formula serves both. In operations of two
    values the second may have one column.

    Examples
    --------
    >>> build = Builder(2)
    >>> rest = 1.0 - Value(build, 0)
    >>> [(node.op, node.args) for node in build.nodes]
    [('scale', (0,))]
    """

    build: Builder
    number: int

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.build.widths[self.number]

    def apply(self, op: str, *others: Value, **constants: Any) -> Value:
        """The result of an operation of `OPS` on this value and others."""
        numbers = (self.number, *(other.number for other in others))
        return Value(self.build, self.build.append(op, numbers, constants))

    def __add__(self, other: Value) -> Value:
        return self.apply("add", other)

    def __sub__(self, other: Value) -> Value:
        return self + other * -1.0

    def __rsub__(self, number: float) -> Value:
        return self.scale(-1.0, number)

    def __mul__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return self.apply("multiply", other)
        return self.scale(other, 0.0)

    def __truediv__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return self.apply("quotient", other)
        return self.apply("divide", by=float(other))

    def __gt__(self, other: Value) -> Value:
        """1 where this value is larger, else 0."""
        return (self - other).apply("step", **_IS_POSITIVE)

    def scale(self, factor: float, offset: float) -> Value:
        """Entries times a factor, plus an offset."""
        return self.apply("scale", factor=np.array([factor]), offset=np.array([offset]))

    def clip(self, low: float, high: float) -> Value:
        """Entries limited to an interval."""
        return self.apply("clip", low=low, high=high)

    def admit(self, low: float, high: float, slack: float) -> Value:
        """Entries limited to an interval; missing if further away than ``slack``."""
        return self.apply("admit", low=low, high=high, slack=slack)

    def coalesce(self, other: Value) -> Value:
        """Entries, and those of another value where they are missing."""
        return self.apply("coalesce", other)

    def sum(self) -> Value:
        """Sum of each row."""
        return self.apply("sum")

    def normalize(self, empty: float | None = None) -> Value:
        """Rows divided by their sums; rows of zeros become ``empty``, by default uniform."""
        return self.apply("normalize", empty=1.0 / self.width if empty is None else empty)

    def column(self, k: int) -> Value:
        """Column k."""
        return self if self.width == 1 else self.columns([k])

    def columns(self, columns: Sequence[int]) -> Value:
        """Some of the columns."""
        return self.apply("columns", columns=np.array(columns))

    def top(self, count: int) -> Value:
        """Columns of the largest entries."""
        return self.apply("top", count=count)

    def max(self) -> Value:
        """The largest entry of each row."""
        return self.take(self.top(1))

    def take(self, label: Value) -> Value:
        """Entries of each row in the columns whose numbers are in ``label``."""
        return self.apply("take", label)

    def put(self, label: Value, values: Value) -> Value:
        """The same rows with other values in the columns whose numbers are in ``label``."""
        return self.apply("put", label, values)

    def fill(self, *values: float) -> Value:
        """The same numbers for every row of this value."""
        return self.apply("constant", values=np.array(values))


def stack(values: Sequence[Value]) -> Value:
    """The columns of all values, side by side."""
    first, *others = values
    return first.apply("stack", *others) if others else first


def mix(values: Sequence[Value], weights: Any, constant: float = 0.0) -> Value:
    """The sum of a constant and of values times their weights."""
    first, *others = values
    return first.apply("mix", *others, weights=np.array(weights), constant=constant)
