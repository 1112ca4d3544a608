from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant._optim.logistic import fit_logistic, fit_logistics
from calibrant._optim.solution import Outcome


def mean_loss(eta, target, weight):
    return weight @ (np.logaddexp(0, eta) - target * eta) / weight.sum()


@pytest.mark.parametrize("intercept", [True, False])
def test_newton_finds_what_a_general_optimiser_finds(rng, intercept):
    columns, weight = rng.normal(size=(300, 2)) * [1.0, 50.0] + 3.0, rng.exponential(size=300)
    target = rng.random(300)

    def loss(beta):
        return mean_loss(columns @ beta[:2] + (beta[2] if intercept else 0.0), target, weight)

    fit = fit_logistic(columns, target, weight, intercept=intercept)
    best = minimize(
        loss,
        np.zeros(3 if intercept else 2),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "maxiter": 10_000},
    )
    assert fit.outcome is Outcome.CONVERGED
    assert fit.objective <= best.fun + 1e-12
    assert fit.objective == pytest.approx(best.fun, abs=1e-7)  # Nelder-Mead stops early
    assert fit.objective == pytest.approx(
        mean_loss(columns @ fit.parameters[:-1] + fit.parameters[-1], target, weight), abs=1e-14
    )


def test_the_gradient_vanishes_at_the_fit(rng):
    columns, weight = rng.normal(size=(200, 2)), rng.exponential(size=200)
    target = (rng.random(200) < 0.3).astype(float)
    fit = fit_logistic(columns, target, weight)
    error = weight * (
        1 / (1 + np.exp(-(columns @ fit.parameters[:-1] + fit.parameters[-1]))) - target
    )
    np.testing.assert_allclose(np.column_stack([columns, np.ones(200)]).T @ error, 0, atol=1e-9)


@pytest.mark.parametrize("rate", [1e-2, 1e-4, 1e-6])
def test_rare_outcomes_are_not_taken_for_separable(rate):
    fit = fit_logistic(np.zeros((1, 1)), np.array([rate]), np.ones(1))
    assert fit.outcome is Outcome.CONVERGED
    assert 1 / (1 + np.exp(-fit.parameters[-1])) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(
    ("column", "target"),
    [
        ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1]),  # complete
        ([-2.0, 0.0, 2.0], [0, 0.5, 1]),  # complete but for one tied group
        ([-2.0, 0.0, 2.0], [1, 1, 1]),  # only one outcome
        ([-1e-3, 1e-3, 500.0], [0, 1, 1]),
    ],
)
def test_separation_is_recognised_and_ends_at_finite_values(column, target):
    fit = fit_logistic(
        np.array(column)[:, None], np.array(target, dtype=float), np.ones(len(column))
    )
    assert fit.outcome is Outcome.SEPARABLE
    assert np.isfinite(fit.parameters[:-1]).all()
    assert np.isfinite(fit.parameters[-1])


def test_a_fit_that_is_cut_short_says_so(rng, monkeypatch):
    monkeypatch.setattr("calibrant._optim.logistic._MAX_ITER", 2)
    fit = fit_logistic(rng.normal(size=(50, 1)), rng.random(50) ** 4, np.ones(50))
    assert fit.outcome is Outcome.ITERATION_LIMIT


def test_a_constant_column_gets_no_coefficient():
    column = np.full((4, 1), 0.3)
    fit = fit_logistic(column, np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4))
    assert fit.parameters[:-1].tolist() == [0.0]
    assert fit.parameters[-1] == pytest.approx(np.log(3))


def test_of_two_equal_columns_each_gets_half(rng):
    column, target = rng.normal(size=50), rng.random(50)
    one = fit_logistic(column[:, None], target, np.ones(50))
    two = fit_logistic(np.column_stack([column, column]), target, np.ones(50))
    np.testing.assert_allclose(two.parameters[:-1], one.parameters[0] / 2, rtol=1e-9)


def test_without_columns_the_intercept_is_the_log_odds_of_the_rate():
    fit = fit_logistic(np.empty((4, 0)), np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4))
    assert fit.parameters[-1] == pytest.approx(-np.log(3))


@pytest.mark.parametrize("intercept", [True, False])
def test_claims_that_are_fitted_together_are_fitted_as_alone(rng, intercept):
    columns, weight = rng.normal(size=(2, 4, 300)), rng.exponential(size=300)
    target = (rng.random((4, 300)) < [[0.5], [0.2], [0.9], [0.01]]).astype(float)
    target[3] = columns[0, 3] > 0  # separable beside others that are not
    together = fit_logistics(list(columns), target, weight, intercept=intercept)
    for j, found in enumerate(together):
        alone = fit_logistic(columns[:, j].T, target[j], weight, intercept=intercept)
        assert found.outcome is alone.outcome
        np.testing.assert_allclose(found.parameters, alone.parameters, rtol=1e-9, atol=1e-12)


def test_many_rows_start_from_a_part_and_end_where_others_do(rng, monkeypatch):
    column = rng.normal(size=(8000, 1))
    target = (rng.random(8000) < 1 / (1 + np.exp(1.0 - 2.0 * column[:, 0]))).astype(float)
    warm = fit_logistic(column, target, np.ones(8000))
    monkeypatch.setattr("calibrant._optim.logistic._WARM_FROM", 10**9)
    cold = fit_logistic(column, target, np.ones(8000))
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.parameters, cold.parameters, rtol=1e-10)


def test_few_outcomes_among_many_rows_end_where_no_rows_are_left_out(rng, monkeypatch):
    columns, target = rng.normal(size=(6000, 2)), (rng.random(6000) < 0.01).astype(float)
    fit = fit_logistic(columns, target, np.ones(6000))
    monkeypatch.setattr("calibrant._optim.logistic._WARM_FROM", 10**6)
    cold = fit_logistic(columns, target, np.ones(6000))
    assert fit.n_iter < cold.n_iter
    np.testing.assert_allclose(fit.parameters, cold.parameters, atol=1e-9)
    assert fit.objective <= cold.objective + 1e-15


@pytest.mark.parametrize("columns", ["equal", "constant", "good", "wrong"])
def test_where_a_search_among_many_rows_begins_does_not_matter(rng, monkeypatch, columns):
    odds = rng.normal(size=8_000) - 4.0
    target = (rng.random(8_000) < 1 / (1 + np.exp(-odds))).astype(float)
    given = {
        "equal": [odds, odds],
        "constant": [odds, np.full(8_000, 2.0)],
        "good": [2 * odds, odds**2],
        "wrong": [-3 * odds, odds],
    }[columns]
    many = fit_logistic(np.stack(given, axis=1), target, np.ones(8_000))
    monkeypatch.setattr("calibrant._optim.logistic._WARM_FROM", 10_000)
    plain = fit_logistic(np.stack(given, axis=1), target, np.ones(8_000))
    np.testing.assert_allclose(many.parameters, plain.parameters, atol=1e-9)
    assert many.objective == pytest.approx(plain.objective, abs=1e-14)
