"""Declarations of the shapes and ranges of fitted attributes.

`calibrant.load` checks the attributes of a file against these declarations before it uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Size = int | str


@dataclass(frozen=True)
class FittedValue:
    """The shape and range of a fitted number or array.

    Parameters
    ----------
    shape : tuple of int and str
        Lengths of the axes, as numbers or letters. A letter represents the same number in all
        attributes of a calibrator. "K" is the number of classes, and "M+K" is the sum of two
        letters of earlier attributes. () is a single number.
    low, high : float
        The range of the entries, both ends included.
    is_finite : bool
        Whether infinite entries are rejected.

    Examples
    --------
    >>> share = FittedValue((), 0.0, 1.0)
    >>> share.check(1.5, {})
    'must be between 0 and 1'
    >>> FittedValue(("K", "K")).check(np.eye(2), {"K": 3})
    'has shape (2, 2), but must have shape (3, 3)'
    """

    shape: tuple[Size, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    is_finite: bool = True

    def check(self, value: Any, sizes: dict[str, int]) -> str | None:
        """Describe what is wrong with a value, or return None.

        The method adds the axis lengths of new letters to ``sizes``.
        """
        kind = np.asarray(value).dtype.kind if _is_number(value) else "O"
        if kind not in "fiu":
            return "must be a number" if not self.shape else "must be an array of numbers"
        array = np.asarray(value)
        if array.ndim != len(self.shape) or not self._fits(array.shape, sizes):
            return f"has shape {array.shape}, but must have shape {self._shape_text(sizes)}"
        if self.is_finite and not np.isfinite(array).all():
            return "must be finite"
        if array.size and not (array.min() >= self.low and array.max() <= self.high):
            return f"must be between {self.low:g} and {self.high:g}"
        return None

    def _fits(self, shape: tuple[int, ...], sizes: dict[str, int]) -> bool:
        return all(_agrees(size, want, sizes) for size, want in zip(shape, self.shape, strict=True))

    def _shape_text(self, sizes: Mapping[str, int]) -> str:
        return f"({', '.join(str(sizes.get(str(want), want)) for want in self.shape)})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic) and not isinstance(value, bool)


def _agrees(size: int, want: Size, sizes: dict[str, int]) -> bool:
    if isinstance(want, str) and "+" in want:
        return size == sum(sizes.get(letter, 0) for letter in want.split("+"))
    return size == (sizes.setdefault(want, size) if isinstance(want, str) else want)


NUMBER = FittedValue()
SHARE = FittedValue((), 0.0, 1.0)
_MOST_TEMPERATURE = 1e30
TEMPERATURE = FittedValue((), 1 / _MOST_TEMPERATURE, _MOST_TEMPERATURE)
"""The range of a temperature. Separable fits end at extreme temperatures. Beyond this range, scores
overflow or all become equal."""

SCORES = FittedValue(("B",), is_finite=False)
"""Scores or bin edges of a piecewise calibrator of one claim. The last edge may be infinite."""
RATES = FittedValue(("B",), 0.0, 1.0)
"""Calibrated probabilities, one per score or bin."""
COUNTS = FittedValue(("B",), 0.0)
"""Numbers of rows, one per score or bin."""
