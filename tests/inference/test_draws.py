from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chisquare

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
    # With two classes a score s in one column is 1 - s in the other, so an outcome that is counted
    # in one bin is not counted in its mirror image.
    table = bin_table(claims, n_bins=3)
    assert np.array_equal(counts[:, 0] + counts[:, 5], np.full(500, table.weight[0, 0]))


def test_certain_rows_are_drawn_as_they_are(rng):
    proba = np.eye(3)[[0, 1, 2, 2]]
    claims = as_notion("class-wise").claims(proba, np.array([0, 1, 2, 2]), np.ones(4))
    table = bin_table(claims, n_bins=5)
    assert np.array_equal(
        count_draws(claims, table.bins).counts(rng, 20), np.tile(table.outcome.ravel(), (20, 1))
    )


@pytest.mark.parametrize(("n_classes", "concentration"), [(2, 1.0), (10, 0.3), (100, 1.0)])
def test_counts_of_each_cell_have_the_law_of_independent_rows(n_classes, concentration):
    rng = np.random.default_rng(n_classes)
    size, p_values = 20_000, []
    proba = rng.dirichlet(np.full(n_classes, concentration), 4)
    for row in proba:  # one row at a time, with one bin per class
        claims = as_notion("class-wise").claims(row[None], np.zeros(1, dtype=int), np.ones(1))
        counts = CellDraws(claims, UniformBins(1)).counts(rng, size)
        assert (counts.sum(axis=1) == 1).all()
        p_values.append(fit_p_value(counts.sum(axis=0), size * row))
    claims = as_notion("class-wise").claims(proba, np.zeros(4, dtype=int), np.ones(4))
    counts = CellDraws(claims, UniformBins(1)).counts(rng, size)
    for k in np.argsort(-proba.sum(axis=0))[:5]:  # rows are independent of each other
        result = np.bincount(counts[:, k], minlength=5)
        p_values.append(fit_p_value(result, size * poisson_binomial(proba[:, k])))
    assert min(p_values) > 0.05 / len(p_values)


def fit_p_value(observed, expected):
    """Pearson's chi-squared test; cells that expect fewer than five counts are merged."""
    is_rare = expected < 5
    observed, expected = (
        np.append(x[~is_rare], x[is_rare].sum()) if is_rare.any() else x
        for x in (observed, expected)
    )
    keep = expected > 0
    return chisquare(observed[keep], expected[keep] * observed.sum() / expected.sum()).pvalue


def test_draws_one_after_the_other_are_independent_in_each_row():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(10), 300)
    claims = as_notion("class-wise").claims(proba, np.zeros(300, dtype=int), np.ones(300))
    counts = CellDraws(claims, UniformBins(1)).counts(rng, 20_000).astype(float)
    for lag in (1, 8):  # neighbors, and rows whose bytes have the same place in a number
        for column in counts.T:
            assert abs(np.corrcoef(column[:-lag], column[lag:])[0, 1]) < 4.5 / np.sqrt(20_000)


@pytest.mark.parametrize("n_bins", [5, 100, 20_000])
def test_cells_of_every_width_are_drawn_alike(n_bins, rng):
    claims = claims_of("class-wise", rng)
    counts = CellDraws(claims, UniformBins(n_bins)).counts(np.random.default_rng(0), 50)
    by_class = counts.reshape(50, 4, n_bins).sum(axis=2)
    expected = CellDraws(claims, UniformBins(1)).counts(np.random.default_rng(0), 50)
    assert np.array_equal(by_class, expected)


def test_many_draws_take_the_rows_in_parts(rng, monkeypatch):
    claims = claims_of("class-wise", rng)
    draws = CellDraws(claims, UniformBins(4))
    monkeypatch.setattr(_draws, "CALL_BLOCK", 125)
    assert len(list(draws._numbers(rng, 100))) == 6
    counts = draws.counts(np.random.default_rng(0), 100)
    assert (counts.sum(axis=1) == 60).all()


def test_labels_have_the_frequencies_of_the_rows(rng):
    proba = rng.dirichlet(np.ones(3), 5)
    labels = LabelDraws(proba).labels(rng, 20_000)
    result = np.array([np.bincount(column, minlength=3) for column in labels.T]) / 20_000
    assert result == pytest.approx(proba, abs=0.015)


def test_tables_that_are_too_large_to_keep_are_made_anew_and_give_the_same_draws(rng, monkeypatch):
    claims = claims_of("class-wise", rng)
    monkeypatch.setattr(_draws, "CALL_BLOCK", 80)
    kept = CellDraws(claims, UniformBins(5))
    monkeypatch.setattr(_draws, "KEPT_MEMORY", 15)
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


@pytest.mark.parametrize("shape", [(4, 10), (3, 5), (1, 1)])
def test_random_bytes_are_those_of_whole_numbers(shape):
    ours, theirs = (np.random.default_rng(0) for _ in range(2))
    drawn = _draws.random_bytes(ours, *shape)
    text = theirs.integers(2**64, size=8, dtype=np.uint64).astype("<u8")
    assert drawn.shape == shape
    assert drawn.tobytes() == text.tobytes()[: drawn.size]
