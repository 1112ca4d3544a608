"""Types of calibration for ordered classes. Each claim is that the true class is at most k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.notions._claims import ClaimBlock
from calibrant.notions._notion import COMPARES_FREQUENCY, Labels, Notion, class_text


@dataclass(frozen=True)
class CumulativeNotion(Notion):
    """Claims for ordered classes, that the true class is at most k.

    The score is the sum of the first columns, which must be in the order of the classes. The notion
    "cumulative" has one claim for each class except the last. The notion "at-most-<k>" has one
    claim.

    Parameters
    ----------
    column : int, optional
        Last column of the sum. If None, there is one claim for each column except the last column.

    See Also
    --------
    ClassNotion : Claims about classes without an order.
    calibrant.metrics.ranked_probability_score : Proper score for ordered classes.
    """

    column: int | None = None
    axis_labels = (
        "predicted probability of the class or a lower one",
        "frequency of the class or a lower one",
    )

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
                f"The notion {self.name!r} does not exist for {n_classes} classes. Pass one of "
                f"'at-most-0' to 'at-most-{n_classes - 2}'."
            )
        return 1

    def members(self, quantity: int, n_classes: int) -> Sequence[int]:
        return range(self._last(quantity) + 1)

    def select(self, proba: FloatArray, y: IntArray | None = None) -> ClaimBlock:
        first = self._last(0)
        last = np.arange(first, first + self.n_quantities(proba.shape[1]))
        score = np.cumsum(proba[:, : last[-1] + 1], axis=1, dtype=np.float64)[:, first:]
        np.minimum(score, 1.0, out=score)  # row sums may exceed one by rounding
        hit = np.empty(0, np.intp) if y is None else np.flatnonzero(y[:, None] <= last)
        return ClaimBlock(score, None, hit)

    def claim_name(self, claim: int, classes: Labels) -> str:
        return f"at most {classes[self._last(claim)]}"

    def claim_text(self, claim: int, classes: Labels) -> str:
        return f"at most {class_text(classes[self._last(claim)])}"

    def caption(self, claim: int, classes: Labels) -> str:
        return f"{COMPARES_FREQUENCY} at most class {classes[self._last(claim)]}."

    def _last(self, quantity: int) -> int:
        """Return the last column of a sum."""
        return quantity if self.column is None else self.column
