"""Fits on training rows, and scores of held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from calibrant.classifier._training import TrainingData, concatenate_parts, pool_parts

X, Y = load_iris(return_X_y=True)
EVEN, ODD = np.arange(0, 150, 2), np.arange(1, 150, 2)


def data(weight=None, groups=None):
    return TrainingData(X, Y, Y, weight, np.arange(3), groups)


def test_a_clone_is_fitted_on_one_half_and_scores_the_other():
    estimator = GaussianNB()
    part = data().fit_and_score(estimator, (EVEN, ODD), {})
    expected = GaussianNB().fit(X[EVEN], Y[EVEN]).predict_proba(X[ODD])
    np.testing.assert_allclose(part.scores, expected, atol=1e-10)
    assert part.response.n_rows == 75
    assert not hasattr(estimator, "classes_")


def test_parameters_with_a_value_per_row_are_cut_to_the_rows():
    weight = np.linspace(0.5, 2.0, 150)
    response = data(weight).fit(GaussianNB(), EVEN, {"sample_weight": weight})
    expected = GaussianNB().fit(X[EVEN], Y[EVEN], sample_weight=weight[EVEN])
    np.testing.assert_allclose(response.estimator.theta_, expected.theta_)
    assert response.n_rows == pytest.approx(weight[EVEN].sum())


def test_pooled_parts_are_in_the_order_of_the_rows():
    parts = [data().fit_and_score(GaussianNB(), split, {}) for split in ((EVEN, ODD), (ODD, EVEN))]
    pooled = pool_parts(parts[0].response, parts)
    assert pooled.rows.tolist() == list(range(150))
    np.testing.assert_array_equal(pooled.scores[ODD], parts[0].scores)


def test_calibration_rows_carry_codes_weights_and_groups():
    weight, groups = np.arange(1.0, 151.0), np.arange(150) // 3
    whole = data(weight, groups)
    parts = [whole.fit_and_score(GaussianNB(), split, {}) for split in ((EVEN, ODD), (ODD, EVEN))]
    rows = concatenate_parts([whole.calibration_rows(part) for part in parts])
    order = np.concatenate([ODD, EVEN])
    np.testing.assert_array_equal(rows.codes, Y[order])
    np.testing.assert_array_equal(rows.weight, weight[order])
    np.testing.assert_array_equal(rows.groups, groups[order])
    assert concatenate_parts([data().calibration_rows(part) for part in parts]).groups is None


def test_a_fold_of_weight_zero_is_rejected():
    weight = np.ones(150)
    weight[ODD] = 0.0
    whole = data(weight)
    with pytest.raises(ValueError, match="All rows of a fold have weight zero"):
        whole.calibration_rows(whole.fit_and_score(GaussianNB(), (EVEN, ODD), {}))


def test_the_class_prior_counts_weights():
    assert data().class_prior.tolist() == pytest.approx([1 / 3] * 3)
    weight = np.where(Y == 0, 2.0, 1.0)
    assert data(weight).class_prior.tolist() == pytest.approx([0.5, 0.25, 0.25])
