"""How a fit ended: stored with the calibrator, and said once."""

from __future__ import annotations

import warnings
from typing import Any

from calibrant._optim.solution import Solution
from calibrant.exceptions import ConvergenceWarning


def store_outcome(calibrator: Any, solution: Solution) -> None:
    """Store how a fit ended, and warn once with cause and remedy where it did not converge."""
    calibrator.converged_ = solution.converged
    calibrator.n_iter_ = solution.n_iter
    calibrator.objective_ = solution.objective
    if not solution.converged:
        message = f"{type(calibrator).__name__}: {solution.outcome.value}"
        warnings.warn(message, ConvergenceWarning, stacklevel=6)
