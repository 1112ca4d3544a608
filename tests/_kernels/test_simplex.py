from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from calibrant._kernels import simplex


@pytest.mark.parametrize("n_classes", [2, 10, 100])
def test_softmax_and_its_logarithm_agree_with_scipy(rng, n_classes):
    z = rng.normal(scale=30, size=(50, n_classes))
    np.testing.assert_allclose(simplex.softmax(z), special.softmax(z, axis=1), rtol=1e-13)
    np.testing.assert_allclose(
        simplex.log_softmax(z), special.log_softmax(z, axis=1), rtol=1e-13, atol=1e-13
    )


def test_row_reductions_agree_with_numpy_in_both_precisions(rng):
    for n_columns in (3, 200):
        block = rng.normal(size=(20, n_columns))
        np.testing.assert_allclose(simplex.row_sum(block), block.sum(1), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(simplex.row_max(block), block.max(1))
        single = block.astype(np.float32)
        assert simplex.row_sum(single).dtype == np.float64


def test_huge_logits_do_not_overflow():
    out = simplex.softmax(np.array([[1e4, -1e4, 0.0]]))
    np.testing.assert_array_equal(out, [[1.0, 0.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 33, 1000])
def test_rough_row_sums_are_those_of_halves_to_twelve_digits(rng, n_classes, dtype):
    block = rng.dirichlet(np.ones(n_classes), 40).astype(dtype)
    for rows in (block, block[::3], np.asfortranarray(block)):
        found = simplex.rough_row_sum(rows)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, simplex.row_sum(rows), atol=1e-12)


def test_minus_infinity_becomes_the_logit_of_the_floor_of_probabilities():
    out = simplex.finite_logits(np.array([[5.0, -np.inf, 5.0], [1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(out, [[5.0, 5 + np.log(2e-12), 5.0], [1.0, 2.0, 3.0]])
    proba = simplex.softmax(simplex.finite_logits(np.array([[0.0, -np.inf]]), 1e-3))
    np.testing.assert_allclose(proba, [[1 / 1.001, 0.001 / 1.001]])


def test_what_is_impossible_never_outranks_what_is_not():
    out = simplex.finite_logits(np.array([[0.0, -50.0, -np.inf]]))
    np.testing.assert_array_equal(out, [[0.0, -50.0, -50.0]])


def test_the_logarithm_of_the_truth_is_the_same_for_every_kind_of_scores():
    z = np.array([[0.0, -1.0, -np.inf], [0.0, -2.0, -60.0], [3.0, 1.0, 2.0]])
    y = np.array([2, 2, 1])
    proba = simplex.softmax(z)
    expected = [np.log(1e-12), np.log(1e-12), np.log(proba[2, 1])]
    for scores, inputs in ((z, "logits"), (proba, "proba"), (simplex.log_of(proba), "log_proba")):
        np.testing.assert_allclose(simplex.log_true_class(scores, y, inputs), expected)


def test_centering_removes_a_constant_of_the_row(rng):
    z = rng.normal(size=(5, 4))
    np.testing.assert_allclose(simplex.centered(z + 7.0), simplex.centered(z), atol=1e-12)
    np.testing.assert_allclose(simplex.centered(z).sum(1), 0, atol=1e-12)


def test_logarithms_are_clipped_on_both_sides_and_not_renormalised():
    out = simplex.log_clipped(np.array([[0.0, 1.0, 0.5]]), 1e-3)
    np.testing.assert_allclose(out, np.log([[1e-3, 1 - 1e-3, 0.5]]), rtol=1e-15)


def test_a_loss_is_floored_only_from_below():
    np.testing.assert_allclose(
        simplex.log_floored(np.array([0.0, 1.0]), 1e-12), [np.log(1e-12), 0.0]
    )


def test_log_odds_are_exact_at_both_ends_of_the_interval():
    p = np.array([1e-9, 0.5, 1 - 1e-9])
    np.testing.assert_allclose(simplex.log_odds(p, 1e-12), special.logit(p), rtol=1e-12, atol=1e-15)
    assert np.isfinite(simplex.log_odds(np.array([0.0, 1.0]), 1e-12)).all()


def test_inputs_are_left_alone(rng):
    z = rng.normal(size=(5, 4))
    z.flags.writeable = False
    for function in (
        simplex.softmax,
        simplex.log_softmax,
        simplex.centered,
        simplex.finite_logits,
    ):
        function(z)


def test_sigmoids_and_their_logarithms_agree_with_scipy(rng):
    z = np.concatenate([rng.normal(scale=20, size=200), [-800.0, 0.0, 800.0]])
    np.testing.assert_allclose(simplex.sigmoid(z), special.expit(z), rtol=1e-13)
    log_p, log_rest = simplex.log_sigmoids(z)
    np.testing.assert_allclose(log_p, special.log_expit(z), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(log_rest, special.log_expit(-z), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_logarithm_at_a_column_is_that_of_the_whole_softmax(rng, scale):
    z, y = scale * rng.normal(size=(30, 5)), rng.integers(5, size=30)
    np.testing.assert_allclose(
        simplex.log_softmax_at(z, y), simplex.log_softmax(z)[np.arange(30), y], rtol=1e-12
    )


def test_a_sum_with_equal_weights_is_that_with_as_many_numbers(rng):
    values = rng.normal(size=50)
    equal = np.broadcast_to(np.float64(0.5), (50,))
    assert simplex.weighted_sum(equal, values) == pytest.approx(
        simplex.weighted_sum(np.array(equal), values), rel=1e-13
    )


def test_equal_weights_have_the_total_of_others():
    equal = np.broadcast_to(np.float64(0.5), (50,))
    assert simplex.total_weight(equal) == simplex.total_weight(np.array(equal)) == 25.0
    assert simplex.total_weight(np.empty(0)) == 0.0


def test_the_true_class_is_found_in_every_layout(rng):
    scores, y = rng.normal(size=(40, 6)), rng.integers(3, size=40)
    for block in (scores, np.asfortranarray(scores), scores[:, ::2], scores[:, :3]):
        expected = [row[label] for row, label in zip(block, y, strict=True)]
        np.testing.assert_array_equal(simplex.true_class(block, y), expected)
    np.testing.assert_array_equal(
        simplex.true_class(scores[::2], y[::2]), scores[::2][range(20), y[::2]]
    )


def test_absent_options_get_probability_zero_and_do_not_shift_the_others():
    scores = np.array([[0.0, -1.0, simplex.ABSENT], [0.0, -1.0, -np.inf], [0.0, -1.0, -2.0]])
    proba = np.full((3, 3), [0.5, 0.3, 0.2])
    kept = simplex.zero_absent(proba, scores)
    np.testing.assert_allclose(kept, [[0.625, 0.375, 0.0], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    assert simplex.zero_absent(proba[2:], scores[2:]).base is proba
    only = simplex.zero_absent(np.array([[0.0, 0.0, 1.0]]), scores[:1])
    np.testing.assert_array_equal(only, [[0.5, 0.5, 0.0]])
    np.testing.assert_allclose(simplex.uniform_proba(scores)[:2], [[0.5, 0.5, 0], [1 / 3] * 3])
    np.testing.assert_allclose(simplex.centered(scores)[0, :2], [0.5, -0.5])
    assert simplex.as_proba(scores, "log_proba")[0, 2] == 0.0
    # No temperature gives mass to an absent option; a score of -inf has the floor.
    finite = simplex.finite_logits(scores)
    assert np.exp(finite[0, 2] / 20) < 1e-14
    assert np.exp(finite[1, 2] / 20) > 0.1
