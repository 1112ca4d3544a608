"""The result of an iterative fit, and the reason why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from calibrant._typing import FloatArray


class Outcome(Enum):
    """Reasons for the end of a fit.

    The value is the text of a warning, to which the calibrator adds advice.
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = (
        "the fit reached its iteration limit before it converged, so the result is usable but not "
        "the optimum"
    )
    STALLED = "no further step reduced the objective, although its gradient is not small"
    SEPARABLE = (
        "the scores separate the calibration labels perfectly, or all labels are equal, so no "
        "finite optimum exists and the fit stopped at large finite values"
    )
    UNINFORMATIVE = (
        "true classes do not have higher scores than other classes, so the best temperature is "
        "infinite and all classes become equally likely"
    )
    MISSING_CLASS = (
        "a class has no rows in the calibration data, so an unpenalized fit drives its probability "
        "to zero"
    )

    def __reduce__(self) -> tuple[type[Outcome], tuple[str]]:
        """Pickle the member by its value, because skops saves objects by this method."""
        return type(self), (self.value,)


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a solver.

    Parameters
    ----------
    parameters : ndarray
        The solution.
    objective : float
        The objective at the solution.
    n_iter : int
        Number of iterations.
    outcome : Outcome
        Reason for the end of the search.
    curvature : float
        Second derivative of the objective at the solution, for searches with one parameter.

    See Also
    --------
    store_outcome : Store a solution with a calibrator.
    """

    parameters: FloatArray
    objective: float
    n_iter: int
    outcome: Outcome
    curvature: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether the solver found the optimum."""
        return self.outcome is Outcome.CONVERGED
