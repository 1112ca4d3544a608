r"""Minimization of a log-loss over log beta with as few evaluations as possible.

An evaluation is a pass over all rows, so it returns several numbers: the slope of the function and
the first derivatives of the slope. A polynomial interpolates the m numbers at the last point t and
the m' numbers at the previous point t'. The root of the polynomial predicts where the slope is
zero. The error of the predicted root r is about

.. math:: |r - t|^m\, |r - t'|^{m'} / (m + m')^2 .

The error estimate is the remainder of the interpolation. The denominator of the error estimate was
determined empirically for log-losses as functions of :math:`\log \beta`. A bracket limits the step
if the prediction is bad.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, copysign, factorial, inf
from typing import NamedTuple

import numpy as np

from calibrant._optim.plain_temperature import LIMIT, LONGEST_STEP, MAX_ITER, SEPARABLE_LOSS
from calibrant._optim.solution import Outcome, Solution

_ROOT_ITERATIONS = 4
"""Number of Newton steps for the root of the polynomial. The first starts at the Newton step of the
function."""


class Point(NamedTuple):
    """The value of the function at ``t``, its slope, and derivatives of the slope."""

    t: float
    value: float
    slopes: tuple[float, ...]


class SearchResult(NamedTuple):
    """The solution, and the last evaluated point.

    The solution is usually one step beyond the last evaluated point.
    """

    solution: Solution
    point: Point


def minimize_scalar(
    evaluate: Callable[[float], Point],
    start: float,
    tolerance: float,
    before: Point | None = None,
) -> SearchResult:
    """Minimize over [-LIMIT, LIMIT] a function whose slope changes sign at most once.

    The search ends when the estimated error of the next point is at most ``tolerance``. ``before``
    is a point that an earlier search evaluated. The solution is an end of the interval if the slope
    does not change its sign.
    """
    low, high, t = -LIMIT, LIMIT, start
    for n_iter in range(1, MAX_ITER + 1):
        point = evaluate(t)
        if point.slopes[0] == 0.0 or point.value <= SEPARABLE_LOSS:
            return SearchResult(_solution(t, point.value, n_iter, point.slopes[1]), point)
        low, high = (t, high) if point.slopes[0] < 0 else (low, t)
        before = None if before is None or before.t == t else before
        terms = interpolate_slope(point, before)
        newton = _newton_step(point)
        root = _root_near(newton, terms)
        step = _safe_step(t, newton if root is None else root, low, high)
        error = _root_error(t + step, point, before) if step == root else inf
        if min(error, step * step) <= tolerance:
            value, curvature = point.value + _integral(terms, step), _polynomial(terms, step)[1]
            return SearchResult(_solution(t + step, value, n_iter, curvature), point)
        before, t = point, t + step
    solution = Solution(np.array([t]), point.value, MAX_ITER, Outcome.ITERATION_LIMIT)
    return SearchResult(solution, point)


def _solution(t: float, value: float, n_iter: int, curvature: float) -> Solution:
    return Solution(np.array([t]), value, n_iter, Outcome.CONVERGED, max(curvature, 0.0))


def interpolate_slope(point: Point, before: Point | None) -> list[float]:
    """Taylor coefficients at ``point`` of a polynomial that interpolates the slope at two points.

    The first coefficients are determined by the slope and the derivatives at ``point``. The other
    coefficients follow from the slope and the derivatives at ``before``.
    """
    terms = _taylor(point.slopes)
    if before is None:
        return terms
    distance, order = before.t - point.t, len(terms)
    # The remainder after the first terms is x^order q(x). Expand the remainder at ``before``, where
    # x^order has binomial coefficients, and divide the series by x^order to get q.
    first = _shifted([*terms, 0.0], distance)
    power = [comb(order, k) * distance ** (order - k) for k in range(len(before.slopes))]
    quotient: list[float] = []
    for k, value in enumerate(_taylor(before.slopes)):
        product = sum(power[k - j] * quotient[j] for j in range(k))
        quotient.append((value - first[k] - product) / power[0])
    return [*terms, *_shifted(quotient, -distance)]


def _taylor(derivatives: tuple[float, ...]) -> list[float]:
    return [value / factorial(k) for k, value in enumerate(derivatives)]


def _shifted(terms: list[float], x: float) -> list[float]:
    """The Taylor coefficients at ``x`` of a polynomial with the coefficients ``terms`` at 0."""
    terms = list(terms)
    for k in range(len(terms) - 1):  # repeated synthetic division (Horner's rule)
        for j in range(len(terms) - 2, k - 1, -1):
            terms[j] += x * terms[j + 1]
    return terms


def _newton_step(point: Point) -> float:
    slope, curvature = point.slopes[:2]
    return -slope / curvature if curvature > 0 else -copysign(LIMIT, slope)


def _root_near(newton: float, terms: list[float]) -> float | None:
    """Return the root of a polynomial, or None if it is not close to the Newton step."""
    if not terms[1] > 0:
        return None
    step = newton
    for _ in range(_ROOT_ITERATIONS):
        value, slope = _polynomial(terms, step)
        step -= value / slope if slope != 0.0 else 0.0
    return step if abs(step - newton) <= 0.5 * abs(newton) else None


def _polynomial(terms: list[float], x: float) -> tuple[float, float]:
    """Value and slope of a polynomial at ``x``, by Horner's rule."""
    value = slope = 0.0
    for term in reversed(terms):
        slope = slope * x + value
        value = value * x + term
    return value, slope


def _root_error(root: float, point: Point, before: Point | None) -> float:
    """The remainder of the interpolation, as in the formula of the module."""
    order = len(point.slopes)
    error = abs(root - point.t) ** order
    if before is None:
        return error / order**2
    order_before = len(before.slopes)
    return error * abs(root - before.t) ** order_before / (order + order_before) ** 2


def _safe_step(t: float, step: float, low: float, high: float) -> float:
    """Return the step if it stays inside the bracket, else a step to its end or its middle."""
    step = min(LONGEST_STEP, max(-LONGEST_STEP, step))
    if low < t + step < high:
        return step
    if abs(t + step) >= LIMIT:
        return (high if step > 0 else low) - t
    return 0.5 * (low + high) - t


def _integral(terms: list[float], step: float) -> float:
    """Return the integral of the slope from 0 to ``step``, which is the change of the function."""
    total = 0.0
    for power in range(len(terms), 0, -1):
        total = total * step + terms[power - 1] / power
    return total * step
