from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference._confidence_gap import confidence_gap


def test_the_gap_is_mean_confidence_minus_accuracy():
    proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.3, 0.7]])
    result = confidence_gap(np.array([0, 0, 0, 1]), proba)
    assert result.estimate == pytest.approx(0.75 - 0.75)
    assert result.low == pytest.approx(-result.high)


def test_a_few_rows_that_are_all_right_are_not_called_underconfident():
    result = confidence_gap(np.zeros(8, dtype=int), np.tile([0.9, 0.1], (8, 1)))
    assert result.low < 0 < result.high


def test_one_row_knows_nothing():
    result = confidence_gap(np.array([1]), np.array([[0.9, 0.1]]))
    assert result.low < 0 < result.high


def test_weights_count_the_effective_number_of_rows(rng):
    proba, y, weight = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40), np.arange(40) % 3
    rows = np.repeat(np.arange(40), weight)
    one, other = confidence_gap(y, proba, weight), confidence_gap(y[rows], proba[rows])
    assert one.estimate == pytest.approx(other.estimate)
    assert one.n_samples == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert one.high - one.low > other.high - other.low
    scaled = confidence_gap(y, proba, weight / weight.sum())
    assert (scaled.low, scaled.high) == pytest.approx((one.low, one.high))
