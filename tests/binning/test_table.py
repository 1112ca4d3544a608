"""Calibration errors of a table of sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrant.binning import (
    BinTable,
    UniformBins,
    bin_table,
)
from calibrant.notions import as_notion


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
    assert even.worst_first.tolist() == [0, 1]  # ties keep their order


def test_pooled_gaps_average_the_claims_of_a_bin():
    table = table_of([[3, 0], [1, 0]], [[1.5, 0], [0.5, 0]], [[3, 0], [0, 0]], n_labels=2)
    assert table.pooled_gap[0] == pytest.approx(0.5)
    assert np.isnan(table.pooled_gap[1])


def test_rows_of_a_quantity_are_those_of_all_of_its_labels():
    assert SPLIT.quantity_weight.tolist() == [20, 20]
    two = table_of([[3], [4]], [[1], [1]], [[1], [1]], n_quantities=2)
    assert two.quantity_weight.tolist() == [3, 4]


@pytest.mark.parametrize(
    "options", [{}, {"aggregate": "sum"}, {"aggregate": "bin"}, {"norm": 2}, {"norm": np.inf}]
)
def test_errors_of_many_outcomes_are_those_of_each(rng, options):
    proba, y = rng.dirichlet(np.ones(3), 80), rng.integers(3, size=80)
    table = bin_table(as_notion("class-wise").claims(proba, y, np.ones(80)), n_bins=5)
    outcomes = rng.integers(0, 9, (6, *table.weight.shape)) * (table.weight > 0)
    each = [replace(table, outcome=one).error(**options) for one in outcomes]
    np.testing.assert_allclose(table.errors(outcomes, **options), each, rtol=1e-13)
