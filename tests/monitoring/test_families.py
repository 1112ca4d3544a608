"""Factors have a mean of one under the forecast, and of at most one within the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._families import ClaimFamily, TemperatureFamily

FAMILIES = [
    TemperatureFamily(),
    *(ClaimFamily(n) for n in ("confidence", "class-wise", "top-label", "within-top-2")),
]


def expected_factors(family, proba, truth):
    """Mean of every factor (n, C, B) over the classes, with the probabilities ``truth``."""
    total = 0.0
    for k in range(proba.shape[1]):
        factors = np.exp(family.log_factors(proba, np.full(len(proba), k)))
        total = total + truth[:, k, None, None] * factors
    return total


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_mean_factor_of_an_honest_forecast_is_one(rng, family):
    proba = rng.dirichlet(np.full(5, 0.4), 30)
    mean = expected_factors(family, proba, proba)
    assert mean.shape == (30, family.n_claims(5), family.n_bets)
    np.testing.assert_allclose(mean, 1.0, atol=1e-9)


@pytest.mark.parametrize("gap", [-0.05, 0.0, 0.05])
def test_the_mean_factor_is_at_most_one_as_long_as_the_gap_is_within_the_tolerance(gap):
    score = np.linspace(0.05, 0.95, 19)
    proba = np.column_stack([1 - score, score])
    truth = np.column_stack([1 - score - gap, score + gap])
    mean = expected_factors(ClaimFamily("class-1", 0.05), proba, truth)
    assert mean.max() <= 1 + 1e-12
    assert mean.min() > 0


def test_factors_stay_positive_for_certain_forecasts():
    proba = np.array([[1.0, 0.0], [1.0, 0.0]])
    for family in (ClaimFamily("class-1", 0.02), ClaimFamily("class-1"), TemperatureFamily()):
        assert np.isfinite(family.log_factors(proba, np.array([0, 1]))).all()


def test_a_claim_that_is_not_made_wins_nothing(rng):
    proba = np.array([[0.7, 0.2, 0.1]])
    factors = ClaimFamily("top-label").log_factors(proba, np.array([0]))
    assert factors[0, 0].all()
    assert not factors[0, 1:].any()
