"""The threshold between answered and other rows."""

import numpy as np
import pytest

from calibrant.decisions._threshold import find_threshold


def test_the_threshold_is_between_answered_and_other_rows(rng):
    scores = np.linspace(1, 0, 200)
    losses = (np.arange(200) >= 100).astype(float)
    found = find_threshold(scores, losses, 0.05, 0.1, rng)
    assert (scores > found.value).sum() == found.n_answered
    assert 100 <= found.n_answered <= 105
    assert found.n_errors == found.n_answered - 100


def test_all_or_no_rows_have_infinite_thresholds(rng):
    scores = rng.random(100)
    assert find_threshold(scores, np.zeros(100), 0.05, 0.1, rng).value == -np.inf
    nothing = find_threshold(scores, np.ones(100), 0.05, 0.1, rng)
    assert (nothing.value, nothing.n_answered) == (np.inf, 0)


def test_a_threshold_between_neighboring_numbers_separates_them(rng):
    low = 0.5
    high = np.nextafter(low, 1)
    scores = np.r_[np.full(100, high), np.full(100, low)]
    losses = np.r_[np.zeros(100), np.ones(100)]
    found = find_threshold(scores, losses, 0.05, 0.1, rng)
    assert (found.value, found.n_answered) == (low, 100)


def test_equal_scores_are_answered_together_or_not_at_all(rng):
    scores = np.repeat([0.9, 0.8, 0.1], 100)
    losses = np.r_[np.zeros(200), np.ones(100)]
    assert find_threshold(scores, losses, 0.05, 0.1, rng).n_answered == 200


def test_losses_between_0_and_1_keep_their_mean(rng):
    losses = np.full(20_000, 0.25)
    found = find_threshold(rng.random(20_000), losses, 0.3, 0.1, rng)
    assert found.n_answered == 20_000
    assert found.n_errors == pytest.approx(5000, abs=250)
