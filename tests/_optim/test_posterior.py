from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from calibrant._data.sample import ArraySample
from calibrant._optim.posterior import KNOTS, gauss_quadrature, log_temperature_posterior


def sample(rng, n_rows, n_classes=5, scale=2.0, temperature=1.5):
    logits = scale * rng.normal(size=(n_rows, n_classes))
    y = (logits / temperature + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return ArraySample(logits, y, rng.integers(1, 3, size=n_rows).astype(float))


def cauchy(g):
    return -np.log1p(((g - 0.1) / 0.12) ** 2)


def on_a_grid(rows, log_prior, points):
    """The posterior without interpolation, and the logarithm of its integral."""
    log_likelihood = [
        rows.weight @ log_softmax(rows.u * np.exp(-g), axis=1)[np.arange(len(rows.y)), rows.y]
        for g in points
    ]
    log_mass = np.array(log_likelihood) + log_prior(points)
    log_mass[[0, -1]] -= np.log(2)
    return np.exp(log_mass - logsumexp(log_mass)), logsumexp(log_mass) + np.log(
        points[1] - points[0]
    )


@pytest.mark.parametrize("n_rows", [3, 40, 2000])
def test_moments_and_evidence_are_those_of_the_posterior_on_a_fine_grid(rng, n_rows):
    rows = sample(rng, n_rows)
    found = log_temperature_posterior(rows, cauchy, 5)
    points = np.linspace(KNOTS[0], KNOTS[-1], 6001)
    mass, log_evidence = on_a_grid(rows, cauchy, points)
    mean = mass @ points
    assert found.log_evidence == pytest.approx(log_evidence, abs=1e-4)
    assert found.weights @ found.points == pytest.approx(mean, abs=1e-5)
    for power in (2, 3, 4):
        wanted = mass @ (points - mean) ** power
        reached = found.weights @ (found.points - mean) ** power
        assert reached == pytest.approx(wanted, rel=2e-3, abs=1e-9)


def test_a_posterior_that_is_narrower_than_the_knots_is_found(rng):
    rows = sample(rng, 200_000, n_classes=3)
    found = log_temperature_posterior(rows, cauchy, 5)
    spread = np.sqrt(found.weights @ (found.points - found.weights @ found.points) ** 2)
    assert found.weights @ found.points == pytest.approx(np.log(1.5), abs=5 * spread)
    assert 0.001 < spread < 0.01


def test_quadrature_has_the_moments_of_what_it_stands_for(rng):
    points, mass = np.sort(rng.normal(size=300)), rng.random(300)
    found, weights = gauss_quadrature(points, mass, 4)
    assert len(found) == 4
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    for power in range(8):
        wanted = mass @ points**power / mass.sum()
        assert weights @ found**power == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_points", [1, 2, 3])
def test_quadrature_of_few_points_is_these_points(n_points):
    points = np.array([-1.0, 0.5, 2.0])[:n_points]
    found, weights = gauss_quadrature(points, np.full(n_points, 7.0), 5)
    np.testing.assert_allclose(found, points, atol=1e-7)
    np.testing.assert_allclose(weights, 1 / n_points)
