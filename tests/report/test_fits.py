"""The fits of a report, and held-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._data.read import as_sample
from calibrant.report import summarize
from calibrant.report._fits import after_of, before_of, check_calibration, fit_rows
from calibrant.report._request import Request
from calibrant.report._rows import read_rows


def request_of(calibrator, inputs="proba", cv=3):
    request = Request(calibrator, inputs, "method", "data", None, None, cv, 15, 99, 0)
    return request.set_up(np.arange(4))


def rows_of(scores, labels, inputs="proba", columns=()):
    return read_rows(as_sample(scores, labels, inputs=inputs, columns=columns)[0], 0)


def test_rows_are_predicted_by_the_fit_of_the_fold_that_holds_them_out(data):
    rows = rows_of(*data)
    fits = fit_rows(rows, None, request_of(calibrant.VectorScaling()))
    chunk = fits.predictor.predict(rows.sample)
    fold = fits.predictor.fold_of(chunk)
    assert fits.n_folds == 3
    for number, fit in enumerate(fits.predictor.fits):
        held_out = fold == number
        expected = fit.predict_proba(data[0][held_out])
        np.testing.assert_allclose(after_of(chunk).u[held_out], expected)
        other = calibrant.VectorScaling().fit(data[0][~held_out], data[1][~held_out])
        np.testing.assert_allclose(fit.coef_, other.coef_, rtol=1e-4)


def test_rows_to_fit_on_predict_all_others(data):
    proba, labels = data
    training, rows = rows_of(proba[:300], labels[:300]), rows_of(proba[300:], labels[300:])
    fits = fit_rows(rows, training, request_of(calibrant.TemperatureScaling()))
    assert fits.is_held_out
    assert fits.predictor.fits == [fits.model]
    assert fits.class_weights.sum() == 300
    after = after_of(fits.predictor.predict(rows.sample)).u
    np.testing.assert_allclose(after, fits.model.predict_proba(proba[300:]))


def test_predictions_keep_the_columns_of_their_rows(data):
    logits, group = np.log(data[0]), np.arange(len(data[1]))
    rows = rows_of(logits, data[1], "logits", (group,))
    fits = fit_rows(rows, None, request_of(calibrant.TemperatureScaling(), "logits"))
    chunk = fits.predictor.predict(rows.sample)
    np.testing.assert_allclose(before_of(chunk).u, data[0], atol=1e-12)
    for half in (before_of(chunk), after_of(chunk)):
        assert half.columns == (group,)


def test_a_calibrator_is_fitted_once_on_all_rows_and_once_per_fold(data, calls):
    proba, labels = data
    calls.watch(calibrant.VectorScaling, "_fit")
    summarize(labels, proba, calibrator=calibrant.VectorScaling(), cv=4, n_resamples=99)
    assert calls["_fit"] == 5


def test_a_calibrator_that_remembers_its_rows_does_not_improve_held_out_rows(data, metric):
    proba, labels = data
    binning = calibrant.HistogramBinning(n_bins=200, boundary="include")
    memory = calibrant.MulticlassToBinary(
        binning, notion="class-wise", normalize=True
    )  # three rows per bin
    report = summarize(labels, proba, calibrator=memory, n_resamples=99)
    in_sample = calibrant.evaluate(labels, memory.fit(proba, labels).predict_proba(proba))
    assert metric(report, "brier_score").after.value > 1.3 * in_sample.brier_score
    assert report.conclusion == "bad"


def test_fits_that_did_not_converge_are_noted(data, monkeypatch):
    monkeypatch.setattr(
        "calibrant.report._fits.convergence_note",
        lambda owner, fits, what=None: f"{owner}: {len(fits)} {what}",
    )
    fits = fit_rows(rows_of(*data), None, request_of(calibrant.TemperatureScaling()))
    assert fits.notes == ("TemperatureScaling: 1 None", "TemperatureScaling: 3 folds")


def test_the_summary_of_the_fit_is_that_of_fit(data):
    fits = fit_rows(rows_of(*data), None, request_of(calibrant.TemperatureScaling()))
    assert fits.model.training_ == calibrant.TemperatureScaling().fit(*data).training_


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        (lambda proba, y: (proba,), "must be .scores, labels."),
        (lambda proba, y: (np.full((10, 3), 1 / 3), y[:10]), "calibration rows have 3 columns"),
        (lambda proba, y: (proba, y[:10]), "labels have 10 rows, but the scores have 600 rows"),
    ],
)
def test_rows_to_fit_on_must_match(data, calibration, message):
    with pytest.raises(ValueError, match=message):
        check_calibration(calibration(*data), np.arange(4), "proba")
