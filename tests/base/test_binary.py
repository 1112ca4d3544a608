"""`BaseBinaryCalibrator`: one claim is one column."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import BetaCalibration, HistogramBinning, IsotonicCalibration, PlattScaling
from calibrant.base import BaseBinaryCalibrator
from calibrant.notions import Claim

EVERY_FORM = [PlattScaling(), BetaCalibration(), IsotonicCalibration(), HistogramBinning(n_bins=4)]


def _claim(rng, n=200):
    score = rng.random(n)
    return score, (rng.random(n) < score**2).astype(float), rng.integers(0, 3, n).astype(float)


def _fit_claim(calibrator, score, outcome, weight):
    calibrator._fit_claims([calibrator], [Claim(0, slice(None), score, outcome, weight)])
    return calibrator


@pytest.mark.parametrize("calibrator", EVERY_FORM, ids=lambda c: type(c).__name__)
def test_a_claim_of_one_column_is_fitted_and_predicted_as_two_columns_are(rng, calibrator):
    score, outcome, weight = _claim(rng)
    two = calibrator.fit(np.column_stack([1 - score, score]), outcome.astype(int), weight)
    prior, expected = two.class_prior_, two.predict_proba(score)[:, 1]
    one = _fit_claim(calibrator, score, outcome, weight)
    np.testing.assert_array_equal(one._predict_claim(score), expected)
    np.testing.assert_array_equal(one.class_prior_, prior)
    assert (one.n_classes_, one.n_features_in_, one.classes_.tolist()) == (2, 1, [0, 1])


def test_prediction_of_a_claim_makes_no_second_column(rng):
    class OneColumn(IsotonicCalibration):
        def _proba_of(self, scores):
            raise AssertionError("a claim is one column")

    score, outcome, weight = _claim(rng)
    assert _fit_claim(OneColumn(), score, outcome, weight)._predict_claim(score).shape == (200,)


def test_parameters_are_checked_before_a_claim_is_fitted(rng):
    with pytest.raises(ValueError, match="strategy must be one of"):
        _fit_claim(HistogramBinning(strategy="no"), *_claim(rng))


def test_each_claim_has_a_seed_of_its_own_that_its_index_decides():
    base = HistogramBinning(random_state=7)
    seeds = [base._for_claim(None, index).random_state for index in (0, 1, 0)]
    assert seeds[0] == seeds[2] != seeds[1]
    assert base.random_state == 7


def test_claims_of_a_generator_have_seeds_and_leave_it_where_it_was():
    generator = np.random.default_rng(3)
    state = generator.bit_generator.state
    base = HistogramBinning(random_state=generator)
    first = base._for_claim(0, 0).random_state
    assert isinstance(first, int)
    assert first == base._for_claim(0, 0).random_state
    assert generator.bit_generator.state == state


def test_without_a_seed_a_claim_has_none():
    assert HistogramBinning()._for_claim(0, 3).random_state is None
    assert isinstance(PlattScaling()._for_claim(0, 3), PlattScaling)


def test_points_per_bin_of_a_class_are_those_of_its_claim_and_the_most_of_a_pooled_one():
    base = HistogramBinning(points_per_bin=[10, 30, 20])
    adapted = [base._for_claim(label, 0) for label in (0, 1, None)]
    assert [a.points_per_bin for a in adapted] == [10, 30, 30]
    assert [a._rows_needed() for a in adapted] == [10, 30, 30]


def test_rows_needed_are_two_unless_a_method_says_otherwise():
    assert PlattScaling()._rows_needed() == 2
    assert HistogramBinning(n_bins=1)._rows_needed() == 2
    assert HistogramBinning(n_bins=12)._rows_needed() == 12


@pytest.mark.parametrize(
    ("points", "by_class", "message"),
    [
        ([5, 5], True, "one for each of the 3 classes"),
        ([5, 5, 0], True, "points_per_bin must be an integer"),
        ([5, 5, 5], False, "this type of calibration has no binary problem per class"),
        (0, False, "points_per_bin must be an integer"),
    ],
)
def test_points_per_bin_that_do_not_suit_the_claims_are_rejected(points, by_class, message):
    with pytest.raises(ValueError, match=message):
        HistogramBinning(points_per_bin=points)._check_for_claims(3, by_class=by_class)


def test_three_classes_are_rejected_with_the_reduction_that_takes_them(rng):
    with pytest.raises(ValueError, match=r"MulticlassToBinary\(PlattScaling\(\)"):
        PlattScaling().fit(rng.dirichlet(np.ones(3), 20), np.arange(20) % 3)


def test_logits_are_lifted_to_the_form_of_the_method(rng):
    class Seen(BaseBinaryCalibrator):
        def __init__(self, *, inputs="proba", classes=None):
            self.inputs, self.classes = inputs, classes

        def _fit(self, claim):
            self.seen_ = claim.score

        def _predict(self, score):
            return score

    logits = rng.normal(size=30)
    y = np.arange(30) % 2
    np.testing.assert_allclose(
        Seen(inputs="logits").fit(logits, y).seen_, 1 / (1 + np.exp(-logits)), rtol=1e-14
    )
