from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from calibrant import _simplex


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_softmax_and_its_logarithm_agree_with_scipy(rng, n_classes):
    z = rng.normal(scale=30, size=(50, n_classes))
    np.testing.assert_allclose(_simplex.softmax(z), special.softmax(z, axis=1), rtol=1e-13)
    np.testing.assert_allclose(
        _simplex.log_softmax(z), special.log_softmax(z, axis=1), rtol=1e-13, atol=1e-13
    )


def test_row_reductions_agree_with_numpy_in_both_precisions(rng):
    for n_columns in (3, 200):
        block = rng.normal(size=(20, n_columns))
        np.testing.assert_allclose(_simplex.row_sum(block), block.sum(1), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(_simplex.row_max(block), block.max(1))
        single = block.astype(np.float32)
        assert _simplex.row_sum(single).dtype == np.float64


def test_huge_logits_do_not_overflow():
    out = _simplex.softmax(np.array([[1e4, -1e4, 0.0]]))
    np.testing.assert_array_equal(out, [[1.0, 0.0, 0.0]])


def test_minus_infinity_becomes_the_logit_of_the_floor_of_probabilities():
    out = _simplex.finite_logits(np.array([[5.0, -np.inf, 5.0], [1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(out, [[5.0, 5 + np.log(2e-12), 5.0], [1.0, 2.0, 3.0]])
    proba = _simplex.softmax(_simplex.finite_logits(np.array([[0.0, -np.inf]]), 1e-3))
    np.testing.assert_allclose(proba, [[1 / 1.001, 0.001 / 1.001]])


def test_what_is_impossible_never_outranks_what_is_not():
    out = _simplex.finite_logits(np.array([[0.0, -50.0, -np.inf]]))
    np.testing.assert_array_equal(out, [[0.0, -50.0, -50.0]])


def test_the_logarithm_of_the_truth_is_the_same_for_every_kind_of_scores():
    z = np.array([[0.0, -1.0, -np.inf], [0.0, -2.0, -60.0], [3.0, 1.0, 2.0]])
    y = np.array([2, 2, 1])
    proba = _simplex.softmax(z)
    expected = [np.log(1e-12), np.log(1e-12), np.log(proba[2, 1])]
    for scores, inputs in ((z, "logits"), (proba, "proba"), (_simplex.log_of(proba), "log_proba")):
        np.testing.assert_allclose(_simplex.log_true_class(scores, y, inputs), expected)


def test_centring_removes_a_constant_of_the_row(rng):
    z = rng.normal(size=(5, 4))
    np.testing.assert_allclose(_simplex.centred(z + 7.0), _simplex.centred(z), atol=1e-12)
    np.testing.assert_allclose(_simplex.centred(z).sum(1), 0, atol=1e-12)


def test_logarithms_are_clipped_on_both_sides_and_not_renormalised():
    out = _simplex.log_clipped(np.array([[0.0, 1.0, 0.5]]), 1e-3)
    np.testing.assert_allclose(out, np.log([[1e-3, 1 - 1e-3, 0.5]]), rtol=1e-15)


def test_a_loss_is_floored_only_from_below():
    np.testing.assert_allclose(
        _simplex.log_floored(np.array([0.0, 1.0]), 1e-12), [np.log(1e-12), 0.0]
    )


def test_log_odds_are_exact_at_both_ends_of_the_interval():
    p = np.array([1e-9, 0.5, 1 - 1e-9])
    np.testing.assert_allclose(
        _simplex.log_odds(p, 1e-12), special.logit(p), rtol=1e-12, atol=1e-15
    )
    assert np.isfinite(_simplex.log_odds(np.array([0.0, 1.0]), 1e-12)).all()


def test_inputs_are_left_alone(rng):
    z = rng.normal(size=(5, 4))
    z.flags.writeable = False
    for function in (
        _simplex.softmax,
        _simplex.log_softmax,
        _simplex.centred,
        _simplex.finite_logits,
    ):
        function(z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_rows", "n_columns"), [(1, 2), (100, 10), (3000, 2), (3000, 16), (3000, 17)]
)
def test_the_top_label_is_the_lowest_column_of_the_largest_entry(rng, n_rows, n_columns, dtype):
    block = (rng.integers(0, 4, size=(n_rows, n_columns)) / 4).astype(
        dtype
    )  # nearly every row has ties
    expected = [row.index(max(row)) for row in block.tolist()]
    assert _simplex.top_labels(block, 1)[:, 0].tolist() == expected


@pytest.mark.parametrize("n_ranks", [2, 4, 5])
def test_ranks_are_in_falling_order_and_ties_in_the_order_of_the_columns(rng, n_ranks):
    block = rng.integers(0, 4, size=(50, 7)) / 4
    expected = [
        sorted(range(7), key=lambda k, row=row: (-row[k], k))[:n_ranks] for row in block.tolist()
    ]
    assert _simplex.top_labels(block, n_ranks).tolist() == expected


def test_the_top_label_works_on_views_that_are_not_contiguous(rng):
    block = rng.random((3000, 20))[:, ::2]
    assert _simplex.top_labels(block, 1)[:, 0].tolist() == [
        row.index(max(row)) for row in block.tolist()
    ]


def test_entries_are_those_of_the_named_columns_in_float64():
    block = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)
    taken = _simplex.entries(block, np.array([[1], [0]]))
    assert taken.dtype == np.float64
    assert taken.tolist() == [[0.75], [0.5]]
