from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant._data.sample import ArraySample, RowBlock
from calibrant._kernels.simplex import log_softmax
from calibrant._optim import plain_temperature
from calibrant._optim.plain_temperature import (
    find_log_beta_plainly,
    loss_sums,
    minimize_by_newton,
)
from calibrant._optim.solution import Outcome


def mean_loss(t, u, y, weight):
    return -np.average(log_softmax(np.exp(t) * u)[np.arange(len(y)), y], weights=weight)


@pytest.fixture
def data(rng):
    u = 3 * rng.normal(size=(500, 5))
    return u, (0.5 * u + rng.gumbel(size=u.shape)).argmax(axis=1), rng.random(500)


def test_derivatives_are_those_of_finite_differences(data):
    u, y, weight = data
    block, step = RowBlock(u, y, weight, 0), 1e-5
    value, slope, variance = loss_sums(0.7, block)
    ahead, behind = loss_sums(0.7 + step, block), loss_sums(0.7 - step, block)
    assert slope == pytest.approx((ahead[0] - behind[0]) / (2 * step), rel=1e-8)
    assert variance == pytest.approx((ahead[1] - behind[1]) / (2 * step), rel=1e-8)
    assert value == pytest.approx(mean_loss(np.log(0.7), u, y, weight) * weight.sum(), rel=1e-12)


@pytest.mark.parametrize("prior_scale", [None, 0.25])
def test_the_optimum_is_that_of_scipy(data, prior_scale):
    u, y, weight = data
    precision = 0 if prior_scale is None else 1 / (weight.sum() * prior_scale**2)
    expected = minimize_scalar(
        lambda t: mean_loss(t, u, y, weight) + precision * t * t / 2,
        bounds=(-3, 3),
        options={"xatol": 1e-10},
    )
    solution = find_log_beta_plainly(ArraySample(u, y, weight), prior_scale=prior_scale)
    assert solution.parameters[0] == pytest.approx(expected.x, abs=1e-7)
    assert solution.objective == pytest.approx(expected.fun, abs=1e-12)


def quartic(t):
    return (t - 3.0) ** 4, 4 * (t - 3.0) ** 3, 12 * (t - 3.0) ** 2


def test_newton_in_one_dimension_stops_at_the_iteration_limit(monkeypatch):
    solution = minimize_by_newton(quartic)
    assert solution.outcome is Outcome.CONVERGED
    assert solution.parameters[0] == pytest.approx(3.0, abs=1e-3)
    monkeypatch.setattr(plain_temperature, "MAX_ITER", 2)
    cut = minimize_by_newton(quartic)
    assert (cut.outcome, cut.n_iter) == (Outcome.ITERATION_LIMIT, 2)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_function_that_falls_forever_ends_at_the_limit(sign):
    solution = minimize_by_newton(lambda t: (np.exp(-sign * t), -sign * np.exp(-sign * t), 0.0))
    assert solution.parameters[0] == sign * plain_temperature.LIMIT
