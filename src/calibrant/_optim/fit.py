"""The fit of a score map, from data to `Solution`."""

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
    """Parameters of a map, of its shape, that minimize the penalized mean log-loss; the search
    begins at ``start``, or where the best temperature puts the identity.
    """
    with one_blas_thread(sample.shape[0] * sample.shape[1]):
        objective = Objective(score_map, penalty, sample)
        if start is None:
            start = _best_start(objective, sample)
        if isinstance(score_map, DiagonalMap):
            objective.penalty = _held(penalty, start, sample.class_weights > 0)
        solution = minimize(objective, start, tol=tol, max_work=max_work)
    settled = objective.settled(solution.parameters, objective.gauged(start))
    solution = replace(solution, parameters=settled)
    if not (sample.class_weights > 0).all() and not _is_bounded(penalty):
        return replace(solution, outcome=Outcome.MISSING_CLASS)
    return solution


HELD = 1e-3
"""Curvature that holds the factors of classes that never occur."""


def _held(penalty: QuadraticPenalty, start: FloatArray, is_seen: BoolArray) -> QuadraticPenalty:
    """The penalty, and one on the free factors of a diagonal map that belong to classes without a
    row: their offsets alone make such a class improbable. Factors that no row tells anything about
    would end anywhere, and on rows unlike these make the class likely.
    """
    is_held = np.stack([~is_seen, np.zeros_like(is_seen)]) & (penalty.curvature == 0)
    return QuadraticPenalty(
        np.where(is_held, HELD, penalty.curvature), np.where(is_held, start, penalty.centre)
    )


def _best_start(objective: Objective, sample: Sample) -> FloatArray:
    """The identity, or the identity at the best temperature, where logits of any size have a
    curvature: the latter of data that are not kept, where to compare them costs passes.
    """
    identity = objective.map.identity()
    beta = np.exp(find_log_beta(sample).parameters[0])
    if not objective.keeps:
        return beta * identity
    return min(identity, beta * identity, key=lambda theta: objective.value_and_gradient(theta)[0])


def _is_bounded(penalty: QuadraticPenalty) -> bool:
    """Whether the penalty keeps every parameter of a class that never occurs from running away."""
    return bool((penalty.curvature > 0).all())
