from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant._blocks import ArraySample, LiftedRows, RowBlock
from calibrant._optim import temperature
from calibrant._optim.solution import Outcome
from calibrant._simplex import log_softmax


def solved_in_double(u, y, weight, start=0.0):
    """The optimum by passes in double precision alone."""
    sums = partial(temperature.loss_sums, ArraySample(u, y, weight))
    return temperature.solve_sums(sums, weight.sum(), None, temperature.Near(start))


def mean_loss(t, u, y, weight):
    return -np.average(log_softmax(np.exp(t) * u)[np.arange(len(y)), y], weights=weight)


@pytest.fixture
def data(rng):
    u = 3 * rng.normal(size=(500, 5))
    return u, (0.5 * u + rng.gumbel(size=u.shape)).argmax(axis=1), rng.random(500)


def test_derivatives_are_those_of_finite_differences(data):
    u, y, weight = data
    value, slope, variance = temperature.block_sums(0.7, RowBlock(u, y, weight, 0))
    step = 1e-5
    ahead, behind = (
        temperature.block_sums(0.7 + s, RowBlock(u, y, weight, 0)) for s in (step, -step)
    )
    assert slope == pytest.approx((ahead[0] - behind[0]) / (2 * step), rel=1e-8)
    assert variance == pytest.approx((ahead[1] - behind[1]) / (2 * step), rel=1e-8)
    assert value == pytest.approx(mean_loss(np.log(0.7), u, y, weight) * weight.sum(), rel=1e-12)


@pytest.mark.parametrize("prior_scale", [None, 0.25])
def test_the_optimum_is_that_of_a_plain_search(data, prior_scale):
    u, y, weight = data
    precision = 0 if prior_scale is None else 1 / (weight.sum() * prior_scale**2)
    plain = minimize_scalar(
        lambda t: mean_loss(t, u, y, weight) + precision * t * t / 2,
        bounds=(-3, 3),
        options={"xatol": 1e-10},
    )
    solution = temperature.log_inverse_temperature(
        ArraySample(u, y, weight), prior_scale=prior_scale
    )
    assert solution.parameters[0] == pytest.approx(plain.x, abs=1e-7)
    assert solution.objective == pytest.approx(plain.fun, abs=1e-12)


def test_large_data_start_from_a_part_and_end_at_the_optimum_of_all(rng):
    u = 3 * rng.normal(size=(20_000, 4))
    y = (0.4 * u + rng.gumbel(size=u.shape)).argmax(axis=1)
    warm = temperature.log_inverse_temperature(ArraySample(u, y, np.ones(len(y))))
    cold = solved_in_double(u, y, np.ones(len(y)))
    assert warm.parameters[0] == pytest.approx(cold.parameters[0], abs=1e-9)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 1e4])
@pytest.mark.parametrize("shift", [0.0, 60.0, 1e5])
def test_a_way_in_single_precision_ends_where_one_in_double_does(data, scale, shift):
    u, y, weight = data
    u = scale * u + shift
    exact = solved_in_double(u, y, weight, -np.log(scale))
    found = temperature.log_inverse_temperature(ArraySample(u, y, weight))
    assert found.parameters[0] == pytest.approx(exact.parameters[0], abs=1e-9)
    assert found.objective <= exact.objective + 1e-14


def test_rows_lifted_on_demand_give_the_same_optimum(data):
    u, y, weight = data
    lazy = LiftedRows(np.exp(u), np.log)
    direct = temperature.log_inverse_temperature(ArraySample(u, y, weight))
    assert temperature.log_inverse_temperature(
        ArraySample(lazy, y, weight)
    ).parameters == pytest.approx(direct.parameters, abs=1e-9)


def test_separable_and_uninformative_scores_are_told():
    y = np.arange(30) % 3
    right = np.eye(3)[y]
    for scale in (1e-3, 1.0, 1e4):
        assert (
            temperature.log_inverse_temperature(ArraySample(scale * right, y, np.ones(30))).outcome
            is Outcome.SEPARABLE
        )
        worse = temperature.log_inverse_temperature(ArraySample(-scale * right, y, np.ones(30)))
        assert worse.outcome is Outcome.UNINFORMATIVE
        assert np.isfinite(worse.parameters).all()


def test_scores_without_any_information_keep_the_temperature():
    solution = temperature.log_inverse_temperature(
        ArraySample(np.zeros((10, 3)), np.arange(10) % 3, np.ones(10))
    )
    assert solution.parameters[0] == 0
    assert solution.outcome is Outcome.CONVERGED


@pytest.mark.parametrize("start", [-12.0, 0.0, 12.0])
def test_every_start_leads_to_the_optimum(data, start):
    u, y, weight = data
    found = solved_in_double(u, y, weight, start).parameters[0]
    assert found == pytest.approx(solved_in_double(u, y, weight, -0.7).parameters[0], abs=1e-9)


def test_newton_in_one_dimension_says_where_it_was_cut_short(monkeypatch):
    def evaluate(t):
        return temperature.Point((t - 3.0) ** 4, 4 * (t - 3.0) ** 3, 12 * (t - 3.0) ** 2)

    whole = temperature.newton_1d(evaluate, temperature.Near(), 16.0)
    assert whole.outcome is Outcome.CONVERGED
    assert whole.parameters[0] == pytest.approx(3.0, abs=1e-3)
    monkeypatch.setattr(temperature, "MAX_ITER", 2)
    cut = temperature.newton_1d(evaluate, temperature.Near(), 16.0)
    assert (cut.outcome, cut.n_iter) == (Outcome.ITERATION_LIMIT, 2)


def test_a_temperature_that_ran_out_of_steps_is_no_optimum(rng, monkeypatch):
    monkeypatch.setattr(temperature, "MAX_ITER", 1)
    u, y = 5 * rng.normal(size=(100, 3)), rng.integers(3, size=100)
    solution = temperature.log_inverse_temperature(ArraySample(u, y, np.ones(100)))
    assert solution.outcome is Outcome.ITERATION_LIMIT
