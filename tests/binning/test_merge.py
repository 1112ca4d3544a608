"""Bins with few rows are merged with neighbors of the same kind, and no row is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.binning import BinTable, UniformBins, least_rows, merge_small_bins
from calibrant.metrics import calibration_curve


def merged_rows(*rows):
    table = BinTable(*[np.array([rows], dtype=float)] * 3, 1, 1, UniformBins(len(rows)))
    weight = merge_small_bins(table).weight[0]
    return weight[weight > 0].tolist()


def test_neighbors_with_few_rows_are_merged():
    assert merged_rows(4, 0, 7, 50) == [11, 50]
    assert merged_rows(0, 6, 6, 6, 6) == [12, 12]


def test_the_last_merged_bin_takes_the_remainder():
    assert merged_rows(6, 6, 3) == [15]
    assert merged_rows(6, 6, 3, 0, 60) == [15, 60]


def test_a_bin_with_enough_rows_does_not_hide_its_neighbor():
    # The confidences of the digits demo: 22 rows in 14 bins, 578 in the last one.
    assert merged_rows(1, 2, 3, 1, 6, 4, 5, 578) == [22, 578]
    assert merged_rows(500, 3, 500) == [500, 3, 500]


def test_more_rows_allow_bins_with_more_rows():
    assert least_rows(np.array([16.0, 10_000.0])).tolist() == [10.0, 100.0]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20))
def test_rows_are_kept_and_only_remainders_are_small(rows):
    merged = merged_rows(*rows)
    assert sum(merged) == sum(rows)
    least = max(10, sum(rows) ** 0.5)
    large = [row for row in rows if row >= least]
    assert sum(count < least for count in merged) <= len(large) + 1
    assert all(row in merged for row in large)


def test_scores_are_assigned_to_their_merged_bin(rng):
    proba = rng.dirichlet(np.full(4, 0.3), 300)
    y = rng.integers(4, size=300)
    table = merge_small_bins(calibration_curve(y, proba, notion="class-wise"))
    for claim in range(4):
        rows = np.bincount(table.bins.assign(proba[:, claim], claim), minlength=table.n_bins)
        assert rows == pytest.approx(table.weight[claim])
    assert table.bins.width is None
    assert not table.bins.is_shared
