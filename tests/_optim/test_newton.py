from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import log_softmax
from calibrant._optim.fit import fit_map
from calibrant._optim.maps import AffineMap, DiagonalMap
from calibrant._optim.newton import minimize
from calibrant._optim.objective import Objective
from calibrant._optim.penalties import (
    no_penalty,
    off_diagonal_and_intercept,
    ridge_to_identity,
    ridge_to_zero,
)
from calibrant._optim.solution import Outcome


def make(rng, n_samples, n_classes):
    z = rng.normal(scale=2, size=(n_samples, n_classes))
    return log_softmax(2 * z), (z + rng.gumbel(size=z.shape)).argmax(axis=1), np.ones(n_samples)


PENALTIES = {
    "odir": lambda k: off_diagonal_and_intercept(1e-3, 1e-3, k),
    "l2": lambda k: ridge_to_zero(1e-3, k),
    "identity": lambda k: ridge_to_identity(0.01, 0.1, 0.01, k),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_the_gradient_vanishes_at_the_solution(name, rng):
    u, y, weight = make(rng, 400, 5)
    objective = Objective(AffineMap(5), PENALTIES[name](5), ArraySample(u, y, weight))
    solution = minimize(objective, AffineMap(5).identity())
    assert solution.outcome is Outcome.CONVERGED
    assert np.abs(objective.value_and_gradient(solution.parameters)[1]).max() < 1e-9


@pytest.mark.parametrize("name", PENALTIES)
def test_many_parameters_by_blocks_reach_the_optimum_of_the_whole_hessian(name, rng, monkeypatch):
    data = make(rng, 400, 5)
    exact = fit_map(AffineMap(5), ArraySample(*data), PENALTIES[name](5))
    monkeypatch.setattr("calibrant._optim.objective.FEW_PARAMETERS", 1)
    blocks = fit_map(AffineMap(5), ArraySample(*data), PENALTIES[name](5))
    assert blocks.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(blocks.parameters, exact.parameters, atol=1e-7)


def test_a_start_changes_the_way_and_not_the_end(rng):
    data = make(rng, 300, 4)
    penalty = off_diagonal_and_intercept(1e-2, 1e-2, 4)
    far = fit_map(AffineMap(4), ArraySample(*data), penalty, start=rng.normal(size=(4, 5)))
    np.testing.assert_allclose(
        far.parameters, fit_map(AffineMap(4), ArraySample(*data), penalty).parameters, atol=1e-8
    )


def test_the_iteration_limit_is_told(rng):
    objective = Objective(AffineMap(4), no_penalty((4, 5)), ArraySample(*make(rng, 300, 4)))
    assert (
        minimize(objective, AffineMap(4).identity(), max_work=1).outcome is Outcome.ITERATION_LIMIT
    )


def test_separable_labels_are_told(rng):
    z = rng.normal(size=(100, 3))
    solution = fit_map(
        AffineMap(3),
        ArraySample(log_softmax(z), z.argmax(axis=1), np.ones(100)),
        off_diagonal_and_intercept(0.1, 0.1, 3),
    )
    assert solution.outcome is Outcome.SEPARABLE
    assert np.isfinite(solution.parameters).all()


def test_a_missing_class_is_told_unless_the_penalty_holds_its_parameters(rng):
    u, _, weight = make(rng, 200, 3)
    y = rng.integers(2, size=200)
    assert (
        fit_map(DiagonalMap(3), ArraySample(u, y, weight), no_penalty((2, 3))).outcome
        is Outcome.MISSING_CLASS
    )
    assert (
        fit_map(AffineMap(3), ArraySample(u, y, weight), ridge_to_zero(0.1, 3)).outcome
        is Outcome.CONVERGED
    )


@pytest.mark.parametrize("name", PENALTIES)
def test_many_classes_by_what_their_blocks_share_reach_the_same_optimum(name, rng, monkeypatch):
    data = make(rng, 400, 5)
    exact = fit_map(AffineMap(5), ArraySample(*data), PENALTIES[name](5))
    monkeypatch.setattr("calibrant._optim.objective.FEW_PARAMETERS", 1)
    monkeypatch.setattr("calibrant._optim.maps.BLOCK_CLASSES", 1)
    shared = fit_map(AffineMap(5), ArraySample(*data), PENALTIES[name](5))
    assert shared.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(shared.parameters, exact.parameters, atol=1e-7)
