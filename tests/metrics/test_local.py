from __future__ import annotations

import numpy as np
import pytest

from calibrant.datasets import power_family
from calibrant.metrics import integrated_calibration_index, local_gap_quantile
from calibrant.metrics._local import local_rate
from calibrant.metrics.registry import as_metric
from calibrant.notions import Claim

ONE = {"notion": "class-1"}


def claim_of(score, outcome, weight=None):
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, dtype=float)
    return Claim(0, slice(None), np.asarray(score), np.asarray(outcome, dtype=float), weight)


def test_a_quadratic_curve_is_found_exactly():
    score = np.linspace(0.1, 0.9, 101)
    assert np.abs(local_rate(claim_of(score, score**2), score) - score**2).max() < 1e-12


def test_equal_scores_have_the_gap_of_their_mean():
    assert integrated_calibration_index([1, 1, 0, 1], [0.8] * 4, **ONE) == pytest.approx(0.05)


def test_one_row_has_the_gap_to_its_outcome():
    assert integrated_calibration_index([1], [0.8], **ONE) == pytest.approx(0.2)


def test_the_indices_come_near_the_true_gaps():
    data = power_family(20_000, 2.0, rng=0)  # gaps s - s^2 at uniform s
    gaps = np.linspace(0, 1, 100_001)
    gaps = gaps - gaps**2
    assert integrated_calibration_index(data.labels, data.proba, **ONE) == pytest.approx(
        gaps.mean(), abs=0.01
    )
    for name, quantile in (("e50", 0.5), ("e90", 0.9)):
        result = as_metric(name)(data.labels, data.proba, **ONE)
        assert result == pytest.approx(np.quantile(gaps, quantile), abs=0.01)


def test_the_curve_stays_a_probability(rng):
    score = rng.random(50)
    rate = local_rate(claim_of(score, rng.random(50) < 0.02), np.linspace(0, 1, 30))
    assert rate.min() >= 0
    assert rate.max() <= 1


def test_weights_are_copies_and_rows_of_weight_zero_are_absent(rng):
    p, y = rng.random(40).round(1), rng.integers(0, 2, 40)
    weight = rng.integers(0, 3, 40)
    for metric in (integrated_calibration_index, local_gap_quantile):
        weighted = metric(y, p, sample_weight=weight, **ONE)
        assert weighted == pytest.approx(metric(y.repeat(weight), p.repeat(weight), **ONE))


def test_quantiles_grow_to_the_largest_gap(rng):
    p, y = rng.random(60), rng.integers(0, 2, 60)
    result = [local_gap_quantile(y, p, quantile=q, **ONE) for q in (0.1, 0.5, 0.9, 1.0)]
    assert result == sorted(result)


@pytest.mark.parametrize(("name", "value"), [("span", 0.0), ("span", 1.5), ("quantile", -0.1)])
def test_shares_outside_their_range_are_rejected(name, value):
    with pytest.raises(ValueError, match=f"{name} must be above 0 and at most 1"):
        local_gap_quantile([0, 1], [0.2, 0.8], **{name: value})
