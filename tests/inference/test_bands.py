from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.datasets import draw_labels
from calibrant.inference._bands import binomial_band, resampled_band
from calibrant.metrics import calibration_curve
from calibrant.notions import as_notion


def table_of(proba, y, **options):
    return calibration_curve(y, proba, **options)


def test_the_binomial_band_is_that_of_scipy():
    table = table_of(np.full(40, 0.7), [1] * 40, notion="class-1", n_bins=4)
    low, high = binomial_band(table, 0.9)
    assert low[0, 2] == binom.ppf(0.05, 40, 0.7) / 40
    assert high[0, 2] == binom.ppf(0.95, 40, 0.7) / 40


def test_empty_bins_have_no_band():
    low, high = binomial_band(table_of([0.7, 0.7], [1, 0], notion="class-1", n_bins=4), 0.9)
    assert np.isnan(low[0, [0, 1, 3]]).all()
    assert np.isnan(high[0, [0, 1, 3]]).all()


def test_the_resampled_band_of_equal_scores_is_the_binomial_one():
    score, y = np.full(50, 0.3), np.zeros(50, dtype=int)
    proba = np.column_stack([1 - score, score])
    table = table_of(proba, y, notion="class-1")
    claims = as_notion("class-1").claims(proba, y, np.ones(50))
    exact = binomial_band(table, 0.9)
    drawn = resampled_band(claims, table, 0.9, 20_000, 0)
    # A drawn quantile is off by at most one count if the distribution function is close to the
    # level.
    np.testing.assert_allclose(
        np.array(drawn)[:, 0, 4], np.array(exact)[:, 0, 4], atol=1 / 50 + 1e-12
    )


def test_scores_that_differ_within_a_bin_make_the_resampled_band_no_wider(rng):
    score = np.where(np.arange(400) < 200, 0.01, 0.99)
    proba, y = (
        np.column_stack([1 - score, score]),
        draw_labels(np.column_stack([1 - score, score]), rng=rng),
    )
    table = table_of(proba, y, notion="class-1", n_bins=1)
    claims = as_notion("class-1").claims(proba, y, np.ones(400))
    wide, narrow = binomial_band(table, 0.9), resampled_band(claims, table, 0.9, 500, rng)
    assert np.ptp(narrow, axis=0)[0, 0] < 0.4 * np.ptp(wide, axis=0)[0, 0]


def test_the_binomial_band_takes_weight_two_for_two_rows():
    proba, y = np.full((30, 2), 0.5), np.zeros(30, dtype=int)
    doubled = table_of(proba, y, notion="class-1", sample_weight=np.full(30, 2.0))
    repeated = table_of(np.repeat(proba, 2, axis=0), np.repeat(y, 2), notion="class-1")
    np.testing.assert_array_equal(binomial_band(doubled, 0.8), binomial_band(repeated, 0.8))


@pytest.mark.parametrize("weight", [2.0, 2.5])
def test_the_resampled_band_draws_one_outcome_per_row(weight):
    proba, y, w = np.full((100, 2), 0.5), np.zeros(100, dtype=int), np.full(100, weight)
    table = table_of(proba, y, notion="class-1", sample_weight=w)
    low, high = resampled_band(as_notion("class-1").claims(proba, y, w), table, 0.9, 4000, 0)
    sd = np.sqrt(0.25 / 100)
    place = int(np.flatnonzero(table.weight[0])[0])
    assert (high - low)[0, place] / 2 == pytest.approx(1.645 * sd, rel=0.15)  # counts are discrete


@pytest.mark.parametrize("kind", ["binomial", "resampling"])
def test_calibrated_bins_lie_within_the_band_as_often_as_it_says(kind, rng):
    inside, cells = 0, 0
    for _ in range(60):
        proba = rng.dirichlet([1, 1, 1], 300)
        y = draw_labels(proba, rng=rng)
        table = table_of(proba, y, notion="class-wise", n_bins=5)
        claims = as_notion("class-wise").claims(proba, y, np.ones(300))
        band = (
            binomial_band(table, 0.8)
            if kind == "binomial"
            else resampled_band(claims, table, 0.8, 300, rng)
        )
        used = table.weight > 0
        inside += (
            (table.mean_outcome >= band[0] - 1e-12) & (table.mean_outcome <= band[1] + 1e-12)
        )[used].sum()
        cells += used.sum()
    # Counts are discrete, so the band is conservative. Allow four standard errors below the level.
    assert inside / cells > 0.8 - 4 * np.sqrt(0.16 / cells)
    assert inside / cells < 0.95
