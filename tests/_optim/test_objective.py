"""Gradients, Hessians and their products against finite differences; blocks and precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from calibrant._data.sample import ArraySample, LazyRows
from calibrant._kernels.simplex import log_softmax
from calibrant._optim.maps import AffineMap, DiagonalMap
from calibrant._optim.objective import Objective
from calibrant._optim.penalties import (
    diagonal_ridge_to_identity,
    no_penalty,
    off_diagonal_and_intercept,
    ridge_to_identity,
    ridge_to_zero,
)

K = 4
CASES = {
    "diagonal": (DiagonalMap(K), no_penalty((2, K))),
    "diagonal, ridge to the identity": (DiagonalMap(K), diagonal_ridge_to_identity(0.3, 0.2, K)),
    "affine": (AffineMap(K), no_penalty((K, K + 1))),
    "affine, off-diagonal and intercept": (AffineMap(K), off_diagonal_and_intercept(0.1, 0.2, K)),
    "affine, ridge to zero": (AffineMap(K), ridge_to_zero(0.1, K)),
    "affine, ridge to the identity": (AffineMap(K), ridge_to_identity(0.1, 0.4, 0.2, K)),
}


@pytest.fixture
def data(rng):
    u = log_softmax(rng.normal(scale=2, size=(60, K)))
    return u, rng.integers(K, size=60), rng.random(60) + 0.1


@pytest.fixture(params=CASES)
def case(request, data, rng):
    score_map, penalty = CASES[request.param]
    theta = score_map.identity() + 0.3 * rng.normal(size=score_map.shape)
    return Objective(score_map, penalty, ArraySample(*data)), theta


def test_the_value_is_the_weighted_mean_log_loss_plus_the_penalty(case, data):
    objective, theta = case
    u, y, weight = data
    log_proba = log_softmax(objective.map.apply(theta, u))
    by_hand = -np.average(log_proba[np.arange(60), y], weights=weight) + objective.penalty.value(
        theta
    )
    assert objective.value_and_gradient(theta)[0] == pytest.approx(by_hand, abs=1e-14)


def test_the_gradient_is_that_of_finite_differences(case):
    objective, theta = case

    def value(flat):
        return objective.value_and_gradient(flat.reshape(theta.shape))[0]

    numeric = approx_fprime(theta.ravel(), value, 1e-6).reshape(theta.shape)
    np.testing.assert_allclose(objective.value_and_gradient(theta)[1], numeric, atol=2e-6)


def test_the_hessian_product_is_that_of_finite_differences(case, rng):
    objective, theta = case
    direction = rng.normal(size=theta.shape)
    step = 1e-5 * direction
    ahead, behind = (objective.value_and_gradient(theta + s)[1] for s in (step, -step))
    np.testing.assert_allclose(
        objective.hessian_product(theta, direction), (ahead - behind) / 2e-5, atol=1e-8
    )


def test_the_whole_hessian_and_its_products_agree(case, rng):
    objective, theta = case
    direction = rng.normal(size=theta.shape)
    whole = (
        objective.hessian(theta) @ direction.ravel()
        + (objective.penalty.hessian_diagonal * direction).ravel()
    )
    np.testing.assert_allclose(
        objective.hessian_product(theta, direction).ravel(), whole, atol=1e-12
    )


def test_the_solver_of_few_parameters_inverts_the_hessian(case):
    objective, theta = case
    _, gradient = objective.value_and_gradient(theta)
    # Only what the data determine can be compared: the gradient lies in the range of the Hessian.
    back = objective.hessian_product(theta, objective.solver(theta)(gradient))
    np.testing.assert_allclose(back, gradient, atol=1e-7)


@pytest.mark.parametrize(
    "name", ["diagonal, ridge to the identity", "affine, off-diagonal and intercept"]
)
def test_the_solver_of_many_parameters_inverts_the_blocks_of_the_hessian(name, data, monkeypatch):
    monkeypatch.setattr("calibrant._optim.objective.FEW_PARAMETERS", 1)
    score_map, penalty = CASES[name]
    objective, theta = Objective(score_map, penalty, ArraySample(*data)), score_map.identity()
    whole = objective.hessian(theta) + np.diag(penalty.hessian_diagonal.ravel())
    index = np.arange(whole.shape[0]).reshape(score_map.shape)
    gradient = objective.value_and_gradient(theta)[1]
    solved = objective.solver(theta)(gradient)
    for group in index if score_map.shape[0] == K else index.T:  # the parameters of one class
        block = whole[np.ix_(group, group)]
        np.testing.assert_allclose(
            block @ solved.ravel()[group], gradient.ravel()[group], atol=1e-5
        )  # float32 sums


def test_directions_without_effect_are_recognised(case, data):
    objective, theta = case
    gauged = objective.gauged(theta)
    u = data[0]
    before, after = (log_softmax(objective.map.apply(t, u)) for t in (theta, gauged))
    np.testing.assert_allclose(after, before, atol=1e-12)
    assert objective.penalty.value(gauged) <= objective.penalty.value(theta) + 1e-12
    direction = objective.in_gauge(theta)
    np.testing.assert_allclose(objective.gauged(gauged + direction), gauged + direction, atol=1e-12)


@pytest.mark.parametrize("keep", [10**9, 1])
def test_blocks_and_copies_change_nothing(case, data, monkeypatch, keep, rng):
    objective, theta = case
    value, gradient = objective.value_and_gradient(theta)
    direction = rng.normal(size=theta.shape)
    product = objective.hessian_product(theta, direction)
    monkeypatch.setattr("calibrant._optim.objective.WORK_MEMORY", keep)
    again = Objective(objective.map, objective.penalty, ArraySample(*data))
    again._elements = 5 * K
    new_value, new_gradient = again.value_and_gradient(theta)
    assert new_value == pytest.approx(value, abs=1e-14)
    np.testing.assert_allclose(new_gradient, gradient, atol=1e-14)
    np.testing.assert_allclose(again.hessian_product(theta, direction), product, atol=1e-13)


def test_rows_that_are_lifted_on_demand_give_the_same_sums(case, data):
    objective, theta = case
    u, y, weight = data
    lazy = Objective(
        objective.map,
        objective.penalty,
        ArraySample(LazyRows(np.exp(u), np.log), y, weight),
    )
    assert lazy.value_and_gradient(theta)[0] == pytest.approx(
        objective.value_and_gradient(theta)[0], abs=1e-14
    )
