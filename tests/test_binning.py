from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.binning import (
    Bins,
    BinTable,
    UniformBins,
    bin_table,
    cell_index,
    distinct_sums,
    place_scores,
    quantile_edges,
    quantile_ends,
    sum_steps,
)
from calibrant.notions import as_notion


def test_uniform_bins_hold_zero_one_and_put_an_edge_into_the_upper_bin():
    assert UniformBins(10).assign(np.array([0.0, 0.1, 0.35, 0.9, 1.0])).tolist() == [0, 1, 3, 9, 9]


def test_uniform_bins_are_computed_in_float64():
    score = np.array([0.7], dtype=np.float32)  # 0.69999999 in float64
    assert UniformBins(10).assign(score).tolist() == [6]


@pytest.mark.parametrize("n_bins", [6, 14, 15, 49, 54, 100])
def test_a_score_of_exactly_one_is_in_the_last_bin_for_every_number_of_bins(n_bins):
    assert UniformBins(n_bins).assign(np.array([1.0])).tolist() == [n_bins - 1]


def test_edges_are_right_closed():
    bins = Bins((np.array([0.2, 0.5, 1.0]),))
    assert bins.assign(np.array([0.0, 0.2, 0.21, 0.5, 0.9, 1.0]), 0).tolist() == [0, 0, 1, 1, 2, 2]
    assert bins.n_bins == 3


@pytest.mark.parametrize(
    "edges", [(), (np.array([0.5, 0.2]),), (np.array([]),), (np.array([np.nan]),)]
)
def test_edges_must_increase(edges):
    with pytest.raises(ValueError, match="increasing arrays of upper edges"):
        Bins(edges)


def quantile_bins(scores, n_bins, weight=None):
    weight = np.ones(len(scores)) if weight is None else weight
    values, total, _ = distinct_sums(np.asarray(scores, float), np.zeros(len(scores)), weight)
    return (
        Bins((quantile_edges(values, total, n_bins),)).assign(np.asarray(scores, float), 0).tolist()
    )


def test_quantile_bins_have_equal_mass_without_ties():
    assert quantile_bins(np.arange(9) / 10, 3) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_quantile_bins_never_split_ties_and_may_stay_empty():
    # F(0.5) = 0.6, so that 0.5 goes to bin ceil(5 * 0.6) - 1 = 2; bins 0 and 1 are empty.
    assert quantile_bins([0.5] * 6 + [0.7, 0.8, 0.9, 1.0], 5) == [2] * 6 + [3, 3, 4, 4]


def test_quantile_ends_point_at_the_last_value_of_each_bin():
    # Shares .6 (six ties), .7, ..., 1: no value ends before the third of five bins.
    assert quantile_ends(np.array([0.6, 0.7, 0.8, 0.9, 1.0]), 5).tolist() == [-1, -1, 0, 2, 4]


def test_a_weight_of_two_moves_quantiles_like_the_row_twice():
    scores = [0.1, 0.2, 0.3, 0.4]
    twice = quantile_bins([0.1, 0.2, 0.2, 0.3, 0.4], 5)
    assert quantile_bins(scores, 5, np.array([1.0, 2.0, 1.0, 1.0])) == [twice[0], *twice[2:]]


