"""Logistic regression of one claim by Newton's method: what Platt scaling and beta calibration
share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import expit

from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray

# Newton's method takes ten steps or so; with separated outcomes it is stopped after thirty.
_MAX_ITER = 100
# Newton's decrement is about twice the excess of the mean loss; at the square root of round-off the
# next step is exact.
_CONVERGED = 1e-18
# Near a finite optimum the decrement collapses (quadratic convergence). Without one it falls by a
# factor e a step.
_SUSPICIOUS, _SLOW = 1e-8, 0.1
# Directions of less relative curvature than this are not determined by the data.
_RANK = 1e-12


def fit_logistic(
    columns: FloatArray, target: FloatArray, weight: FloatArray, *, intercept: bool = True
) -> Solution:
    r"""Minimise the weighted mean of :math:`\log(1 + e^{\eta}) - t\,\eta` over the d coefficients
    and the intercept of ``eta``: the parameters, (d + 1,), the intercept last (0 without one).

    ``columns`` has shape (m, d), d may be 0; the ``target`` t lies in [0, 1]. Columns are centred
    and scaled first, and the start is 0: a direction that the data do not determine (a constant
    column) keeps the coefficient 0.
    """
    share = weight / weight.sum()
    centre = share @ columns if intercept else np.zeros(columns.shape[1])
    spread = np.sqrt(share @ (columns - centre) ** 2)
    # A constant column, up to round-off, has no scale of its own.
    is_constant = spread <= 1e-14 * np.abs(columns).max(axis=0, initial=0.0)
    scale = np.where(is_constant, 1.0, spread)
    design = np.where(is_constant, 0.0, (columns - centre) / scale)
    if intercept:
        design = np.column_stack([design, np.ones(len(design))])
    solution = _newton(design, target, share)
    beta = solution.parameters
    coef = beta[: columns.shape[1]] / scale
    last = beta[-1] - coef @ centre if intercept else 0.0
    return replace(solution, parameters=np.append(coef, last))


def _newton(design: FloatArray, target: FloatArray, share: FloatArray) -> Solution:
    """Newton's method with step halving, from 0."""

    def mean_loss(beta: FloatArray) -> float:
        eta = design @ beta
        return float(share @ (np.logaddexp(0.0, eta) - target * eta))

    beta = np.zeros(design.shape[1])
    loss, previous = mean_loss(beta), np.inf
    for n_iter in range(1, _MAX_ITER + 1):
        step, decrement = _direction(design, design @ beta, target, share)
        if decrement <= _CONVERGED:
            return Solution(beta + step, loss, n_iter, Outcome.CONVERGED)
        if _SLOW * previous <= decrement <= _SUSPICIOUS:
            return Solution(beta, loss, n_iter, Outcome.SEPARABLE)
        beta, loss = _halved(mean_loss, beta, step, loss, decrement)
        previous = decrement
    return Solution(beta, loss, _MAX_ITER, Outcome.ITERATION_LIMIT)


def _direction(
    design: FloatArray, eta: FloatArray, target: FloatArray, share: FloatArray
) -> tuple[FloatArray, float]:
    """Newton's step of least norm, and its decrement."""
    proba = expit(eta)
    gradient = design.T @ (share * (target - proba))
    curvature, axes = np.linalg.eigh((design.T * (share * proba * (1.0 - proba))) @ design)
    kept = curvature > _RANK * curvature.max(initial=0.0)
    axes = axes[:, kept]
    step = axes @ ((axes.T @ gradient) / curvature[kept])
    return step, float(gradient @ step)


def _halved(
    mean_loss: Callable[[FloatArray], float],
    beta: FloatArray,
    step: FloatArray,
    loss: float,
    decrement: float,
) -> tuple[FloatArray, float]:
    """The first of the step, its half, its quarter ... that lowers the loss enough."""
    size = 1.0
    while True:
        trial = beta + size * step
        value = mean_loss(trial)
        # The second term forgives round-off; it also ends the search.
        if value <= loss - 1e-4 * size * decrement + 1e-15 * (1.0 + abs(loss)) or size < 1e-12:
            return trial, value
        size /= 2.0
