"""Quasi-Newton ascent for functions that return an estimate of the inverse Hessian."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from calibrant._typing import FloatArray


class Posterior(NamedTuple):
    """The posterior ``q(e) = N(mean, covariance)``, its value, and a metric.

    The metric is a positive definite estimate of the negative inverse Hessian of the value.
    """

    value: float
    mean: FloatArray
    covariance: FloatArray
    metric: FloatArray


class Ascendable(Protocol):
    """A function to be maximized over the mean of a posterior."""

    def at(self, mean: FloatArray) -> Posterior:
        """The posterior at a mean; the value may be minus infinity outside of the domain."""

    def gradient(self, posterior: Posterior) -> FloatArray:
        """Derivative with respect to the mean."""


def ascend(
    function: Ascendable,
    start: FloatArray,
    *,
    tolerance: float,
    n_secants: int = 10,
    max_iter: int = 60,
) -> Posterior:
    """Find a maximum near ``start`` by Newton steps with ``metric`` as the inverse Hessian.

    The metric is corrected by gradients, as in L-BFGS, by up to ``n_secants`` steps. The search
    ends when the Newton decrement, twice the expected increase of the value, is at most
    ``tolerance``, or when no step increases the value.
    """
    here = function.at(start)
    slope = function.gradient(here)
    secants: list[_Secant] = []
    for _ in range(max_iter):
        if slope @ here.metric @ slope <= tolerance:
            break
        there = _step(function, here, _direction(here.metric, slope, secants), slope)
        if there is None:
            break
        new_slope = function.gradient(there)
        secants = _remembered(secants, there.mean - here.mean, slope - new_slope, n_secants)
        here, slope = there, new_slope
    return here


class _Secant(NamedTuple):
    """A step, the decrease of the gradient along it, and their product."""

    step: FloatArray
    fall: FloatArray
    curvature: float


def _remembered(
    secants: list[_Secant], step: FloatArray, fall: FloatArray, limit: int
) -> list[_Secant]:
    """The last secants, with a new one if its curvature is positive."""
    curvature = float(step @ fall)
    if not limit or curvature <= 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(fall)):
        return secants
    return [*secants[max(0, len(secants) + 1 - limit) :], _Secant(step, fall, curvature)]


def _direction(metric: FloatArray, slope: FloatArray, secants: list[_Secant]) -> FloatArray:
    """Corrected inverse Hessian times gradient: the two loops of L-BFGS around ``metric``."""
    left = slope.copy()
    shares = []
    for secant in reversed(secants):
        shares.append(float(secant.step @ left) / secant.curvature)
        left -= shares[-1] * secant.fall
    out = metric @ left
    for secant, share in zip(secants, reversed(shares), strict=True):
        out += (share - float(secant.fall @ out) / secant.curvature) * secant.step
    return out


def _step(
    function: Ascendable, here: Posterior, direction: FloatArray, slope: FloatArray
) -> Posterior | None:
    """The end of the first of the steps 1, 1/2, 1/4, ... that increases the value enough."""
    gain = 1e-4 * float(direction @ slope)
    length = 1.0
    while length > 1e-8:
        there = function.at(here.mean + length * direction)
        if there.value >= here.value + length * gain:
            return there
        length *= 0.5
    return None
