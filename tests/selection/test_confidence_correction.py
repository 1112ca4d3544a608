"""Spline calibration of the confidence of a stacked ensemble."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import AutoCalibration, SplineCalibration, metrics
from calibrant.export import program
from calibrant.selection._confidence_correction import (
    EnsembleRows,
    corrected_likelihood,
    fit_correction,
)


def draw_labels(proba, rng):
    return (rng.random((len(proba), 1)) < proba.cumsum(axis=1)).argmax(axis=1)


def flat_confidence(n_rows, rng, n_classes=4):
    """The predicted class is correct in 60% of the rows, whatever its probability is."""
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    rows, top = np.arange(n_rows), proba.argmax(axis=1)
    truth = proba.copy()
    truth[rows, top] = 0.0
    truth *= 0.4 / truth.sum(axis=1, keepdims=True)
    truth[rows, top] = 0.6
    return proba, draw_labels(truth, rng)


def ensemble_rows(proba, labels):
    rows, top = np.arange(len(labels)), proba.argmax(axis=1)
    return EnsembleRows(
        top, proba[rows, top], proba[rows, labels], labels, np.ones(len(rows)), rows % 5
    )


def test_each_group_is_corrected_by_the_fit_of_the_other_groups(rng):
    proba, labels = flat_confidence(300, rng)
    result = corrected_likelihood(ensemble_rows(proba, labels), 4)
    top, confidence = proba.argmax(axis=1), proba.max(axis=1)
    held_out = np.arange(300) % 5 == 2
    fitted = SplineCalibration().fit(confidence[~held_out], (top == labels)[~held_out].astype(int))
    after = np.clip(fitted.predict_proba(confidence[held_out])[:, 1], 1 / 242, 241 / 242)
    other = proba[np.arange(300), labels][held_out] / (1 - confidence[held_out]) * (1 - after)
    expected = np.where((top == labels)[held_out], after, other)
    np.testing.assert_allclose(result[held_out], expected)


def test_the_calibrator_gives_the_likelihood_that_is_evaluated(rng):
    """One group evaluates the fit of the other group, which has the same rows."""
    proba, labels = (np.concatenate([one, one]) for one in flat_confidence(100, rng))
    rows = ensemble_rows(proba, labels)._replace(group=np.arange(200) // 100)
    fitted = fit_correction(ensemble_rows(proba[:100], labels[:100]), 4)
    expected = fitted.predict_proba(proba)[np.arange(200), labels]
    # The calibrator also keeps other classes below the predicted one, which changes a few rows.
    is_close = np.isclose(corrected_likelihood(rows, 4), expected, rtol=1e-9)
    assert is_close.mean() > 0.8


def test_the_calibrator_corrects_the_confidence(rng):
    fitted = fit_correction(ensemble_rows(*flat_confidence(3000, rng)), 4)
    new, labels = flat_confidence(4000, rng)
    after = fitted.predict_proba(new)
    assert metrics.log_loss(labels, after) < metrics.log_loss(labels, new)
    before = metrics.expected_calibration_error(labels, new)
    assert metrics.expected_calibration_error(labels, after) < 0.4 * before


def test_a_confidence_of_one_leaves_a_positive_likelihood():
    result = corrected_likelihood(ensemble_rows(np.eye(3)[[0] * 20], np.arange(20) % 3), 3)
    assert result.min() > 0
    assert np.isfinite(result).all()


def test_a_calibrated_confidence_is_left_alone(rng):
    proba = rng.dirichlet(np.ones(4), size=600)
    model = AutoCalibration().fit(proba, draw_labels(proba, rng))
    assert model.top_ is None
    assert model.top_weights_.sum() == 0


def test_one_row_is_not_corrected():
    assert AutoCalibration(classes=[0, 1]).fit([[0.6, 0.4]], [0]).top_ is None


@pytest.fixture(scope="module")
def corrected():
    """An ensemble of only the identity, whose confidence is corrected."""
    return AutoCalibration([]).fit(*flat_confidence(800, np.random.default_rng(0)))


def test_the_confidence_is_calibrated_and_the_log_loss_lower(corrected, rng):
    new, labels = flat_confidence(4000, rng)
    after = corrected.predict_proba(new)
    np.testing.assert_allclose(after.sum(axis=1), 1.0)
    assert metrics.log_loss(labels, after) < metrics.log_loss(labels, new)
    # Part of the weight stays on the members, so the error is not that of the calibrator alone.
    before = metrics.expected_calibration_error(labels, new)
    assert metrics.expected_calibration_error(labels, after) < 0.5 * before


def test_the_gain_includes_the_correction(corrected, rng):
    new, labels = flat_confidence(4000, rng)
    after = metrics.log_loss(labels, corrected.predict_proba(new))
    gain = corrected.gain_
    assert gain.low < metrics.log_loss(labels, new) - after < gain.high


def test_the_prediction_is_an_average_of_members_and_the_corrected_ensemble(corrected, rng):
    new, _ = flat_confidence(50, rng)
    share = corrected.top_weights_.sum()
    assert 0.5 < share < 1
    assert corrected.weights_.sum() == pytest.approx(1.0)
    members = np.stack([new, np.full_like(new, 0.25)])
    ensemble = np.tensordot(corrected.top_weights_ / share, members, axes=1)
    plain = np.tensordot(corrected.weights_ - corrected.top_weights_, members, axes=1)
    expected = plain + share * corrected.top_.predict_proba(ensemble)
    np.testing.assert_allclose(corrected.predict_proba(new), expected, atol=1e-12)


def test_the_summary_names_the_correction(corrected):
    text = f"The confidence is corrected for {corrected.top_weights_.sum():.0%} of the weight"
    assert text in corrected.explain()


def test_the_correction_is_saved_and_exported(corrected, tmp_path, rng):
    new, _ = flat_confidence(50, rng)
    calibrant.save(corrected, tmp_path / "model.json")
    loaded = calibrant.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(new), corrected.predict_proba(new))
    assert loaded.explain() == corrected.explain()
    np.testing.assert_allclose(program(corrected)(new), corrected.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("top_", calibrant.Identity().fit(np.full((4, 4), 0.25), [0, 1, 2, 3]), "top_ must be"),
        ("top_weights_", np.zeros(2), "top_weights_ must have a positive sum"),
    ],
)
def test_a_file_with_an_impossible_correction_is_rejected(tmp_path, name, value, message):
    model = AutoCalibration([]).fit(*flat_confidence(800, np.random.default_rng(0)))
    setattr(model, name, value)
    calibrant.save(model, tmp_path / "model.json")
    with pytest.raises(ValueError, match=message):
        calibrant.load(tmp_path / "model.json")
