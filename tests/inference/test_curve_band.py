"""The simultaneous band of the calibration curve."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from calibrant.inference import calibration_band


def drawn(rng, n_rows, power):
    """Scores, and outcomes whose probability is a power of the score."""
    score = rng.random(n_rows)
    return score, (rng.random(n_rows) < score**power).astype(int)


def test_the_band_of_one_group_is_the_interval_of_its_frequency():
    band = calibration_band([1, 0, 0, 0], [0.3] * 4, notion="class-1")
    low, high = beta.ppf([0.025, 0.975], [1, 2], [4, 3])
    assert (band.low[0], band.high[0]) == pytest.approx((low, high))


@pytest.mark.parametrize("n_rows", [30, 300, 3000])
def test_the_band_contains_the_whole_curve_with_the_stated_probability(rng, n_rows):
    grid, missed = np.linspace(0.001, 0.999, 200), 0
    for _ in range(40):
        score, outcome = drawn(rng, n_rows, 1.5)
        low, high = calibration_band(outcome, score, notion="class-1")(grid)
        missed += bool((low > grid**1.5).any() or (high < grid**1.5).any())
    assert missed <= 6  # 0.05 and three standard errors


def test_the_band_finds_miscalibration_and_narrows_with_rows(rng):
    few, many = (
        calibration_band(*drawn(rng, n, 1.5)[::-1], notion="class-1") for n in (200, 20_000)
    )
    assert many.excludes_calibration
    assert not calibration_band(*drawn(rng, 2000, 1.0)[::-1], notion="class-1").excludes_calibration
    grid = np.linspace(0.1, 0.9, 50)
    widths = [np.mean(band(grid)[1] - band(grid)[0]) for band in (few, many)]
    assert widths[1] < widths[0] / 3
    assert "excludes calibration" in str(many)


def test_the_band_increases_and_ties_stay_together(rng):
    score, outcome = drawn(rng, 500, 1.0)
    band = calibration_band(outcome, np.round(score, 1), notion="class-1", n_groups=50)
    assert len(band.low) == 11
    np.testing.assert_array_equal(band.start, band.stop)
    assert (np.diff(band.low) >= 0).all()
    assert (np.diff(band.high) >= 0).all()


def test_outside_of_the_scores_nothing_is_known_beyond_monotonicity():
    band = calibration_band([0, 1] * 50, [0.5] * 100, notion="class-1")
    low, high = band([0.4, 0.6])
    assert (low[0], high[1]) == (0.0, 1.0)
    assert low[1] > 0.3
    assert high[0] < 0.7


def test_one_claim_and_equal_weights_are_needed(rng):
    proba = rng.dirichlet(np.ones(3), 20)
    with pytest.raises(ValueError, match="this function needs exactly one claim"):
        calibration_band(np.arange(20) % 3, proba, notion="class-wise")
    with pytest.raises(ValueError, match=r"A calibration band .* np\.repeat"):
        calibration_band(np.arange(20) % 3, proba, sample_weight=np.arange(1, 21))
    assert calibration_band(np.arange(20) % 3, proba).to_dict()["n_samples"] == 20
