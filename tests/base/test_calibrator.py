"""`Calibrator`: what users pass is checked once, at the boundary."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import _validation
from calibrant._data.sample import ArraySample
from calibrant.base import Calibrator
from calibrant.exceptions import NotFittedError
from calibrant.testing import check_calibrator


class Blend(Calibrator):
    """Half of the scores and half of the class frequencies, in probabilities from end to end."""

    def __init__(self, *, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        self.rate_ = sample.class_weights / sample.total

    def _proba_of(self, scores):
        from calibrant._kernels.simplex import as_proba

        return (as_proba(scores, self.inputs) + self.rate_) / 2


def test_two_methods_make_a_calibrator_that_keeps_every_promise():
    check_calibrator(Blend())
    check_calibrator(Blend(inputs="logits"))


def test_a_checked_fit_is_the_fit_without_checks_and_summary(rng, monkeypatch):
    P, y = rng.dirichlet(np.ones(3), 40), np.arange(40) % 3
    expected = Blend().fit(P, y).predict_proba(P)

    def reject(*_, **__):
        raise AssertionError("checked twice")

    monkeypatch.setattr("calibrant._data.read.check_predictions", reject)
    inner = Blend()._fit_checked(ArraySample(P, y, np.ones(40)))
    np.testing.assert_array_equal(inner._proba_of(P), expected)
    assert not hasattr(inner, "training_")
    assert inner.classes_.tolist() == [0, 1, 2]


def test_class_prior_is_the_share_of_the_weights(rng):
    weight = np.array([1.0, 2.0, 0.0, 1.0])
    model = Blend().fit(rng.dirichlet(np.ones(3), 4), [0, 1, 2, 1], sample_weight=weight)
    np.testing.assert_array_equal(model.class_weights_, [1.0, 3.0, 0.0])
    np.testing.assert_array_equal(model.class_prior_, [0.25, 0.75, 0.0])
    assert model.training_.class_weights == (1.0, 3.0, 0.0)


def test_before_a_fit_there_is_no_class_prior():
    assert not hasattr(Blend(), "class_prior_")


def test_maps_that_are_put_together_add_the_rows_of_their_classes(rng):
    from sklearn.linear_model import LogisticRegression

    X, y = rng.normal(size=(90, 2)), rng.integers(3, size=90)
    model = calibrant.CalibratedClassifier(
        LogisticRegression(), calibrant.TemperatureScaling(0.25), cv=4
    ).fit(X, y)
    np.testing.assert_array_equal(model.calibrator_.class_weights_, np.bincount(y))


def test_prediction_needs_a_fit_and_the_columns_of_the_fit(rng):
    P = rng.dirichlet(np.ones(3), 9)
    for method in ("predict_proba", "predict_log_proba", "predict"):
        with pytest.raises(NotFittedError):
            getattr(Blend(), method)(P)
        with pytest.raises(ValueError, match="X has 2 columns, but Blend was fitted with 3"):
            getattr(Blend().fit(P, np.arange(9) % 3), method)(P[:, :2] / P[:, :2].sum(1)[:, None])


def test_zero_has_the_logarithm_minus_infinity_without_a_warning():
    model = calibrant.Identity().fit([[0.5, 0.5]], [0])
    np.testing.assert_array_equal(model.predict_log_proba([[1.0, 0.0]]), [[0.0, -np.inf]])


@pytest.mark.parametrize(
    ("calibrator", "logits"),
    [
        (calibrant.Identity(inputs="logits"), [[0.0, 2000.0]]),
        (calibrant.TemperatureScaling(inputs="logits"), [[0.0, 8000.0]]),
        (calibrant.PlattScaling(inputs="logits"), [8000.0]),
        (calibrant.BetaCalibration(inputs="logits"), [8000.0]),
    ],
    ids=repr,
)
def test_methods_in_logarithms_tell_apart_what_probabilities_cannot(rng, calibrator, logits):
    z = rng.normal(size=(200, 2))
    y = (z[:, 1] - z[:, 0] + rng.logistic(size=200) > 0).astype(int)
    model = calibrator.fit(z, y)
    assert model.predict_proba(logits)[0, 0] == 0
    lowest = model.predict_log_proba(logits)[0, 0]
    assert np.isfinite(lowest)
    assert lowest < -1000


def test_log_proba_of_a_calibrated_classifier_is_the_logarithm(rng):
    from sklearn.linear_model import LogisticRegression

    X, y = rng.normal(size=(90, 2)), rng.integers(3, size=90)
    model = calibrant.CalibratedClassifier(
        LogisticRegression(), calibrant.IsotonicCalibration(), cv=3
    ).fit(X, y)
    np.testing.assert_array_equal(
        np.exp(model.predict_log_proba(X)) > 0, model.predict_proba(X) > 0
    )
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


SEEDED = [
    calibrant.HistogramBinning(n_bins=8, delta=0.1),
    calibrant.CanonicalBinning(n_bins=4, directions="random"),
    calibrant.GaussianProcessCalibration(n_inducing=4, n_samples=4),
    calibrant.CrossFitted(calibrant.VectorScaling(), cv=3),
    calibrant.AutoCalibration([calibrant.TemperatureScaling(0.25)], cv=3),
]


def seeded_data(calibrator, rng):
    n_classes = 2 if isinstance(calibrator, calibrant.HistogramBinning) else 3
    return rng.dirichlet(np.ones(n_classes), 90), rng.integers(n_classes, size=90)


@pytest.mark.parametrize("calibrator", SEEDED, ids=repr)
def test_a_generator_is_not_advanced_by_fit_and_refit_equals_fit(rng, calibrator):
    P, y = seeded_data(calibrator, rng)
    generator = np.random.default_rng(5)
    model = calibrator.set_params(random_state=generator)
    first = model.fit(P, y).predict_proba(P)
    np.testing.assert_array_equal(model.fit(P, y).predict_proba(P), first)
    assert generator.bit_generator.state == np.random.default_rng(5).bit_generator.state


@pytest.mark.parametrize("wrong", [np.random.RandomState(0), "seed", 1.5, True])
@pytest.mark.parametrize("calibrator", SEEDED, ids=lambda c: type(c).__name__)
def test_other_random_states_are_rejected_by_all_alike(rng, calibrator, wrong):
    P, y = seeded_data(calibrator, rng)
    with pytest.raises(TypeError, match="random_state must be an integer, a numpy"):
        calibrator.set_params(random_state=wrong).fit(P, y)


def test_data_are_checked_once(rng, monkeypatch):
    calls = []
    original = _validation.check_scores

    def counted(*args, **kwargs):
        calls.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(_validation, "check_scores", counted)
    P, y = rng.dirichlet(np.ones(3), 60), np.arange(60) % 3
    calibrant.CrossFitted(calibrant.MulticlassToBinary(calibrant.PlattScaling(), "class-wise")).fit(
        P, y
    )
    assert len(calls) == 1
