"""The cutoff calibration error: the maximum over all intervals."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import inference
from calibrant.metrics import cutoff_calibration_error, ks_error


def by_hand(outcome, score):
    """The maximum over all intervals between scores, by brute force."""
    values = np.unique(score)
    return max(
        abs((outcome - score)[(score >= low) & (score <= high)].sum()) / len(score)
        for low in values
        for high in values
    )


@pytest.mark.parametrize("n_rows", [1, 2, 9, 80])
def test_it_is_the_maximum_over_all_intervals(rng, n_rows):
    score = rng.random(n_rows).round(1)
    outcome = rng.random(n_rows) < score**2
    result = cutoff_calibration_error(outcome.astype(int), score, notion="class-1")
    assert result == pytest.approx(by_hand(outcome, score), abs=1e-14)


def test_it_lies_between_the_ks_error_and_twice_that(rng):
    proba = rng.dirichlet(np.ones(5), 100)
    y = rng.integers(0, 5, 100)
    ks, cutoff = ks_error(y, proba), cutoff_calibration_error(y, proba)
    assert ks <= cutoff <= 2 * ks


def test_weight_two_is_the_row_twice_and_zero_the_row_absent(rng):
    proba = rng.dirichlet(np.ones(4), 40)
    y, weight = rng.integers(0, 4, 40), rng.integers(0, 3, 40)
    copies = np.repeat(np.arange(40), weight)
    weighted = cutoff_calibration_error(y, proba, sample_weight=weight)
    assert weighted == pytest.approx(cutoff_calibration_error(y[copies], proba[copies]), abs=1e-14)


def test_it_bounds_what_moving_a_threshold_gains(rng):
    score = rng.random(400)
    outcome = rng.random(400) < score**1.5
    bound = cutoff_calibration_error(outcome.astype(int), score, notion="class-1")
    for t in (0.2, 0.5, 0.8):
        benefit = np.where(outcome, 1 - t, -t)  # benefit of acting if t is the break-even point
        acted = (benefit * (score >= t)).mean()
        best = max((benefit * (score >= other)).mean() for other in np.linspace(0, 1.01, 102))
        assert best - acted <= bound


def test_a_consistency_test_takes_it_by_function(rng):
    proba = rng.dirichlet(np.ones(3), 300)
    y = proba.argmax(axis=1)
    result = inference.consistency_test(y, proba, cutoff_calibration_error, n_resamples=99, rng=0)
    assert result.p_value == 0.01
