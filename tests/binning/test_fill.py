"""Tables of claims in uniform bins, given bins and bins computed from the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.binning import (
    Bins,
    bin_table,
    cell_index,
)
from calibrant.notions import as_notion


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.ones(4), 300)
    return proba, rng.integers(4, size=300), rng.random(300)


@pytest.mark.parametrize(
    "notion", ["confidence", "top-label", "class-wise", "within-top-2", "top-2-label"]
)
def test_tables_of_two_parts_add_to_the_table_of_the_whole(notion, data):
    proba, y, weight = data
    chosen = as_notion(notion)
    whole, first, second = (
        bin_table(chosen.claims(proba[s], y[s], weight[s]))
        for s in (slice(None), slice(0, 100), slice(100, None))
    )
    both = first + second
    for name in ("weight", "score", "outcome"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), atol=1e-12)


@pytest.mark.parametrize("notion", ["confidence", "top-label", "class-wise", "top-2-label"])
def test_the_blocked_table_equals_the_table_claim_by_claim(notion, data):
    proba, y, weight = data
    claims = as_notion(notion).claims(proba, y, weight)
    # Right-closed edges just below the left-closed uniform ones describe the same bins.
    edges = np.append(np.nextafter(np.arange(1, 15) / 15, 0), 1.0)
    for name in ("weight", "score", "outcome"):
        blocked, by_claim = (
            getattr(bin_table(claims, **how), name)
            for how in ({"n_bins": 15}, {"bins": Bins((edges,))})
        )
        np.testing.assert_allclose(blocked, by_claim, atol=1e-10)


@given(st.integers(1, 200))
def test_the_size_of_a_block_changes_nothing(elements):
    generator = np.random.default_rng(1)
    # With 2 bins and 3 claims a block of 16 rows is larger than the table, so 50 rows are split.
    claims = as_notion("top-label").claims(
        generator.dirichlet(np.ones(3), 50), generator.integers(3, size=50), np.ones(50)
    )
    table = bin_table(claims, n_bins=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.notions._claims.CACHE_BLOCK", elements)
        again = bin_table(claims, n_bins=2)
    np.testing.assert_allclose(again.score, table.score, atol=1e-12)
    np.testing.assert_array_equal(again.weight, table.weight)


def test_tables_of_many_columns_are_made_of_a_few_at_a_time(rng, monkeypatch):
    proba, y = rng.dirichlet(np.ones(20), 30), rng.integers(20, size=30)
    claims = as_notion("class-wise").claims(proba, y, np.broadcast_to(1.0, 30))
    whole = bin_table(claims, n_bins=7)
    monkeypatch.setattr("calibrant.binning._fill.READ_BLOCK", 90)  # three columns
    few = bin_table(claims, n_bins=7)
    for name in ("weight", "score", "outcome"):
        np.testing.assert_array_equal(getattr(few, name), getattr(whole, name))


def test_unique_bins_are_the_distinct_scores_of_each_claim():
    proba = np.array([[0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    table = bin_table(
        as_notion("top-label").claims(proba, np.array([0, 1, 0, 1]), np.ones(4)), strategy="unique"
    )
    assert table.weight.tolist() == [[1.0, 2.0], [1.0, 0.0]]
    assert table.mean_outcome[0].tolist() == [1.0, 0.5]
    assert np.isnan(table.mean_outcome[1, 1])


def test_a_label_that_is_never_predicted_has_an_empty_row():
    proba = np.array([[0.8, 0.1, 0.1]])
    for strategy in ("uniform", "quantile", "unique"):
        table = bin_table(
            as_notion("top-label").claims(proba, np.array([0]), np.ones(1)),
            strategy=strategy,
            n_bins=3,
        )
        assert table.weight[1:].sum() == 0
        assert (table.gap[1:] == 0).all()


def test_tables_on_other_bins_do_not_add(data):
    proba, y, weight = data
    claims = as_notion("confidence").claims(proba, y, weight)
    with pytest.raises(ValueError, match="same claims and the same bins"):
        bin_table(claims, n_bins=10) + bin_table(claims, n_bins=15)
    with pytest.raises(ValueError, match="same claims and the same bins"):
        bin_table(claims, strategy="quantile") + bin_table(claims)


def test_bins_of_another_number_of_claims_are_rejected(data):
    proba, y, weight = data
    with pytest.raises(
        ValueError, match="fitted for 2 binary events, but the data have 4 binary events"
    ):
        bin_table(
            as_notion("class-wise").claims(proba, y, weight), bins=Bins((np.ones(1), np.ones(1)))
        )


def test_bins_must_be_bins(data):
    proba, y, weight = data
    claims = as_notion("class-wise").claims(proba, y, weight)
    with pytest.raises(TypeError, match="fitted binning calibrator or a Bins object, got int"):
        bin_table(claims, bins=15)
    with pytest.raises(ValueError, match="n_bins must be an integer of at least 1"):
        bin_table(claims, n_bins=0)
    with pytest.raises(ValueError, match="strategy must be one of 'uniform', 'quantile', 'unique'"):
        bin_table(claims, strategy="kmeans")


def test_a_fitted_calibrator_lends_its_bins(data):
    class Fitted:
        bins_ = Bins((np.array([0.5, 1.0]),))

    proba, y, weight = data
    assert bin_table(as_notion("class-wise").claims(proba, y, weight), bins=Fitted()).n_bins == 2


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("notion", ["confidence", "top-label", "class-wise", "top-2-label"])
def test_cells_of_a_block_hold_the_counts_of_the_table(notion, strategy, rng):
    proba, y = rng.dirichlet(np.ones(3), 80), rng.integers(3, size=80)
    claims = as_notion(notion).claims(proba, y, np.ones(80))
    table = bin_table(claims, n_bins=4, strategy=strategy)
    cell = cell_index(claims, claims.select(slice(0, 80)), table.bins)
    np.testing.assert_array_equal(
        np.bincount(cell.ravel(), minlength=table.weight.size), table.weight.ravel()
    )
