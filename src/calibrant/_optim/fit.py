"""The fit of a score function, from data to `Solution`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant._data.sample import Sample
from calibrant._kernels.blocks import one_blas_thread
from calibrant._optim.maps import DiagonalMap, ScoreMap
from calibrant._optim.newton import TOLERANCE, minimize
from calibrant._optim.objective import Objective
from calibrant._optim.penalties import QuadraticPenalty
from calibrant._optim.solution import Outcome, Solution
from calibrant._optim.temperature import find_log_beta
from calibrant._typing import BoolArray, FloatArray


def fit_map(
    score_map: ScoreMap,
    sample: Sample,
    penalty: QuadraticPenalty,
    *,
    start: FloatArray | None = None,
    tol: float = TOLERANCE,
    max_work: int | None = None,
) -> Solution:
    """Minimize the penalized mean log-loss over the parameters of a score function.

    The search starts at ``start``, by default at the identity divided by the best temperature.
    """
    with one_blas_thread(sample.shape[0] * sample.shape[1]):
        objective = Objective(score_map, penalty, sample)
        if start is None:
            start = _best_start(objective, sample)
        if isinstance(score_map, DiagonalMap):
            objective.penalty = _hold_missing(penalty, start, sample.class_weights > 0)
        solution = minimize(objective, start, tol=tol, max_work=max_work)
    parameters = objective.without_drift(solution.parameters, objective.gauged(start))
    solution = replace(solution, parameters=parameters)
    if not (sample.class_weights > 0).all() and not _is_bounded(penalty):
        return replace(solution, outcome=Outcome.MISSING_CLASS)
    return solution


HELD = 1e-3
"""Curvature of the penalty that keeps the factors of classes without rows at their start."""


def _hold_missing(
    penalty: QuadraticPenalty, start: FloatArray, is_seen: BoolArray
) -> QuadraticPenalty:
    """For a diagonal function, penalize the unpenalized factors of classes without rows.

    The intercept alone makes a class without rows improbable. No row determines the factor of the
    class, and an arbitrary factor could make the class likely on new rows.
    """
    is_held = np.stack([~is_seen, np.zeros_like(is_seen)]) & (penalty.curvature == 0)
    return QuadraticPenalty(
        np.where(is_held, HELD, penalty.curvature), np.where(is_held, start, penalty.center)
    )


def _best_start(objective: Objective, sample: Sample) -> FloatArray:
    """Return the better start of the identity and the identity divided by the best temperature.

    At the best temperature, the curvature is positive for logits of any size. If the data are not
    in memory, the search starts at the best temperature, because a comparison would need additional
    passes.
    """
    identity = objective.map.identity()
    beta = np.exp(find_log_beta(sample).parameters[0])
    if not objective.keeps:
        return beta * identity
    return min(identity, beta * identity, key=lambda theta: objective.value_and_gradient(theta)[0])


def _is_bounded(penalty: QuadraticPenalty) -> bool:
    """Return whether the penalty keeps all parameters of a class without rows finite."""
    return bool((penalty.curvature > 0).all())
