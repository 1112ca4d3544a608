from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample, LazyRows
from calibrant._kernels.simplex import log_softmax
from calibrant._optim.fit import fit_map
from calibrant._optim.maps import AffineMap, DiagonalMap
from calibrant._optim.penalties import no_penalty, off_diagonal_and_intercept, ridge_to_zero
from calibrant._optim.solution import Outcome


@pytest.fixture
def data(rng):
    u = rng.normal(size=(400, 3))
    y = (u @ np.diag([1.0, 2.0, 0.5]) + [0.0, 0.3, -0.3] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    return u, y, rng.random(400) + 0.1


@pytest.mark.parametrize("score_map", [DiagonalMap(3), AffineMap(3)], ids=lambda m: str(m.shape))
def test_the_gradient_vanishes_at_the_fit(score_map, data):
    u, y, weight = data
    solution = fit_map(score_map, ArraySample(*data), no_penalty(score_map.shape))
    residual = np.exp(log_softmax(score_map.apply(solution.parameters, u)))
    residual[np.arange(len(y)), y] -= 1
    gradient = score_map.pullback(residual * (weight / weight.sum())[:, None], u)
    assert solution.converged
    assert solution.parameters.shape == score_map.shape
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


def test_the_smaller_family_is_no_better(data):
    few, many = (
        fit_map(m, ArraySample(*data), no_penalty(m.shape)) for m in (DiagonalMap(3), AffineMap(3))
    )
    assert many.objective <= few.objective + 1e-12


def test_a_start_at_the_optimum_stays_there(data):
    first = fit_map(AffineMap(3), ArraySample(*data), ridge_to_zero(0.1, 3))
    again = fit_map(AffineMap(3), ArraySample(*data), ridge_to_zero(0.1, 3), start=first.parameters)
    assert again.n_iter <= 2
    np.testing.assert_allclose(again.parameters, first.parameters, atol=1e-8)


def test_rows_that_are_lifted_on_demand_give_the_same_fit(data):
    u, y, weight = data
    lazy = LazyRows(u / 2, lambda scores: 2 * scores)
    penalty = off_diagonal_and_intercept(0.01, 0.01, 3)
    np.testing.assert_allclose(
        fit_map(AffineMap(3), ArraySample(lazy, y, weight), penalty).parameters,
        fit_map(AffineMap(3), ArraySample(u, y, weight), penalty).parameters,
        atol=1e-9,
    )


class CountedSample(ArraySample):
    """Rows that know how often they were added up."""

    n_passes = 0

    def sum_chunks(self, function):
        CountedSample.n_passes += 1
        return super().sum_chunks(function)

    def map(self, function):
        changed = super().map(function)
        return CountedSample(changed.u, changed.y, changed.weight, changed.start)


@pytest.mark.parametrize("score_map", [DiagonalMap(3), AffineMap(3)], ids=lambda m: str(m.shape))
def test_rows_that_are_too_many_to_be_kept_take_half_the_passes(score_map, data, monkeypatch):
    found = []
    for keep in (10**6, 0):
        monkeypatch.setattr("calibrant._optim.objective.WORK_MEMORY", keep)
        monkeypatch.setattr(CountedSample, "n_passes", 0)
        solution = fit_map(score_map, CountedSample(*data), no_penalty(score_map.shape))
        found.append((solution.parameters, CountedSample.n_passes))
    (kept, many), (made_anew, few) = found
    np.testing.assert_allclose(made_anew, kept, atol=1e-7)
    assert few <= many / 2


def test_a_class_without_rows_is_told_unless_every_parameter_is_penalised(data):
    u, y, weight = data
    y = np.where(y == 2, 0, y)
    free = fit_map(AffineMap(3), ArraySample(u, y, weight), off_diagonal_and_intercept(0.1, 0.1, 3))
    assert free.outcome is Outcome.MISSING_CLASS
    assert fit_map(AffineMap(3), ArraySample(u, y, weight), ridge_to_zero(0.1, 3)).converged


def test_little_work_is_reported_as_a_limit(data):
    cut = fit_map(
        AffineMap(3), ArraySample(*data), no_penalty((3, 4)), start=np.zeros((3, 4)), max_work=1
    )
    assert cut.outcome is Outcome.ITERATION_LIMIT
