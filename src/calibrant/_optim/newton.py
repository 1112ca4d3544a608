"""Newton's method for the convex objectives of score maps: exact steps, or steps by conjugate
gradients.
"""

from __future__ import annotations

import numpy as np

from calibrant._optim.maps import Solve
from calibrant._optim.objective import Objective
from calibrant._optim.solution import Outcome, Solution
from calibrant._typing import FloatArray

TOLERANCE = 1e-13
"""A fit ends when a Newton step promises to lower the objective by less than this (relative to 1 +
|objective|)."""

SEPARABLE_LOSS = 1e-6
"""An objective below this means that the labels are separated perfectly and parameters grow without
limit. Larger than that of `temperature`: with K^2 parameters each factor e of the loss costs
another pass over the data, and finite optima of a mean loss this small are of no use."""

# Products with the Hessian after which a fit gives up: of few parameters they cost next to nothing,
# penalized fits of many need about a hundred.
_MAX_WORK_FEW, _MAX_WORK_MANY = 10_000, 600

_MAX_CG = 200
_LAST_CG = 0.001
_REFRESH_CG = 15


@np.errstate(
    over="ignore", invalid="ignore"
)  # a step too far overflows, and the line search takes it back
def minimize(
    objective: Objective, start: FloatArray, *, max_work: int | None = None, tol: float = TOLERANCE
) -> Solution:
    """The minimum, by Newton steps with a line search that never raises the objective.

    ``max_work`` limits the products with the Hessian, each of which costs about as much as a
    gradient.
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
        promised = -0.5 * float((gradient * step).sum())
        if promised <= accuracy:
            return Solution(theta + step, value - promised, n_iter, Outcome.CONVERGED)
        moved = line_search(objective, theta, value, gradient, step)
        if moved is None:
            # Close to the optimum round-off hides any decrease: that is convergence, elsewhere it
            # is not.
            outcome = Outcome.CONVERGED if promised <= 1e3 * accuracy else Outcome.STALLED
            return Solution(theta, value, n_iter, outcome)
        theta, value, gradient = moved
    return Solution(theta, value, n_iter, Outcome.ITERATION_LIMIT)


def line_search(
    objective: Objective, theta: FloatArray, value: float, gradient: FloatArray, step: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    """The longest of the steps 1, 1/2, 1/4, ... that lowers the objective enough, or None."""
    slope = float((gradient * step).sum())
    round_off = 4 * np.finfo(float).eps * (1 + abs(value))
    length = 1.0
    for _ in range(30):
        candidate = theta + length * step
        new_value, new_gradient = objective.value_and_gradient(candidate)
        if new_value <= value + 1e-4 * length * slope + round_off:
            return candidate, new_value, new_gradient
        length *= 0.5
    # Restore what the objective keeps of its last point.
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
    """An inexact Newton step by preconditioned conjugate gradients, and the number of Hessian
    products it took.

    Directions that no probability depends on are projected out; the step is as exact as the
    gradient is small, so that convergence is superlinear, and needs not be where it lowers the
    objective by less than ``accuracy``: that is the last one.
    """
    # The whole Hessian as preconditioner sees every direction; its blocks alone do not. A
    # Hessian from the pass of the gradient rounds differently at every pass, which lets
    # unpenalized parameters drift along directions without curvature.
    drifts = objective.brings_hessian and not objective.penalty.curvature.any()
    gauge = np.copy if objective.is_small and not drifts else objective.in_gauge
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
        if curvature <= 0:
            break
        alpha = rho / curvature
        step += alpha * direction
        residual = residual + alpha * product
        if np.linalg.norm(residual) <= target:
            break
        z = gauge(solve(residual))
        rho, previous = float((residual * z).sum()), rho
        direction = -z + (rho / previous) * direction
    return step, n_products
