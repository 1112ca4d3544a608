"""How a fit ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from calibrant._typing import FloatArray


class Outcome(Enum):
    """The ways in which a fit ends. The value is the cause, for people; what to do about it is the
    estimator's to say.
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = (
        "the iteration limit was reached before the objective settled; the result is usable but "
        "not the optimum"
    )
    STALLED = "no step lowered the objective any more, although its gradient is not small"
    SEPARABLE = (
        "the scores separate the calibration labels perfectly, or all labels are equal, so that no "
        "finite optimum exists and confidence would grow without limit; the fit stopped at finite "
        "values"
    )
    UNINFORMATIVE = (
        "higher scores do not go with the truth, so that the best temperature is infinite and all "
        "classes become equally likely"
    )
    MISSING_CLASS = (
        "some class never occurs among the calibration labels, so that an unpenalized fit drives "
        "its probability to zero"
    )

    def __reduce__(self) -> tuple[type[Outcome], tuple[str]]:
        """By its value: skops asks for this, and not for what enumerations offer to pickle."""
        return type(self), (self.value,)


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters that a solver found, the objective there, the iterations it took, and how it
    ended. Searches for one parameter also return the curvature of the objective.
    """

    parameters: FloatArray
    objective: float
    n_iter: int
    outcome: Outcome
    curvature: float = 0.0

    @property
    def converged(self) -> bool:
        return self.outcome is Outcome.CONVERGED
