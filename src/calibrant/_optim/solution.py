"""How a fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from calibrant._typing import FloatArray


class Outcome(Enum):
    """The ways in which a fit ends; the value is what a user should know: what happened, why, and
    what to try.
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = (
        "the iteration limit was reached before the objective settled; the result is usable but "
        "not the optimum: "
        "a penalty (lam > 0) makes the problem easier"
    )
    STALLED = (
        "no step lowered the objective any more, although its gradient is not small; "
        "scores of extreme size are the usual cause: check for logits of 1e6 and more"
    )
    SEPARABLE = (
        "the scores separate the calibration labels perfectly, so that no finite optimum exists "
        "and confidence would grow "
        "without limit: use more calibration rows, a prior (TemperatureScaling(prior_scale=0.25)) "
        "or StructuredScaling"
    )
    UNINFORMATIVE = (
        "higher scores do not go with the truth, so that the best temperature is infinite and all "
        "classes become equally "
        "likely: check that the columns and the labels are in the same order"
    )
    MISSING_CLASS = (
        "some class never occurs among the calibration labels, so that an unpenalised fit drives "
        "its probability to zero: "
        "add rows of that class, or use StructuredScaling or a penalty (lam > 0)"
    )


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters that a solver found, the objective there, the iterations it took, and how it
    ended.
    """

    parameters: FloatArray
    objective: float
    n_iter: int
    outcome: Outcome

    @property
    def converged(self) -> bool:
        return self.outcome is Outcome.CONVERGED
