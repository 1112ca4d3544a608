"""Intervals of mean gaps: sums that merge, widths, coverage at all times."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._sequences import GapSums, half_width, sum_gaps
from calibrant.notions import ClaimBlock, as_notion


def test_no_rows_say_nothing():
    assert half_width(GapSums.zeros(2), 0.05).tolist() == [1.0, 1.0]


def test_sums_of_a_notion_that_splits_are_those_of_its_rows(rng):
    proba, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    sums = sum_gaps(as_notion("top-label").select(proba, y), np.zeros(3), 3)
    top = proba.argmax(axis=1)
    assert sums.count.tolist() == np.bincount(top, minlength=3).tolist()
    residual = (y == top) - proba.max(axis=1)
    np.testing.assert_allclose(sums.residual, np.bincount(top, residual, 3), atol=1e-13)


def test_a_prediction_stays_within_what_the_residual_can_be():
    block = ClaimBlock(np.array([[0.9]]), None, np.array([], dtype=int))
    # Said 0.9, did not happen; expected +0.5, of which only +0.1 can be.
    assert sum_gaps(block, np.array([0.5]), 1).variance[0] == pytest.approx(1.0, abs=1e-15)


def test_b5_at_five_thousand_rows_it_is_at_most_twice_as_wide_as_for_a_fixed_sample():
    variance = 5000 * 0.03  # of a network's top claim
    sums = GapSums(np.array([5000.0]), np.zeros(1), np.array([variance]))
    fixed = 1.96 * np.sqrt(variance) / 5000
    assert fixed < half_width(sums, 0.05)[0] <= 2 * fixed


@pytest.mark.slow
def test_b5_intervals_cover_the_mean_gap_at_all_times_together(rng):
    n_runs, n_blocks, size = 400, 100, 50
    missed = np.zeros(n_runs, dtype=bool)
    sums, true = GapSums.zeros(n_runs), np.zeros(n_runs)
    for t in range(n_blocks):
        score = rng.beta(6, 1, (size, n_runs))
        truth = np.clip(score - 0.04 * (t > 50), 0, 1)
        hit = np.flatnonzero((rng.random(score.shape) < truth).ravel())
        sums = sums + sum_gaps(ClaimBlock(score, None, hit), sums.mean, 1)
        true += (truth - score).sum(axis=0)
        off = np.abs(sums.mean - true / sums.count)
        missed |= off > half_width(sums, 0.05)
    assert missed.mean() <= 0.05
