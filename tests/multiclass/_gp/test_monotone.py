"""Latent means that increase."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import draw_labels
from calibrant.multiclass._gp.bound import DiagonalResidual, ScaledRows, SparseBound
from calibrant.multiclass._gp.kernel import InducingInputs, Kernel
from calibrant.multiclass._gp.monotone import (
    _BarrierBound,
    certified_slopes,
    fit_increasing,
    min_slope,
)
from calibrant.multiclass._gp.scores import ScoreSummary, standardize, summarize_scores
from calibrant.multiclass._gp.search import fit_evidence


def finite_difference(function, at, step=1e-6):
    return np.array(
        [(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(len(at))]
    )


def barrier_at(packed: np.ndarray, rows: ScaledRows) -> _BarrierBound:
    bound = SparseBound(rows, InducingInputs(Kernel(*np.exp(packed[:3])), packed[3:]))
    return _BarrierBound(bound, np.linspace(-2, 2, 50), 3.0)


@pytest.fixture
def summary(rng) -> ScoreSummary:
    """Labels that favour middling scores over high ones: the best latent function falls."""
    u = 2 * rng.normal(size=(300, 4))
    latent = -((u - 0.5) ** 2)
    proba = np.exp(latent) / np.exp(latent).sum(axis=1, keepdims=True)
    return summarize_scores(standardize(u, draw_labels(proba, rng=rng), np.ones(300)))


def true_slope(summary: ScoreSummary, inducing: InducingInputs, mean: np.ndarray) -> float:
    grid = np.linspace(summary.low, summary.high, 200_001)
    return float(1 + (inducing.slopes(grid) @ mean).min() / summary.rows.scale)


def test_gradients_with_the_barrier_match_finite_differences(rng):
    rows = ScaledRows(2 * rng.normal(size=(20, 3)), rng.integers(3, size=20), np.ones(20), 0.1, 1.4)
    packed = np.concatenate([np.log([0.5, 1.3, 0.05]), [-1.5, 0.0, 1.4]])
    barrier, mean = barrier_at(packed, rows), np.array([0.3, -0.2, 0.1])
    point = barrier.at(mean)
    np.testing.assert_allclose(
        barrier.gradient(point), finite_difference(lambda m: barrier.at(m).value, mean), atol=1e-7
    )
    expected = finite_difference(lambda p: barrier_at(p, rows).at(mean).value, packed)
    np.testing.assert_allclose(barrier.outer_gradient(point), expected, atol=1e-6)


def test_the_metric_holds_the_curvature_of_the_barrier(rng):
    rows = ScaledRows(2 * rng.normal(size=(20, 3)), rng.integers(3, size=20), np.ones(20), 0.1, 1.4)
    barrier = barrier_at(np.concatenate([np.log([0.5, 1.3, 0.05]), [-1.5, 0.0, 1.4]]), rows)
    point = barrier.at(np.array([0.3, -0.2, 0.1]))
    scaled = barrier.slopes / barrier.slack(point.mean)[:, None]
    precision = np.linalg.inv(point.covariance) + barrier.strength * scaled.T @ scaled
    np.testing.assert_allclose(point.metric, np.linalg.inv(precision), rtol=1e-9)


def test_outside_of_the_domain_the_value_is_minus_infinity(rng):
    rows = ScaledRows(2 * rng.normal(size=(20, 3)), rng.integers(3, size=20), np.ones(20))
    barrier = barrier_at(np.concatenate([np.log([0.5, 1.3, 0.05]), [-1.5, 0.0, 1.4]]), rows)
    assert barrier.at(np.array([9.0, -9.0, 9.0])).value == -np.inf


def test_the_certified_slope_is_below_the_true_one(rng):
    for _ in range(20):
        kernel = Kernel(float(rng.exponential(10)), float(0.1 + rng.random()), 1e-6)
        prior, mean = InducingInputs(kernel, rng.normal(size=6)), rng.normal(size=6)
        slopes = certified_slopes(prior, -3.0, 3.0, 1.3, float(np.linalg.norm(mean)))
        dense = 1 + (prior.slopes(np.linspace(-3, 3, 100_001)) @ mean).min() / 1.3
        assert slopes.floor(mean) <= dense
        assert slopes.floor(mean) > dense - 0.01 - 0.01 * abs(
            dense
        )  # not by more than the grid is made for


def test_the_bound_on_the_third_derivative_holds(rng):
    kernel = Kernel(2.0, 0.7, 1e-6)
    prior, x, step = InducingInputs(kernel, rng.normal(size=8)), np.linspace(-4, 4, 4001), 1e-3
    second_difference = (
        prior.slopes(x + step) - 2 * prior.slopes(x) + prior.slopes(x - step)
    ) / step**2
    for _ in range(20):
        mean = rng.normal(size=8)
        largest = np.abs(second_difference @ mean).max()
        assert (
            largest <= np.linalg.norm(mean) * (15 * kernel.variance) ** 0.5 / kernel.lengthscale**3
        )


def test_the_latent_mean_increases_on_the_whole_range(summary):
    free = fit_evidence(summary, lambda inducing: SparseBound(summary.rows, inducing), n_inducing=8)
    found = fit_increasing(summary, DiagonalResidual, n_inducing=8)
    assert true_slope(summary, free.inducing, free.point.mean) < -1  # the constraint is needed
    assert true_slope(summary, found.inducing, found.point.mean) >= min_slope(summary.rows.scale)
    assert found.solution.objective > free.solution.objective
    untouched = SparseBound(summary.rows, found.inducing).at(np.zeros(8))
    assert found.point.value > untouched.value + 20  # and yet it pays


def test_a_mean_that_increases_anyway_is_left_alone(rng):
    u = 3 * rng.normal(size=(300, 4))
    proba = np.exp(u / 2) / np.exp(u / 2).sum(axis=1, keepdims=True)
    summary = summarize_scores(standardize(u, draw_labels(proba, rng=rng), np.ones(300)))
    free = fit_evidence(summary, lambda inducing: SparseBound(summary.rows, inducing), n_inducing=5)
    found = fit_increasing(summary, DiagonalResidual, n_inducing=5)
    assert true_slope(summary, free.inducing, free.point.mean) > 0.1
    np.testing.assert_array_equal(found.point.mean, free.point.mean)
