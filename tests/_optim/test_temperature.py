from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant._data.sample import ArraySample, LazyRows, RowBlock
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
    lazy = LazyRows(np.exp(u), np.log)
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


def test_few_rows_know_their_third_derivative(data):
    u, y, weight = data
    few = temperature._FewRows(ArraySample(u, y, weight))
    step = 1e-4
    value, slope, variance, third = few.sums(0.7)
    ahead, behind = few.sums(0.7 + step), few.sums(0.7 - step)
    assert third == pytest.approx((ahead[2] - behind[2]) / (2 * step), rel=1e-6)
    plain = temperature.block_sums(0.7, RowBlock(u, y, weight, 0))
    assert (value, slope, variance) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("beta", [0.2, 0.65, 0.9, 2.0])
def test_few_rows_take_few_passes_to_the_same_optimum(rng, monkeypatch, beta):
    u = 2 * rng.normal(size=(500, 10))
    y = (u + rng.gumbel(size=u.shape)).argmax(axis=1)
    u /= beta
    exact = solved_in_double(u, y, np.ones(500))
    passes = []
    moments = temperature.long_row_moments
    monkeypatch.setattr(
        temperature, "long_row_moments", lambda x, b: passes.append(b) or moments(x, b)
    )
    found = temperature.log_inverse_temperature(ArraySample(u, y, np.ones(500)))
    assert found.parameters[0] == pytest.approx(exact.parameters[0], abs=1e-10)
    assert found.objective == pytest.approx(exact.objective, abs=1e-13)
    assert len(passes) <= (2 if 0.6 < beta < 1 else 4)


def test_a_search_among_few_rows_has_met_the_losses_of_the_scores(data):
    u, y, weight = data
    start = temperature.log_inverse_temperature(ArraySample(u, y, weight)).start
    losses = -log_softmax(u)[np.arange(len(y)), y]
    assert start.loss == pytest.approx(np.average(losses, weights=weight), rel=1e-13)
    assert start.largest == pytest.approx(losses.max(), rel=1e-13)


def test_two_points_with_third_derivatives_know_a_slope_of_the_fifth_degree():
    slope = np.polynomial.Polynomial([0.3, 1.0, 0.2, -0.1, 0.05, 0.02])

    def point(t):
        third = slope.deriv(2)(t)
        return temperature.Point(slope.integ()(t), slope(t), slope.deriv()(t), third)

    now, before = point(-0.25), (0.1, point(0.1))
    terms = temperature._slope_terms(-0.25, now, before, 0.0)
    step = temperature._root(now, terms)
    assert slope(-0.25 + step) == pytest.approx(0.0, abs=1e-14)
    assert now.value + temperature._rise(step, now, terms) == pytest.approx(
        slope.integ()(-0.25 + step), rel=1e-13
    )
