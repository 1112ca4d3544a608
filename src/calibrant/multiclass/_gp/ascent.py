"""Quasi-Newton ascent for functions that return an estimate of the inverse Hessian."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from calibrant._typing import FloatArray


class Posterior(NamedTuple):
    """The posterior ``q(e) = N(mean, covariance)`` and the value of the bound.

    ``metric`` is a positive definite estimate of the negative inverse Hessian of the value.
    """

    value: float
    mean: FloatArray
    covariance: FloatArray
    metric: FloatArray


class Ascendable(Protocol):
    """A function that is maximized over the mean of a posterior."""

    def at(self, mean: FloatArray) -> Posterior:
        """Return the posterior at a mean. The value is -inf outside the domain of the function."""

    def gradient(self, posterior: Posterior) -> FloatArray:
        """Return the derivative with respect to the mean."""


def ascend(
    function: Ascendable,
    start: FloatArray,
    *,
    tolerance: float,
    n_secants: int = 10,
    max_iter: int = 60,
) -> Posterior:
    """Find a maximum near ``start`` by Newton steps with ``metric`` as the inverse Hessian.

    The gradients of the last ``n_secants`` steps correct the metric, as in L-BFGS. The search ends
    when the Newton decrement is at most ``tolerance``, or when no step increases the value. The
    Newton decrement is twice the expected increase of the value.
    """
    point = function.at(start)
    slope = function.gradient(point)
    secants: list[_Secant] = []
    for _ in range(max_iter):
        if slope @ point.metric @ slope <= tolerance:
            break
        new_point = _step(function, point, _direction(point.metric, slope, secants), slope)
        if new_point is None:
            break
        new_slope = function.gradient(new_point)
        secants = _append_secant(secants, new_point.mean - point.mean, slope - new_slope, n_secants)
        point, slope = new_point, new_slope
    return point


class _Secant(NamedTuple):
    """A step, the decrease of the gradient along the step, and the inner product of both."""

    step: FloatArray
    fall: FloatArray
    curvature: float


def _append_secant(
    secants: list[_Secant], step: FloatArray, fall: FloatArray, limit: int
) -> list[_Secant]:
    """Append a secant if its curvature is positive, and keep the last ``limit`` secants."""
    curvature = float(step @ fall)
    if not limit or curvature <= 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(fall)):
        return secants
    return [*secants[max(0, len(secants) + 1 - limit) :], _Secant(step, fall, curvature)]


def _direction(metric: FloatArray, slope: FloatArray, secants: list[_Secant]) -> FloatArray:
    """Multiply the gradient by the corrected inverse Hessian (two-loop recursion of L-BFGS)."""
    remainder = slope.copy()
    shares = []
    for secant in reversed(secants):
        shares.append(float(secant.step @ remainder) / secant.curvature)
        remainder -= shares[-1] * secant.fall
    out = metric @ remainder
    for secant, share in zip(secants, reversed(shares), strict=True):
        out += (share - float(secant.fall @ out) / secant.curvature) * secant.step
    return out


def _step(
    function: Ascendable, point: Posterior, direction: FloatArray, slope: FloatArray
) -> Posterior | None:
    """Try steps of length 1, 1/2, 1/4, ... and return the first that increases the value enough."""
    gain = 1e-4 * float(direction @ slope)
    length = 1.0
    while length > 1e-8:
        new_point = function.at(point.mean + length * direction)
        if new_point.value >= point.value + length * gain:
            return new_point
        length *= 0.5
    return None
