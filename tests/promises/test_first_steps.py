"""First steps of new users."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import CalibratedClassifier, TemperatureScaling, compare, evaluate, metrics
from calibrant.exceptions import DataWarning
from calibrant.inference import score_decomposition

NAMES = np.array(["low", "mid", "high"])


@pytest.fixture
def levels(rng):
    """Text labels, and probabilities with columns in the order of NAMES, which is not sorted."""
    z = rng.normal(scale=2, size=(300, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    proba = np.exp(z)
    return NAMES[y], proba / proba.sum(axis=1, keepdims=True)


def test_the_error_for_the_method_sigmoid_suggests_platt():
    with pytest.raises(ValueError, match=r"Unknown method 'sigmoid'\. Did you mean 'platt'"):
        calibrant.method("sigmoid")
    with pytest.raises(ValueError, match="Did you mean 'platt'"):
        compare([0, 1], [[0.5, 0.5]] * 2, methods=["sigmoid"])


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("ece", "metrics.expected_calibration_error"),
        ("ECE", "metrics.expected_calibration_error"),
        ("brier_score", "metrics.brier_score"),
        ("reliability_diagram", "plots.ReliabilityDisplay"),
        ("ks_test", "inference.ks_test"),
    ],
)
def test_the_error_for_an_unknown_name_suggests_its_subpackage(name, home):
    with pytest.raises(AttributeError, match=f"did you mean 'calibrant.{home}'"):
        getattr(calibrant, name)


def test_the_error_for_a_name_without_similar_names_has_no_suggestion():
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'$"):
        _ = calibrant.xyzzy


def test_rounded_probabilities_cause_one_warning():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.full(3, 9.0), 200).round(4), rng.integers(0, 3, 200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = TemperatureScaling().fit(proba, labels)
        model.predict_proba(proba)
        evaluate(labels, proba)
        metrics.log_loss(labels, proba)
        assert len(caught) == 1
        evaluate(labels, proba.round(2))  # other data
        assert len(caught) == 2


def test_rounded_probabilities_raise_an_error_at_every_call_if_warnings_are_errors():
    proba, labels = np.array([[0.3333, 0.3333, 0.3333]] * 20), np.arange(20) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(DataWarning, match="do not sum to 1 because of rounding"):
                evaluate(labels, proba)


def test_columns_that_are_not_in_the_order_of_the_sorted_labels_raise_an_error(levels):
    labels, proba = levels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"Pass classes=\['low', 'mid', 'high'\]"):
            evaluate(labels, proba)
    assert evaluate(labels, proba, classes=NAMES).accuracy > 0.6
    with pytest.warns(DataWarning, match="in sorted order"):
        evaluate(labels, proba[:, [2, 0, 1]])
    shuffled = np.random.default_rng(1).permutation(labels)
    with pytest.warns(DataWarning, match="in sorted order"):
        evaluate(shuffled, proba)  # no order agrees with these


def test_a_score_decomposition_shows_class_names(levels):
    labels, proba = levels
    result = score_decomposition(labels, proba, classes=NAMES, rng=0)
    assert "class high" in str(result)
    assert [claim["name"] for claim in result.to_dict()["claims"]] == [
        "class low",
        "class mid",
        "class high",
    ]


@pytest.mark.parametrize("model", [TemperatureScaling(), calibrant.AutoCalibration()])
def test_completion_lists_only_names_that_users_need(model):
    offered = set(dir(model))
    assert {"fit", "predict_proba", "explain", "inputs"} <= offered
    internal = {"check_exceptions", "counts_rows", "fitted_values", "needs_rows", "remedies"}
    assert not internal & offered


def test_averages_of_single_precision_probabilities_sum_to_one(rng):
    class Single(GaussianNB):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    X, y = rng.normal(size=(120, 4)), rng.integers(0, 3, 120)
    model = CalibratedClassifier(Single(), "identity").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)
