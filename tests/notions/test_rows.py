"""Rows of probabilities that are filled with claims."""

from __future__ import annotations

import numpy as np

from calibrant._kernels.simplex import normalized
from calibrant.notions._rows import complete_rows, keep_top, scale_sets

P = np.array([[0.5, 0.3, 0.2]])


def test_the_rest_of_a_row_keeps_its_proportions():
    np.testing.assert_allclose(
        complete_rows(P, np.array([[1]]), np.array([[0.3]])), [[0.5, 0.3, 0.2]]
    )
    np.testing.assert_allclose(
        complete_rows(P, np.array([[2]]), np.array([[0.6]])), [[0.25, 0.15, 0.6]]
    )


def test_claims_above_one_are_scaled_down_together():
    row = complete_rows(P, np.array([[0, 1]]), np.array([[0.9, 0.6]]))
    np.testing.assert_allclose(row, [[0.6, 0.4, 0.0]])


def test_claims_about_every_column_are_normalised():
    row = complete_rows(P, np.array([[0, 1, 2]]), np.array([[0.1, 0.1, 0.2]]))
    np.testing.assert_allclose(row, [[0.25, 0.25, 0.5]])


def test_a_rest_without_mass_is_filled_evenly():
    row = complete_rows(np.array([[1.0, 0.0, 0.0]]), np.array([[0]]), np.array([[0.6]]))
    np.testing.assert_allclose(row, [[0.6, 0.2, 0.2]])


def test_sets_add_up_to_their_claims():
    proba = np.array([[0.4, 0.2, 0.3, 0.1]])
    row = scale_sets(proba, [np.array([[0, 1]]), np.array([[2]])], np.array([[0.3, 0.5]]))
    np.testing.assert_allclose(row, [[0.2, 0.1, 0.5, 0.2]])


def test_a_set_without_mass_shares_its_claim_evenly():
    row = scale_sets(np.array([[0.0, 0.0, 1.0]]), [np.array([[0, 1]])], np.array([[0.5]]))
    np.testing.assert_allclose(row, [[0.25, 0.25, 0.5]])


def test_the_top_class_stays_on_top_and_the_rest_keeps_its_sum_and_order():
    rows = np.array([[0.3, 0.5, 0.15, 0.05], [0.6, 0.2, 0.1, 0.1]])
    kept = keep_top(rows, np.array([0, 0]), np.array([[0], [0]]))
    np.testing.assert_allclose(kept.sum(axis=1), 1.0)
    np.testing.assert_allclose(kept[0], [0.3, 0.3, 0.2125, 0.1875], rtol=1e-5)
    assert kept[0].argmax() == 0
    np.testing.assert_array_equal(kept[1], rows[1])


def test_classes_without_mass_take_their_part_of_what_others_cannot_hold():
    row = np.array([[0.3, 0.7, 0.0, 0.0]])
    kept = keep_top(row, np.array([0]), np.array([[0]]))
    np.testing.assert_allclose(kept, [[0.3, 0.3, 0.2, 0.2]], rtol=1e-5)


def test_a_top_class_below_its_share_cannot_be_kept_on_top():
    row = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_array_equal(keep_top(row, np.array([0]), np.array([[0]])), row)


def test_a_higher_claim_of_another_rank_stays_on_top():
    row = np.array([[0.3, 0.5, 0.2]])
    np.testing.assert_array_equal(keep_top(row, np.array([0]), np.array([[0, 1]])), row)


def test_a_row_of_zeros_becomes_uniform():
    np.testing.assert_allclose(
        normalized(np.array([[0.0, 0.0], [1.0, 3.0]])), [[0.5, 0.5], [0.25, 0.75]]
    )


def test_rows_are_not_changed_in_place():
    complete_rows(P, np.array([[0]]), np.array([[0.9]]))
    np.testing.assert_array_equal(P, [[0.5, 0.3, 0.2]])
