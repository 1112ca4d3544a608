from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from calibrant.metrics import calibration_intercept, calibration_slope
from calibrant.metrics._line import shift_at
from calibrant.notions import Claim

ONE = {"notion": "class-1"}


@pytest.fixture
def data(rng):
    """Scores whose log-odds are twice the true ones."""
    odds = rng.normal(size=2000)
    return (rng.random(2000) < expit(odds)).astype(int), expit(2 * odds)


def test_the_slope_is_that_of_logistic_regression(data):
    y, p = data
    fitted = LogisticRegression(C=np.inf, tol=1e-10).fit(logit(p)[:, None], y)
    assert calibration_slope(y, p, **ONE) == pytest.approx(fitted.coef_[0, 0], abs=1e-6)


def test_scores_that_are_twice_too_extreme_have_slope_one_half(data):
    assert calibration_slope(*data, **ONE) == pytest.approx(0.5, abs=0.08)


def test_the_intercept_makes_the_sums_agree(data):
    y, p = data
    shift = calibration_intercept(y, p, **ONE)
    assert expit(logit(p) + shift).sum() == pytest.approx(y.sum(), abs=1e-8)


def test_the_other_class_has_the_same_slope_and_the_opposite_intercept(data):
    y, p = data
    zero = {"notion": "class-0"}
    assert calibration_slope(y, p, **zero) == pytest.approx(calibration_slope(y, p, **ONE))
    expected = -calibration_intercept(y, p, **ONE)
    assert calibration_intercept(y, p, **zero) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 1], [0.5, 0.5]),
        ([1, 1], [0.2, 0.8]),
        ([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),
        ([1], [0.3]),
    ],
)
def test_a_slope_that_the_data_do_not_determine_is_nan(y, p):
    assert np.isnan(calibration_slope(y, p, **ONE))


def test_without_any_outcome_the_intercept_is_infinite():
    assert calibration_intercept([0, 0], [0.5, 0.2], **ONE) == -np.inf
    assert calibration_intercept([1, 1], [0.5, 0.2], **ONE) == np.inf


def test_weights_are_copies(data):
    y, p = (part[:60] for part in data)
    weight = np.arange(60) % 3
    for metric in (calibration_slope, calibration_intercept):
        copied = metric(y.repeat(weight), p.repeat(weight), **ONE)
        assert metric(y, p, sample_weight=weight, **ONE) == pytest.approx(copied)


def test_of_equal_scores_two_shifts_are_the_ends_of_wilsons_interval():
    score, outcome = np.full(20, 0.5), np.arange(20) < 3
    claim = Claim(0, slice(None), score, outcome, np.ones(20))
    z = 1.96
    centre, spread = 0.15 + z**2 / 40, z * np.sqrt(0.15 * 0.85 / 20 + z**2 / 1600)
    ends = [(centre - spread) / (1 + z**2 / 20), (centre + spread) / (1 + z**2 / 20)]
    assert [expit(shift_at(claim, z)), expit(shift_at(claim, -z))] == pytest.approx(ends)


def test_without_any_failure_one_end_is_finite():
    claim = Claim(0, slice(None), np.full(5, 0.5), np.ones(5, dtype=bool), np.ones(5))
    assert np.isfinite(shift_at(claim, 1.96))
    assert shift_at(claim, -1.96) == np.inf
