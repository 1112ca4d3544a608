from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from calibrant._optim.penalties import (
    QuadraticPenalty,
    diagonal_ridge_to_identity,
    no_penalty,
    off_diagonal_and_intercept,
    ridge_to_identity,
    ridge_to_zero,
)

K = 3
W = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0], [0.5, 0.0, -1.0]])
B = np.array([1.0, -2.0, 0.5])
THETA = np.column_stack([W, B])
OFF = (W**2).sum() - (np.diag(W) ** 2).sum()


@pytest.mark.parametrize(
    ("penalty", "by_hand"),
    [
        (off_diagonal_and_intercept(0.1, 0.2, K), 0.1 * OFF + 0.2 * (B**2).sum()),
        (ridge_to_zero(0.1, K), 0.1 * ((W**2).sum() + (B**2).sum())),
        (
            ridge_to_identity(0.1, 0.4, 0.2, K),
            0.1 * ((np.diag(W) - 1) ** 2).sum() + 0.4 * OFF + 0.2 * (B**2).sum(),
        ),
        (no_penalty((K, K + 1)), 0.0),
    ],
)
def test_penalties_of_affine_maps_are_their_formulas(penalty, by_hand):
    assert penalty.value(THETA) == pytest.approx(by_hand)


def test_the_penalty_of_a_diagonal_map_is_its_formula():
    d, b = np.array([1.5, 1.0, 0.0]), np.array([0.1, 0.0, -0.2])
    penalty = diagonal_ridge_to_identity(0.3, 0.2, K)
    by_hand = 0.3 * ((d - 1) ** 2).sum() + 0.2 * (b**2).sum()
    assert penalty.value(np.stack([d, b])) == pytest.approx(by_hand)


@pytest.mark.parametrize("make", [ridge_to_identity, off_diagonal_and_intercept])
def test_the_identity_costs_nothing(make):
    penalty = make(0.1, 0.4, 0.2, K) if make is ridge_to_identity else make(0.1, 0.4, K)
    assert penalty.value(np.eye(K, K + 1)) == 0.0


def test_gradient_and_curvature_are_those_of_finite_differences(rng):
    penalty = QuadraticPenalty(rng.random((2, 3)), rng.normal(size=(2, 3)))
    theta = rng.normal(size=(2, 3))

    def value(flat):
        return penalty.value(flat.reshape(2, 3))

    def gradient(flat):
        return penalty.gradient(flat.reshape(2, 3)).ravel()

    np.testing.assert_allclose(
        penalty.gradient(theta).ravel(), approx_fprime(theta.ravel(), value), atol=1e-6
    )
    np.testing.assert_allclose(
        np.diag(penalty.hessian_diagonal.ravel()),
        approx_fprime(theta.ravel(), gradient),
        atol=1e-6,
    )
