"""Counts of rows that can be answered: equal to a plain implementation, and valid."""

import numpy as np
import pytest

import plain_walk
from calibrant.decisions import _boundary
from calibrant.decisions._boundary import boundary_of
from calibrant.decisions._proof import count_proved


def _errors(rng, n, risk):
    """Errors whose rate increases as confidence falls, to a random multiple of the risk."""
    rate = np.linspace(0, 1, n) ** rng.uniform(0.2, 3) * risk * rng.uniform(0, 5)
    return rng.random(n) < rate


@pytest.mark.parametrize("risk", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_fast_count_equals_the_plain_count(rng, risk, delta):
    for n in (60, 150, 150, 150, 300, 300):
        errors, is_end = _errors(rng, n, risk), rng.random(n) < 0.7
        assert count_proved(errors, is_end, risk, delta) == plain_walk.count_proved(
            errors, is_end, risk, delta
        )


def test_the_carried_level_proves_more_rows_than_the_boundary(rng):
    gains = []
    for _ in range(40):
        errors = _errors(rng, 400, 0.1)
        below = np.flatnonzero(np.cumsum(errors) <= boundary_of(400, 0.1, 0.1).allowed)
        alone = below[-1] + 1 if below.size else 0
        gains.append(count_proved(errors, np.ones(400, bool), 0.1, 0.1) - alone)
    assert min(gains) == 0
    assert max(gains) > 10


def test_cells_prove_nearly_as_many_rows_as_single_ranks(rng, monkeypatch):
    errors, is_end = rng.random(3000) < np.linspace(0, 0.15, 3000), np.ones(3000, bool)
    dense = count_proved(errors, is_end, 0.05, 0.1)
    monkeypatch.setattr(_boundary, "MOST_DENSE", 1000)
    boundary_of.cache_clear()
    in_cells = count_proved(errors, is_end, 0.05, 0.1)
    boundary_of.cache_clear()
    assert abs(in_cells - dense) < 0.02 * 3000


def test_only_the_end_of_equal_scores_counts():
    errors, is_end = np.zeros(200, bool), np.zeros(200, bool)
    is_end[[99, 149]] = True
    assert count_proved(errors, is_end, 0.05, 0.1) == 150
    assert count_proved(errors, np.zeros(200, bool), 0.05, 0.1) == 0


def test_no_rows_and_only_errors_prove_nothing():
    assert count_proved(np.ones(100, bool), np.ones(100, bool), 0.1, 0.1) == 0
    assert count_proved(np.zeros(0, bool), np.zeros(0, bool), 0.1, 0.1) == 0


def _constant(n, risk, rng):
    return np.full(n, risk * 1.0001)


def _late_errors(n, risk, rng):
    """No errors in the surest half, then as many that the total rate is above the risk."""
    return np.where(np.sort(rng.random(n)) < 0.5, 0.0, 2.0 * risk)


@pytest.mark.parametrize("shape", [_constant, _late_errors])
def test_the_risk_is_exceeded_in_at_most_delta_of_the_samples(rng, shape):
    # Both rates put every rank, or every rank after the crossing, above the risk.
    n, risk, n_wrong, n_draws = 200, 0.1, 0, 1000
    for _ in range(n_draws):
        rates = shape(n, risk, rng)
        count = count_proved(rng.random(n) < rates, np.ones(n, bool), risk, 0.1)
        n_wrong += count > 0 if shape is _constant else count == n
    assert n_wrong / n_draws <= 0.1 + 3 * np.sqrt(0.09 / n_draws)
