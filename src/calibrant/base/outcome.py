"""Store the outcome of an iterative fit, and warn once if the fit did not converge."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from calibrant._optim.solution import Outcome, Solution
from calibrant._validation import user_level
from calibrant.exceptions import ConvergenceWarning

REMEDIES = {
    Outcome.ITERATION_LIMIT: "Fit on more rows, or use a method with fewer parameters.",
    Outcome.STALLED: "Check for extreme scores, such as logits of 1e6 or more.",
    Outcome.SEPARABLE: "Fit on more rows, or use StructuredScaling().",
    Outcome.UNINFORMATIVE: "Check that the columns and the labels are in the same order.",
    Outcome.MISSING_CLASS: "Add rows of that class, or use StructuredScaling().",
}
"""General advice for each outcome. ``remedies`` of a calibrator override the general advice."""


def store_outcome(calibrator: Any, solution: Solution) -> None:
    """Set ``converged_``, ``n_iter_`` and ``objective_`` of a calibrator.

    Call this function in ``_fit``. If the fit did not converge, `Calibrator.fit` issues one
    warning with the cause and the advice in ``remedies`` of the calibrator.

    See Also
    --------
    Solution : The result of an iterative fit.
    """
    calibrator.converged_ = solution.converged
    calibrator.n_iter_ = solution.n_iter
    calibrator.objective_ = solution.objective
    calibrator._outcome = solution.outcome


def warn_unless_converged(owner: str, calibrators: Sequence[Any], what: str | None = None) -> None:
    """Issue one warning, at the line of the user, if any of these fits did not converge."""
    message = convergence_note(owner, calibrators, what)
    if message is not None:
        _warn(message)


def convergence_note(owner: str, calibrators: Sequence[Any], what: str | None = None) -> str | None:
    """Return a message if any of these fits did not converge, else None.

    ``what`` is the noun for the fits ("claims", "folds"), and the message states their number. None
    means a single fit with the name ``owner``.
    """
    failures = [list(_failures(calibrator)) for calibrator in calibrators]
    if not any(failures):
        return None
    # Report the most frequent cause first.
    causes = Counter(_explanation(fit) for fits in failures for fit in fits)
    sentences = [text for text, _ in causes.most_common()]
    if what is not None:
        sentences.insert(
            0, f"{sum(map(bool, failures))} of {len(failures)} {what} did not converge."
        )
    first, *others = sentences
    return " ".join([f"{owner}: {first}", *(text[0].upper() + text[1:] for text in others)])


def warn_of(owner: str, outcome: Outcome) -> None:
    """Issue a warning about a search that does not belong to a calibrator."""
    _warn(f"{owner}: {outcome.value}. {REMEDIES[outcome]}")


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=user_level())


def _failures(calibrator: Any) -> Iterator[Any]:
    """Yield the calibrator and its members that did not converge.

    Estimators of other packages have no outcome and are skipped.
    """
    if getattr(calibrator, "_outcome", Outcome.CONVERGED) is not Outcome.CONVERGED:
        yield calibrator
    if hasattr(calibrator, "_members"):
        for member in calibrator._members():
            yield from _failures(member)


def _explanation(calibrator: Any) -> str:
    """Return the reason why a fit did not converge, and the advice."""
    outcome = calibrator._outcome
    return f"{outcome.value}. {calibrator.remedies.get(outcome, REMEDIES[outcome])}"
