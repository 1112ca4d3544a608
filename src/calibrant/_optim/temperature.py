r"""The best inverse temperature: Newton's method in one dimension, safeguarded by a bracket.

With :math:`\beta = e^t`, the mean log-loss of :math:`\mathrm{softmax}(\beta u)` is convex in
:math:`\beta`, and one pass over the data gives its value and both derivatives in :math:`t`:

.. math::

   f' = \beta\, \overline{(E_i[u] - u_{i y_i})}, \qquad f'' = \beta^2\, \overline{\mathrm{Var}_i[u]}
   + f',

:math:`E_i` and :math:`\mathrm{Var}_i` over the classes with probabilities
:math:`\mathrm{softmax}(\beta u_i)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from calibrant._blocks import Rows, sum_blocks
from calibrant._optim.solution import Outcome, Solution
from calibrant._simplex import row_max, row_sum, true_class
from calibrant._typing import FloatArray, IntArray

LIMIT = 16.0
"""Inverse temperatures stay within exp(-LIMIT) and exp(LIMIT)."""

MAX_ITER = 100
"""Steps; two to five are usual, and bisection alone would take 22 (LIMIT over the last step)."""

SEPARABLE_LOSS = 1e-12
"""Below this loss the labels are separated, and a higher beta changes nothing any more. Smaller
than that of `newton`: here one number grows, each step of it is cheap, and losses between the two
are those of well separated data with a finite temperature."""

# Newton's error after a step is about the square of the step.
_LAST_STEP = 1e-5
_WARM_ROWS = 16
_WARM_FROM = 5_000


class Point(NamedTuple):
    """Objective and its derivatives in t = log beta."""

    value: float
    slope: float
    curvature: float


def log_inverse_temperature(
    u: Rows, y: IntArray, weight: FloatArray, *, prior_scale: float | None = None
) -> Solution:
    """``t = log beta`` that minimises the mean log-loss, plus ``t^2 / (2 n s^2)`` for a Gaussian
    prior of scale s.

    Large data start from the optimum of every 16th row.
    """
    start = 0.0
    if len(y) >= _WARM_FROM:
        rows = slice(None, None, _WARM_ROWS)
        if weight[rows].any():
            start = _solve(u[rows], y[rows], weight[rows], prior_scale, 0.0).parameters[0]
    return _solve(u, y, weight, prior_scale, start)


def _solve(
    u: Rows,
    y: IntArray,
    weight: FloatArray,
    prior_scale: float | None,
    start: float,
) -> Solution:
    sums = partial(loss_sums, u, y, weight)
    return solve_sums(sums, float(weight.sum()), prior_scale, start)


def loss_sums(u: Rows, y: IntArray, weight: FloatArray, beta: float) -> tuple[float, float, float]:
    """Sums over rows of the loss, of its slope and of the variance in beta."""
    total: tuple[float, float, float] = sum_blocks(partial(_block, u, y, weight, beta), *u.shape)
    return total


def solve_sums(
    sums: Callable[[float], tuple[float, float, float]],
    total: float,
    prior_scale: float | None = None,
    start: float = 0.0,
) -> Solution:
    """The best ``t`` of data of which the sums at any beta are asked for: one pass each."""
    precision = 0.0 if prior_scale is None else 1.0 / (total * prior_scale**2)

    def evaluate(t: float) -> Point:
        value, slope, square = sums(np.exp(t))
        first = np.exp(t) * slope / total
        second = np.exp(2 * t) * square / total + first
        return Point(
            value / total + 0.5 * precision * t * t, first + precision * t, second + precision
        )

    return with_cause(newton_1d(evaluate, start, LIMIT))


def with_cause(solution: Solution) -> Solution:
    """Where the search ended at an end of its interval, what that says about the data."""
    t = float(solution.parameters[0])
    if t >= LIMIT or solution.objective <= SEPARABLE_LOSS:
        return replace(solution, outcome=Outcome.SEPARABLE)
    return replace(solution, outcome=Outcome.UNINFORMATIVE) if t <= -LIMIT else solution


def _block(
    u: Rows, y: IntArray, weight: FloatArray, beta: float, rows: slice
) -> tuple[float, float, float]:
    """Sums of the loss, of its slope and of the variance in beta over a block."""
    x, w = u[rows], weight[rows]
    x = x - row_max(x)[:, None]
    e = np.exp(beta * x)
    norm = row_sum(e)
    true = true_class(x, y[rows])
    e *= x
    mean = row_sum(e) / norm
    e *= x
    square = row_sum(e) / norm - mean * mean
    return float(w @ (np.log(norm) - beta * true)), float(w @ (mean - true)), float(w @ square)


def newton_1d(evaluate: Callable[[float], Point], start: float, limit: float) -> Solution:
    """Minimum over [-limit, limit] of a function whose slope changes sign once; an end of the
    interval if it does not.
    """
    low, high = -limit, limit
    t = start
    for n_iter in range(1, MAX_ITER + 1):
        point = evaluate(t)
        if point.slope == 0.0 or point.value <= SEPARABLE_LOSS:
            return Solution(np.array([t]), point.value, n_iter, Outcome.CONVERGED)
        low, high = (t, high) if point.slope < 0 else (low, t)
        step = _step(t, point, low, high, limit)
        t += step
        if abs(step) <= _LAST_STEP:
            value = point.value + 0.5 * step * point.slope
            return Solution(np.array([t]), value, n_iter, Outcome.CONVERGED)
    return Solution(np.array([t]), point.value, MAX_ITER, Outcome.ITERATION_LIMIT)


def _step(t: float, point: Point, low: float, high: float, limit: float) -> float:
    """Newton's step where it stays inside the bracket; else to an end of the interval, or to the
    middle of the bracket.
    """
    newton = (
        -point.slope / point.curvature if point.curvature > 0 else -np.sign(point.slope) * limit
    )
    # At most 2 in log beta: far from the optimum the slope says the direction and little else.
    step = float(np.clip(newton, -2.0, 2.0))
    if low < t + step < high:
        return step
    if abs(t + step) >= limit:
        return (high if step > 0 else low) - t
    return 0.5 * (low + high) - t
