from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import notion_names
from calibrant.binning import Bins, UniformBins, bin_table, cell_index
from calibrant.inference import _draws
from calibrant.inference._draws import (
    CellDraws,
    CellLaws,
    LabelDraws,
    count_draws,
    poisson_binomial,
)
from calibrant.notions import as_notion


def convolved(prob):
    law = np.ones(1)
    for p in prob:
        law = np.convolve(law, [1 - p, p])
    return law


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_the_poisson_binomial_law_is_the_product_of_its_trials(seed, n):
    prob = np.random.default_rng(seed).random(n)
    prob[::5] = np.round(prob[::5])
    assert poisson_binomial(prob) == pytest.approx(convolved(prob), abs=1e-14)


def test_equal_trials_are_binomial_also_for_many_rows():
    assert poisson_binomial(np.full(5000, 0.3)) == pytest.approx(
        binom.pmf(np.arange(5001), 5000, 0.3), abs=1e-13
    )


def claims_of(notion, rng, n=60, n_classes=4):
    proba = rng.dirichlet(np.ones(n_classes), n)
    y = rng.integers(n_classes, size=n)
    return as_notion(notion).claims(proba, y, np.ones(n))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("notion", notion_names.WITH_PAIRS)
def test_cells_are_those_of_the_bin_table(notion, strategy, rng):
    claims = claims_of(notion, rng)
    table = bin_table(claims, n_bins=5, strategy=strategy)
    block = claims.select(slice(0, 60))
    cell = cell_index(claims, block, table.bins)
    assert np.array_equal(
        np.bincount(cell.ravel(), minlength=table.weight.size), table.weight.ravel()
    )
    assert np.array_equal(
        np.bincount(cell.ravel()[block.hit], minlength=table.weight.size), table.outcome.ravel()
    )


@pytest.mark.parametrize("notion", notion_names.WITH_PAIRS)
def test_mean_counts_are_the_sums_of_the_scores_and_variances_those_of_independent_rows(
    notion, rng
):
    claims = claims_of(notion, rng)
    table = bin_table(claims, n_bins=4)
    draws = count_draws(claims, table.bins)
    assert isinstance(draws, CellLaws if claims.n_quantities == 1 else CellDraws)
    counts = draws.counts(rng, 6000)
    assert counts.shape == (6000, table.weight.size)
    score = claims.select(slice(0, 60)).score
    cell = cell_index(claims, claims.select(slice(0, 60)), table.bins)
    variance = np.bincount(cell.ravel(), (score * (1 - score)).ravel(), minlength=table.weight.size)
    assert (
        np.abs(counts.mean(axis=0) - table.score.ravel()) < 4.5 * np.sqrt(variance / 6000) + 1e-9
    ).all()
    assert counts.var(axis=0) == pytest.approx(variance, rel=0.12, abs=0.02)


def test_class_wise_counts_add_up_to_the_rows_and_vary_together(rng):
    claims = claims_of("class-wise", rng, n_classes=2)
    counts = count_draws(claims, UniformBins(3)).counts(rng, 500)
    assert (counts.sum(axis=1) == 60).all()
    # With two classes a score s in one column is 1 - s in the other: what one bin gains its mirror
    # image loses.
    table = bin_table(claims, n_bins=3)
    assert np.array_equal(counts[:, 0] + counts[:, 5], np.full(500, table.weight[0, 0]))


def test_certain_rows_are_drawn_as_they_are(rng):
    proba = np.eye(3)[[0, 1, 2, 2]]
    claims = as_notion("class-wise").claims(proba, np.array([0, 1, 2, 2]), np.ones(4))
    table = bin_table(claims, n_bins=5)
    assert np.array_equal(
        count_draws(claims, table.bins).counts(rng, 20), np.tile(table.outcome.ravel(), (20, 1))
    )


def test_labels_have_the_frequencies_of_the_rows(rng):
    proba = rng.dirichlet(np.ones(3), 5)
    labels = LabelDraws(proba).labels(rng, 20_000)
    found = np.array([np.bincount(column, minlength=3) for column in labels.T]) / 20_000
    assert found == pytest.approx(proba, abs=0.015)


def test_tables_that_are_too_large_to_keep_are_made_anew_and_give_the_same_draws(rng, monkeypatch):
    claims = claims_of("class-wise", rng)
    monkeypatch.setattr(_draws, "TABLE_SLOTS", 80)
    kept = CellDraws(claims, UniformBins(5))
    monkeypatch.setattr(_draws, "KEEP_SLOTS", 10)
    anew = CellDraws(claims, UniformBins(5))
    assert kept.reusable
    assert not anew.reusable
    expected = kept.counts(np.random.default_rng(0), 30)
    assert np.array_equal(anew.counts(np.random.default_rng(0), 30), expected)
    assert (expected.sum(axis=1) == 60).all()


def test_bins_given_by_edges_serve_all_claims(rng):
    claims = claims_of("class-wise", rng)
    counts = count_draws(claims, Bins((np.array([0.2, 1.0]),))).counts(rng, 10)
    assert counts.shape == (10, 8)


@pytest.mark.parametrize("source", [np.random.PCG64, np.random.MT19937, np.random.Philox])
@pytest.mark.parametrize("shape", [(4, 10), (3, 5)])
def test_random_bits_are_those_of_integers_whatever_was_drawn_before(source, shape):
    ours, theirs = (np.random.Generator(source(0)) for _ in range(2))
    for odd in (0, 1, 1, 0):
        for generator in (ours, theirs):
            generator.integers(0, 2**32, odd, dtype=np.uint32)
        expected = theirs.integers(0, 2**32, shape, dtype=np.uint32)
        np.testing.assert_array_equal(_draws.random_bits(ours, *shape), expected)
