"""The calibrators that `AutoCalibration` stacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant._data.sample import RowBlock, Sample
from calibrant.binary import IsotonicCalibration
from calibrant.multiclass import (
    BayesianTemperatureScaling,
    DirichletCalibration,
    StructuredScaling,
    TemperatureScaling,
)
from calibrant.selection._pool import MANY_CLASSES, is_thin
from calibrant.selection.methods import by_name

_MATRIX_WORK = 2**30
"""Rows times squared classes of a pass over the data: about a second, and a fit takes dozens, in
every fold."""

_CONFUSED_CLASSES = range(3, 21)
_CONFUSED_ROWS = 100
_ERRORS_PER_CLASS = 3
"""So many classes, and at least so many rows, and errors a class, tell which class is taken for
which: a matrix that is hardly held at all is then worth up to 0.2 nats more than one that is held
to a temperature. With fewer errors it learns them by heart."""

_ROWS_PER_CLASS = 10
"""Below, an isotonic map has no more than a step or two to learn from."""

_ERRORS_OF_CURVES = 8
"""Below, what an isotonic map learns is that no high score was ever wrong."""


def candidates_for(sample: Sample) -> dict[str, Any]:
    """What `AutoCalibration` stacks by default of these rows."""
    return default_candidates(sample.total, sample.shape[1], float(sample.sum(_weigh_errors)))


def _weigh_errors(block: RowBlock) -> float:
    """The weight of rows whose highest score is not that of what happened."""
    return float(block.weight @ (block.u.argmax(axis=1) != block.y))


def default_candidates(n_samples: float, n_classes: int, n_errors: float) -> dict[str, Any]:
    """What `AutoCalibration` stacks by default for so many rows and classes, and rows on which the
    highest score is not that of what happened.
    """
    if is_thin(n_samples, n_classes):
        alone: dict[str, Any] = {"temperature": BayesianTemperatureScaling()}
        if n_classes <= n_samples <= _MATRIX_WORK / n_classes**2:
            alone["structured-matrix"] = StructuredScaling("matrix")
        return alone
    prior_scale = 1.0 if n_classes >= MANY_CLASSES else 0.25
    chosen: dict[str, Any] = {"temperature": TemperatureScaling(prior_scale=prior_scale)}
    chosen["structured-vector"] = StructuredScaling("vector")
    if n_samples * n_classes**2 <= _MATRIX_WORK:
        chosen["structured-matrix"] = StructuredScaling("matrix")
        if _tells_confusions(n_samples, n_classes, n_errors):
            chosen["dirichlet"] = DirichletCalibration(lam=1e-4)
        else:
            chosen["structured-matrix-centred"] = StructuredScaling(
                "matrix", centre=True, prior_scale=0.25
            )
    if n_samples >= _ROWS_PER_CLASS * n_classes and n_errors >= _ERRORS_OF_CURVES:
        chosen["isotonic"] = IsotonicCalibration("linear", smoothing=1.0)
    return chosen


def _tells_confusions(n_samples: float, n_classes: int, n_errors: float) -> bool:
    is_enough = n_samples >= _CONFUSED_ROWS and n_errors >= _ERRORS_PER_CLASS * n_classes
    return n_classes in _CONFUSED_CLASSES and is_enough


def named_candidates(candidates: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Candidates by name; those of a list are named after their class."""
    chosen = by_name(candidates)
    taken = {"identity", "uniform"} & set(chosen)
    if taken:
        raise ValueError(
            f"{', '.join(sorted(taken))} is always a member: give the candidate another name, or "
            f"leave it out"
        )
    return chosen
