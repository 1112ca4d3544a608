"""Draws of outcomes that are nearly certain."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference._small_counts import NullDraws
from calibrant.notions import Claim


def few_counts(rng, n_rows):
    """Scores near 0 and 1 with ties, and weights."""
    score = np.round(rng.beta(0.3, 0.3, n_rows), 1)
    return Claim(0, slice(None), score, rng.random(n_rows) < score, rng.random(n_rows) + 0.5)


def test_draws_of_the_null_are_statistics_of_drawn_outcomes(rng):
    claim = few_counts(rng, 40)
    draws = NullDraws.of_claim(claim, 100)
    low, high = draws.path_ends()
    sums = draws.sums(1 - 2 * draws.score)
    for number in range(100):
        outcome = draws.score > 0.5
        rows = draws.row[draws.draw == number]
        outcome[rows] = ~outcome[rows]
        excess = draws.weight * (outcome - draws.score)
        ends = np.append(np.diff(draws.score) > 0, True)
        path = np.append(0.0, np.cumsum(excess)[ends])
        assert (low[number], high[number]) == pytest.approx((path.min(), path.max()))
        assert sums[number] == pytest.approx(excess @ (1 - 2 * draws.score))


def test_unexpected_outcomes_are_as_frequent_as_scores_imply(rng):
    claim = few_counts(rng, 40)
    draws = NullDraws.of_claim(claim, 20_000)
    rate = np.bincount(draws.row, minlength=40) / 20_000
    np.testing.assert_allclose(rate, np.minimum(draws.score, 1 - draws.score), atol=0.015)
