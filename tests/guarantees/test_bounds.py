"""Formulas of bounds, and exact intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from calibrant.guarantees import (
    clopper_pearson,
    multinomial_radius,
)
from calibrant.guarantees._bounds import conditional_bound, expected_bound, marginal_bound


def test_bounds_at_fifty_points_a_bin():
    assert marginal_bound(50, 0.05, 0.0) == pytest.approx(0.194014502)  # sqrt(log 40 / 98)
    assert conditional_bound(100, 50, 0.05, 0.0) == pytest.approx(
        0.290917788
    )  # sqrt(log 4000 / 98)
    assert expected_bound(50, 1e-10) == pytest.approx(0.1 + 1e-10, abs=1e-13)


def test_the_conditional_bound_is_that_of_the_theorem():
    n, k, alpha, delta = 5000, 40, 0.1, 1e-3
    theorem = math.sqrt(math.log(2 * n / (k * alpha)) / (2 * (k - 1))) + delta
    assert conditional_bound(n / k, k, alpha, delta) == pytest.approx(theorem, rel=1e-14)


def test_clopper_pearson_inverts_the_binomial_tails():
    hits, counts, alpha = np.array([1.0, 7.0, 29.0]), np.array([10.0, 20.0, 30.0]), 0.03
    low, high = clopper_pearson(hits, counts, alpha)
    np.testing.assert_allclose(stats.binom.sf(hits - 1, counts, low), alpha / 2, rtol=1e-9)
    np.testing.assert_allclose(stats.binom.cdf(hits, counts, high), alpha / 2, rtol=1e-9)


def test_clopper_pearson_of_nothing_and_of_everything():
    low, high = clopper_pearson(np.array([0.0, 12.0]), np.array([12.0, 12.0]), 0.05)
    assert low[0] == 0.0
    assert high[1] == 1.0
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 12))
    assert low[1] == pytest.approx(0.025 ** (1 / 12))


@given(st.integers(2, 400), st.floats(0, 1), st.floats(1e-6, 0.5), st.integers(1, 1000))
def test_exact_intervals_are_never_wider_than_the_theorem(k, share, alpha, n_bins):
    # Hoeffding's inequality bounds the very tails that Clopper and Pearson invert.
    count = float(k - 1)
    hits = np.array([np.round(share * count)])
    low, high = clopper_pearson(hits, np.array([count]), alpha / n_bins)
    bound = conditional_bound(n_bins, k, alpha, 0.0)
    assert max(high[0] - hits[0] / count, hits[0] / count - low[0]) <= bound + 1e-9


def test_the_radius_of_a_multinomial_is_that_of_bretagnolle_huber_carol():
    radius = multinomial_radius(np.array([100.0]), 3, 0.05)
    assert 2**3 * math.exp(-100 * radius[0] ** 2 / 2) == pytest.approx(0.05)
