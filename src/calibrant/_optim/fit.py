"""Fits of the two kinds of score maps, from data to `Solution`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant._blocks import LiftedRows
from calibrant._optim.maps import AffineMap, DiagonalMap, ScoreMap
from calibrant._optim.newton import minimize
from calibrant._optim.objective import Objective
from calibrant._optim.penalties import QuadraticPenalty
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray, IntArray

Rows = FloatArray | LiftedRows


def fit_affine(
    u: Rows, y: IntArray, weight: FloatArray, penalty: QuadraticPenalty, *, start: FloatArray | None = None, max_iter: int = 500
) -> Solution:
    """``[W | b]`` of shape (K, K + 1)."""
    return _fit(AffineMap(u.shape[1]), u, y, weight, penalty, start, max_iter)


def fit_diagonal(
    u: Rows, y: IntArray, weight: FloatArray, penalty: QuadraticPenalty, *, start: FloatArray | None = None, max_iter: int = 500
) -> Solution:
    """``[d; b]`` of shape (2, K)."""
    return _fit(DiagonalMap(u.shape[1]), u, y, weight, penalty, start, max_iter)


def _fit(
    score_map: ScoreMap,
    u: Rows,
    y: IntArray,
    weight: FloatArray,
    penalty: QuadraticPenalty,
    start: FloatArray | None,
    max_iter: int,
) -> Solution:
    objective = Objective(score_map, penalty, u, y, weight)
    solution = minimize(objective, score_map.identity() if start is None else start, max_iter=max_iter)
    seen = np.bincount(y, weight, minlength=u.shape[1]) > 0
    if not seen.all() and not _is_bounded(penalty):
        return replace(solution, outcome=Outcome.MISSING_CLASS)
    return solution


def _is_bounded(penalty: QuadraticPenalty) -> bool:
    """Whether the penalty keeps every parameter of a class that never occurs from running away."""
    return bool((penalty.curvature > 0).all())
