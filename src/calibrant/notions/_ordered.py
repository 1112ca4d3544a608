"""Types of calibration of ordered classes: claims that the true class is at most k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.notions._claims import ClaimBlock
from calibrant.notions._notion import Labels, Notion, class_text


@dataclass(frozen=True)
class CumulativeNotion(Notion):
    """Claims about ordered classes: at most each class ("cumulative"), or one ("at-most-<k>").

    The scores are sums of the first columns, which must be in the order of the classes. The sum of
    all columns is not a claim.

    Parameters
    ----------
    column : int, optional
        Last column of the sum; by default there is one claim per column except the last.

    See Also
    --------
    ClassNotion : Claims about classes without an order.
    calibrant.metrics.ranked_probability_score : Proper score of ordered classes.
    """

    column: int | None = None
    axis_labels = ("predicted probability of at most the class", "frequency of at most the class")

    @property
    def name(self) -> str:
        return "cumulative" if self.column is None else f"at-most-{self.column}"

    @property
    def title(self) -> str:
        return "at most each class (cumulative)" if self.column is None else self.name

    @property
    def claims_are_running_sums(self) -> bool:
        return self.column is None

    def n_quantities(self, n_classes: int) -> int:
        if self.column is None:
            return n_classes - 1
        if self.column >= n_classes - 1:
            raise ValueError(
                f"notion {self.name!r} does not exist: with {n_classes} classes the claims are "
                f"'at-most-0' to 'at-most-{n_classes - 2}'."
            )
        return 1

    def members(self, quantity: int, n_classes: int) -> Sequence[int]:
        return range(self._last(quantity) + 1)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        first = self._last(0)
        last = np.arange(first, first + self.n_quantities(proba.shape[1]))
        score = np.cumsum(proba[:, : last[-1] + 1], axis=1, dtype=np.float64)[:, first:]
        np.minimum(score, 1.0, out=score)  # rows may exceed one by rounding
        hit = np.empty(0, np.intp) if y is None else np.flatnonzero(y[:, None] <= last)
        return ClaimBlock(score, None, hit)

    def claim_name(self, claim: int, classes: Labels) -> str:
        return f"at most {classes[self._last(claim)]}"

    def claim_text(self, claim: int, classes: Labels) -> str:
        return f"at most {class_text(classes[self._last(claim)])}"

    def caption(self, claim: int, classes: Labels) -> str:
        label = classes[self._last(claim)]
        return f"Predicted probability and observed frequency of at most {label} in all rows."

    def _last(self, quantity: int) -> int:
        """Last column of a sum."""
        return quantity if self.column is None else self.column
