"""Newton's method for convex objectives, with exact steps or steps by conjugate gradients."""

from __future__ import annotations

import numpy as np

from calibrant._optim.maps import Solve
from calibrant._optim.objective import Objective
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray

TOLERANCE = 1e-13
"""A fit ends when the predicted reduction of a Newton step, relative to 1 + |objective|, is smaller
than this tolerance."""

SEPARABLE_LOSS = 1e-6
"""An objective below this limit means that the labels are separated perfectly and parameters grow
without limit. The limit is larger than that of `plain_temperature`. With K^2 parameters, each
factor of e in the loss costs another pass over the data, and such small finite optima are of no
practical use."""

# Maximum number of products with the Hessian. Products are cheap for a small number of parameters.
# Penalized fits with many parameters need about a hundred products.
_MAX_WORK_FEW, _MAX_WORK_MANY = 10_000, 600

_MAX_CG = 200
"""Maximum number of conjugate gradient iterations in one Newton step."""

_LAST_CG = 0.001
"""Relative accuracy of the last Newton step, which need not be exact."""

_REFRESH_CG = 15
"""After more conjugate gradient iterations in a step, the preconditioner is computed again, because
it belongs to an earlier point."""


# A step that is too long may overflow. The line search then shortens the step.
@np.errstate(over="ignore", invalid="ignore")
def minimize(
    objective: Objective, start: FloatArray, *, max_work: int | None = None, tol: float = TOLERANCE
) -> Solution:
    """Minimize by Newton steps with a line search that never increases the objective.

    ``max_work`` limits the number of products with the Hessian, each of which costs about as much
    as a gradient.
    """
    theta = objective.gauged(start)
    value, gradient = objective.value_and_gradient(theta)
    solve, used_cg = objective.solver(theta), 0
    work = n_iter = 0
    if max_work is None:
        max_work = _MAX_WORK_FEW if objective.is_small else _MAX_WORK_MANY
    while work < max_work:
        n_iter += 1
        if value <= SEPARABLE_LOSS:
            return Solution(theta, value, n_iter, Outcome.SEPARABLE)
        if used_cg > _REFRESH_CG or (n_iter > 1 and objective.brings_hessian):
            solve = objective.solver(theta)
        accuracy = tol * (1 + abs(value))
        step, used_cg = conjugate_gradient(
            objective, theta, gradient, solve, max_work - work, accuracy
        )
        work += used_cg
        predicted = -0.5 * float((gradient * step).sum())
        if predicted <= accuracy:
            return Solution(theta + step, value - predicted, n_iter, Outcome.CONVERGED)
        candidate = line_search(objective, theta, value, gradient, step)
        if candidate is None:
            # Close to the optimum, round-off hides any decrease, which counts as convergence.
            outcome = Outcome.CONVERGED if predicted <= 1e3 * accuracy else Outcome.STALLED
            return Solution(theta, value, n_iter, outcome)
        theta, value, gradient = candidate
    return Solution(theta, value, n_iter, Outcome.ITERATION_LIMIT)


def line_search(
    objective: Objective, theta: FloatArray, value: float, gradient: FloatArray, step: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    """Try steps of length 1, 1/2, 1/4, ... and return the first that reduces the objective.

    The condition is Armijo's rule with the usual factor 1e-4. Return None if no step satisfies the
    rule.
    """
    slope = float((gradient * step).sum())
    round_off = 4 * np.finfo(float).eps * (1 + abs(value))
    length = 1.0
    for _ in range(30):
        candidate = theta + length * step
        new_value, new_gradient = objective.value_and_gradient(candidate)
        if new_value <= value + 1e-4 * length * slope + round_off:
            return candidate, new_value, new_gradient
        length *= 0.5
    # The objective caches the probabilities of its last point, so evaluate the old point again.
    objective.value_and_gradient(theta)
    return None


def conjugate_gradient(
    objective: Objective,
    theta: FloatArray,
    gradient: FloatArray,
    solve: Solve,
    max_products: int,
    accuracy: float,
) -> tuple[FloatArray, int]:
    """Find an inexact Newton step by conjugate gradients, and count the products.

    Directions that do not change probabilities are projected out. The relative accuracy of the step
    increases as the gradient decreases, so convergence is superlinear. The last step, which reduces
    the objective by less than ``accuracy``, may be less exact.
    """
    # The whole Hessian as preconditioner handles flat directions, but its diagonal blocks do not.
    # Without a penalty, rounding moves parameters along flat directions. Such a step can be so long
    # that probabilities change.
    is_curved = objective.is_small and objective.penalty.curvature.any()
    gauge = np.copy if is_curved else objective.in_gauge
    residual = gauge(gradient)
    start = np.linalg.norm(residual)
    step = np.zeros_like(gradient)
    z = gauge(solve(residual))
    direction, rho = -z, float((residual * z).sum())
    least = _LAST_CG if 0.5 * rho <= accuracy else 0.0
    target = start * max(min(0.1, np.sqrt(start)), least)
    for n_products in range(1, min(_MAX_CG, max_products) + 1):  # noqa: B007  # returned below
        product = gauge(objective.hessian_product(theta, direction))
        curvature = float((direction * product).sum())
        if curvature <= 0:  # round-off, because the objective is convex
            break
        alpha = rho / curvature
        step += alpha * direction
        residual = residual + alpha * product
        if np.linalg.norm(residual) <= target:
            break
        z = gauge(solve(residual))
        rho, previous_rho = float((residual * z).sum()), rho
        direction = -z + (rho / previous_rho) * direction
    return step, n_products
