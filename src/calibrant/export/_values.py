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
    """A value of a program, with one row per case and ``width`` columns.

    A value supports the arithmetic of NumPy arrays, so the same formula works for both. In
    operations on two values, the second value may have one column.

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
        """Append an operation of `OPS` on this value and other values, and return the result."""
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
        """Return 1 for entries of this value that exceed the entries of ``other``, otherwise 0."""
        return (self - other).apply("step", **_IS_POSITIVE)

    def scale(self, factor: float, offset: float) -> Value:
        """Multiply entries by a factor and add an offset."""
        return self.apply("scale", factor=np.array([factor]), offset=np.array([offset]))

    def clip(self, low: float, high: float) -> Value:
        """Clip entries to an interval."""
        return self.apply("clip", low=low, high=high)

    def admit(self, low: float, high: float, slack: float) -> Value:
        """Clip entries to an interval.

        Entries outside the interval by more than ``slack`` become missing.
        """
        return self.apply("admit", low=low, high=high, slack=slack)

    def coalesce(self, other: Value) -> Value:
        """Replace missing entries by the entries of another value."""
        return self.apply("coalesce", other)

    def sum(self) -> Value:
        """Sum each row."""
        return self.apply("sum")

    def normalize(self, empty: float | None = None) -> Value:
        """Divide rows by their sums. Rows of zeros become ``empty``, by default uniform."""
        return self.apply("normalize", empty=1.0 / self.width if empty is None else empty)

    def column(self, k: int) -> Value:
        """Select column k."""
        return self if self.width == 1 else self.columns([k])

    def columns(self, columns: Sequence[int]) -> Value:
        """Select columns by their numbers."""
        return self.apply("columns", columns=np.array(columns))

    def top(self, count: int) -> Value:
        """Return the column numbers of the ``count`` largest entries of each row."""
        return self.apply("top", count=count)

    def max(self) -> Value:
        """Return the largest entry of each row."""
        return self.take(self.top(1))

    def take(self, label: Value) -> Value:
        """Select the entries of each row in the columns whose numbers are in ``label``."""
        return self.apply("take", label)

    def put(self, label: Value, values: Value) -> Value:
        """Replace the entries of each row in the columns whose numbers are in ``label``."""
        return self.apply("put", label, values)

    def fill(self, *values: float) -> Value:
        """Return the same numbers for every row of this value."""
        return self.apply("constant", values=np.array(values))


def stack(values: Sequence[Value]) -> Value:
    """Concatenate the columns of all values."""
    first, *others = values
    return first.apply("stack", *others) if others else first


def mix(values: Sequence[Value], weights: Any, constant: float = 0.0) -> Value:
    """Return a constant plus the weighted sum of values."""
    first, *others = values
    return first.apply("mix", *others, weights=np.array(weights), constant=constant)
