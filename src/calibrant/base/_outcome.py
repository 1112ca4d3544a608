"""How a fit ended: stored with the calibrator, and said once, at the line of the user."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from calibrant._optim.solution import Outcome, Solution
from calibrant._validation import user_level
from calibrant.exceptions import ConvergenceWarning

REMEDIES = {
    Outcome.ITERATION_LIMIT: "calibrate on more rows, or by a method with fewer parameters",
    Outcome.STALLED: (
        "scores of extreme size are the usual cause: check for logits of 1e6 and more"
    ),
    Outcome.SEPARABLE: "calibrate on more rows, or use StructuredScaling",
    Outcome.UNINFORMATIVE: "check that the columns and the labels are in the same order",
    Outcome.MISSING_CLASS: "add rows of that class, or use StructuredScaling",
}
"""What helps whatever the method; ``remedies`` of a calibrator says what helps better."""


def store_outcome(calibrator: Any, solution: Solution) -> None:
    """Store how a fit ended: ``converged_``, ``n_iter_``, ``objective_``. To be called by ``_fit``.

    `Calibrator.fit` warns once where the outcome is not convergence, by the cause and by what
    ``remedies`` of the calibrator say about it.
    """
    calibrator.converged_ = solution.converged
    calibrator.n_iter_ = solution.n_iter
    calibrator.objective_ = solution.objective
    calibrator._outcome = solution.outcome


def warn_unless_converged(owner: str, calibrators: Sequence[Any], what: str | None = None) -> None:
    """One warning, at the line of the user, where any of these fits did not converge."""
    said = convergence_note(owner, calibrators, what)
    if said is not None:
        _warn(said)


def convergence_note(owner: str, calibrators: Sequence[Any], what: str | None = None) -> str | None:
    """What is to be said where any of these fits did not converge.

    ``what`` they are ("claims", "folds") is said with how many of how many; None is for one fit
    that ``owner`` is the name of.
    """
    failed = [list(_failures(calibrator)) for calibrator in calibrators]
    if not any(failed):
        return None
    # The most frequent cause first.
    causes = Counter(_explanation(fit) for fits in failed for fit in fits)
    said = "; ".join(text for text, _ in causes.most_common())
    if what is not None:
        said = f"{sum(map(bool, failed))} of {len(failed)} {what} did not converge: {said}"
    return f"{owner}: {said}"


def warn_of(owner: str, outcome: Outcome) -> None:
    """One warning about a search that belongs to no calibrator."""
    _warn(f"{owner}: {outcome.value}: {REMEDIES[outcome]}")


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=user_level())


def _failures(calibrator: Any) -> Iterator[Any]:
    """The fits inside that did not converge; classifiers that are not ours speak for themselves."""
    if getattr(calibrator, "_outcome", Outcome.CONVERGED) is not Outcome.CONVERGED:
        yield calibrator
    if hasattr(calibrator, "_members"):
        for member in calibrator._members():
            yield from _failures(member)


def _explanation(calibrator: Any) -> str:
    """Cause and remedy."""
    outcome = calibrator._outcome
    return f"{outcome.value}: {calibrator.remedies.get(outcome, REMEDIES[outcome])}"
