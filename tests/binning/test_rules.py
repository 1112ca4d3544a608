"""Bin rules: uniform bins, edges, and quantile edges."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.binning import (
    Bins,
    UniformBins,
    distinct_sums,
    quantile_edges,
    quantile_ends,
)


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
    # F(0.5) = 0.6, so 0.5 is in bin ceil(5 * 0.6) - 1 = 2, and bins 0 and 1 are empty.
    assert quantile_bins([0.5] * 6 + [0.7, 0.8, 0.9, 1.0], 5) == [2] * 6 + [3, 3, 4, 4]


def test_quantile_ends_point_at_the_last_value_of_each_bin():
    # Shares .6 (six ties), .7, ..., 1: no value ends before the third of five bins.
    assert quantile_ends(np.array([0.6, 0.7, 0.8, 0.9, 1.0]), 5).tolist() == [-1, -1, 0, 2, 4]


def test_a_weight_of_two_moves_quantiles_like_the_row_twice():
    scores = [0.1, 0.2, 0.3, 0.4]
    twice = quantile_bins([0.1, 0.2, 0.2, 0.3, 0.4], 5)
    assert quantile_bins(scores, 5, np.array([1.0, 2.0, 1.0, 1.0])) == [twice[0], *twice[2:]]


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
