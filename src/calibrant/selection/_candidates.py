"""Candidates that `AutoCalibration` combines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.binary import IsotonicCalibration
from calibrant.multiclass import (
    BayesianTemperatureScaling,
    DirichletCalibration,
    Identity,
    StructuredScaling,
)
from calibrant.notions import as_notion
from calibrant.reductions import MulticlassToBinary
from calibrant.selection.methods import by_name

_MOST_CLASSES = 300
"""With more classes, calibrators with parameters per class or pair of classes take too long."""

_MOST_CLASSES_OF_DIRICHLET = 20
_FEWEST_ROWS_OF_DIRICHLET = 50
"""With fewer rows, a weakly regularized matrix fits noise and takes half of the total time."""

_MATRIX_WORK = 2**30
"""Maximum of rows times squared classes. One pass of a matrix fit then takes about a second, and a
fit takes dozens of passes.
"""


def default_candidates(n_samples: float, n_classes: int) -> dict[str, Any]:
    """Return the default candidates for a number of rows (sum of weights) and classes."""
    isotonic = IsotonicCalibration("linear", smoothing=1.0)
    confidence = IsotonicCalibration("linear", smoothing=1.0, clip=True)
    chosen: dict[str, Any] = {
        "bayesian-temperature": BayesianTemperatureScaling(),
        "structured-vector": StructuredScaling("vector"),
        "confidence-isotonic": MulticlassToBinary(confidence, notion="confidence"),
    }
    if n_classes <= min(n_samples, _MOST_CLASSES):
        chosen["isotonic"] = isotonic
        if n_samples * n_classes**2 <= _MATRIX_WORK:
            chosen["structured-matrix"] = StructuredScaling("matrix")
            is_small = n_classes <= _MOST_CLASSES_OF_DIRICHLET
            if is_small and n_samples >= _FEWEST_ROWS_OF_DIRICHLET:
                chosen["dirichlet"] = DirichletCalibration(lam=1e-4)
    return chosen


def is_trusted(candidate: Any) -> bool:
    """Return whether a candidate is the identity or the averaged temperature."""
    return isinstance(candidate, Identity | BayesianTemperatureScaling)


def calibrates_confidence(candidate: Any) -> bool:
    """Whether a candidate calibrates the confidence of the scores."""
    if not isinstance(candidate, MulticlassToBinary):
        return False
    return as_notion(candidate.notion).name == "confidence"


def named_candidates(candidates: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return a dict of candidates by name. Candidates in a list are named after their class."""
    chosen = by_name(candidates)
    reserved = sorted({"identity", "uniform"} & set(chosen))
    if reserved:
        verb = "is" if len(reserved) == 1 else "are"
        raise ValueError(
            f"{' and '.join(reserved)} {verb} always a member of the ensemble. Rename the "
            f"candidate, or remove it."
        )
    return chosen