def test_distinct_scores_are_pooled_and_rows_of_weight_zero_are_absent():
    values, total, outcome = distinct_sums(
        np.array([0.3, 0.1, 0.3, 0.9]), np.array([1, 0, 0, 1.0]), np.array([1, 2, 3, 0.0])
    )
    assert values.tolist() == [0.1, 0.3]
    assert total.tolist() == [2.0, 4.0]
    assert outcome.tolist() == [0.0, 1.0]


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
    # 2 bins of 3 claims: a block of 16 rows outweighs the table, so that the 50 rows really are
    # cut.
    claims = as_notion("top-label").claims(
        generator.dirichlet(np.ones(3), 50), generator.integers(3, size=50), np.ones(50)
    )
    table = bin_table(claims, n_bins=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.notions._claims.BLOCK_ELEMENTS", elements)
        again = bin_table(claims, n_bins=2)
    np.testing.assert_allclose(again.score, table.score, atol=1e-12)
    np.testing.assert_array_equal(again.weight, table.weight)


def test_tables_of_many_columns_are_made_of_a_few_at_a_time(rng, monkeypatch):
    proba, y = rng.dirichlet(np.ones(20), 30), rng.integers(20, size=30)
    claims = as_notion("class-wise").claims(proba, y, np.broadcast_to(1.0, 30))
    whole = bin_table(claims, n_bins=7)
    monkeypatch.setattr("calibrant.binning.READ_ELEMENTS", 90)  # three columns
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


def test_bins_of_another_number_of_claims_are_refused(data):
    proba, y, weight = data
    with pytest.raises(ValueError, match="bins are those of 2 claims, the data make 4"):
        bin_table(
            as_notion("class-wise").claims(proba, y, weight), bins=Bins((np.ones(1), np.ones(1)))
        )


def test_bins_must_be_bins(data):
    proba, y, weight = data
    claims = as_notion("class-wise").claims(proba, y, weight)
    with pytest.raises(TypeError, match="fitted binning calibrator or a Bins object, got int"):
        bin_table(claims, bins=15)
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1"):
        bin_table(claims, n_bins=0)
    with pytest.raises(ValueError, match="strategy must be one of 'uniform', 'quantile', 'unique'"):
        bin_table(claims, strategy="kmeans")


def test_a_fitted_calibrator_lends_its_bins(data):
    class Fitted:
        bins_ = Bins((np.array([0.5, 1.0]),))

    proba, y, weight = data
    assert bin_table(as_notion("class-wise").claims(proba, y, weight), bins=Fitted()).n_bins == 2


def test_a_table_as_plain_lists_has_none_for_empty_cells():
    table = BinTable(
        np.array([[2.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]]), 1, 1, UniformBins(2)
    )
    assert table.to_dict() == {
        "n_claims": 1,
        "n_bins": 2,
        "weight": [[2.0, 0.0]],
        "mean_score": [[0.5, None]],
        "mean_outcome": [[1.0, None]],
    }


def table_of(weight, score, outcome, n_quantities=1, n_labels=1):
    sums = (np.array(part, dtype=float) for part in (weight, score, outcome))
    return BinTable(*sums, n_quantities, n_labels, UniformBins(len(weight[0])))


# Claims of two labels: gaps 0.2 and 0.1 of 5 and 10 rows, and one gap of 0.5 of 5 rows.
SPLIT = table_of(
    [[5, 10, 0], [0, 0, 5]], [[1, 4, 0], [0, 0, 4]], [[2, 5, 0], [0, 0, 1.5]], n_labels=2
)


def test_the_errors_of_claims_are_mean_gaps_of_their_own_rows():
    np.testing.assert_allclose(SPLIT.claim_errors, [2 / 15, 0.5])
    np.testing.assert_allclose(SPLIT.claim_weight, [15, 5])
    assert table_of([[0.0]], [[0.0]], [[0.0]]).claim_errors.tolist() == [0.0]


def test_the_error_weighs_labels_by_their_rows():
    assert SPLIT.error() == pytest.approx((15 * 2 / 15 + 5 * 0.5) / 20)
    assert SPLIT.error(norm=np.inf) == pytest.approx(0.5)


def test_the_shares_of_cells_sum_to_one_and_weigh_gaps_to_the_error():
    assert SPLIT.share.sum() == pytest.approx(1.0)
    assert (SPLIT.share * SPLIT.gap).sum() == pytest.approx(SPLIT.error())


def test_the_worst_claims_are_those_with_the_largest_part_in_the_error():
    assert SPLIT.worst_first.tolist() == [1, 0]
    even = table_of([[1], [1]], [[0.5], [0.5]], [[1], [0]], n_labels=2)
    assert even.worst_first.tolist() == [0, 1]  # ties in their order


def test_pooled_gaps_average_the_claims_of_a_bin():
    table = table_of([[3, 0], [1, 0]], [[1.5, 0], [0.5, 0]], [[3, 0], [0, 0]], n_labels=2)
    assert table.pooled_gap[0] == pytest.approx(0.5)
    assert np.isnan(table.pooled_gap[1])


def test_rows_of_a_quantity_are_those_of_all_of_its_labels():
    assert SPLIT.quantity_weight.tolist() == [20, 20]
    two = table_of([[3], [4]], [[1], [1]], [[1], [1]], n_quantities=2)
    assert two.quantity_weight.tolist() == [3, 4]


@pytest.mark.parametrize("rule", [UniformBins(4), Bins((np.array([0.25, 0.5, 0.75, 1.0]),))])
def test_shared_bins_are_the_same_for_every_claim(rule):
    score = np.array([0.1, 0.6, 0.9])
    assert rule.is_shared
    assert rule.assign(score).tolist() == rule.assign(score, 7).tolist() == [0, 2, 3]


def test_bins_of_claims_are_their_own():
    rule = Bins((np.array([0.5, 1.0]), np.array([0.1, 1.0])))
    assert not rule.is_shared
    assert rule.assign(np.array([0.3]), 0).tolist() == [0]
    assert rule.assign(np.array([0.3]), 1).tolist() == [1]


def test_only_uniform_bins_know_their_width():
    assert UniformBins(4).width == 0.25
    assert Bins((np.array([0.5, 1.0]),)).width is None


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


def test_sums_of_steps_are_those_of_a_search_for_every_value(rng):
    values, part = np.unique(rng.random(60)), rng.random(60)
    for edges in (
        np.array([0.2, 0.2, 0.5, 1.0]),
        np.array([-np.inf, 0.5, 2.0, 3.0]),
        np.array([0.7]),
    ):
        expected = np.bincount(place_scores(values, edges), part, minlength=edges.size)
        np.testing.assert_allclose(sum_steps(part, values, edges), expected, atol=1e-14)


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_distinct_sums_are_the_same_whichever_sort_finds_them(rng, low):
    score, outcome = low + np.round(rng.random(200), 2), rng.integers(2, size=200).astype(float)
    unit = np.broadcast_to(np.float64(1.0), (200,))
    values, total, hits = distinct_sums(score, outcome, unit)
    twice = distinct_sums(score, outcome, np.full(200, 2.0))
    for ours, theirs in zip((values, 2 * total, 2 * hits), twice, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "options", [{}, {"aggregate": "sum"}, {"aggregate": "bin"}, {"norm": 2}, {"norm": np.inf}]
)
def test_errors_of_many_outcomes_are_those_of_each(rng, options):
    proba, y = rng.dirichlet(np.ones(3), 80), rng.integers(3, size=80)
    table = bin_table(as_notion("class-wise").claims(proba, y, np.ones(80)), n_bins=5)
    outcomes = rng.integers(0, 9, (6, *table.weight.shape)) * (table.weight > 0)
    each = [replace(table, outcome=one).error(**options) for one in outcomes]
    np.testing.assert_allclose(table.errors(outcomes, **options), each, rtol=1e-13)
