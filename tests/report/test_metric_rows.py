"""The rows of the table of metrics."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant.report import summarize


def test_the_numbers_before_are_those_of_evaluate(report, data, metric):
    proba, labels = data
    expected = calibrant.evaluate(labels, proba)
    for name in ("accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "ks"):
        assert metric(report, name).before.value == pytest.approx(
            getattr(expected, name), rel=1e-9
        ), name


def test_the_numbers_of_held_out_rows_are_those_of_the_fitted_calibrator(data, metric):
    proba, labels = data
    fit, test = slice(0, 300), slice(300, None)
    report = summarize(
        labels[test],
        proba[test],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(proba[fit], labels[fit]),
        n_resamples=99,
    )
    model = calibrant.TemperatureScaling().fit(proba[fit], labels[fit])
    expected = calibrant.evaluate(labels[test], model.predict_proba(proba[test]))
    assert metric(report, "log_loss").after.value == pytest.approx(expected.log_loss, rel=1e-9)


def test_intervals_hold_their_estimate(report):
    for row in report.metrics:
        for estimate in (row.before, row.after):
            if estimate.low is not None:
                assert estimate.low <= estimate.value <= estimate.high, row.name


def test_intervals_of_means_are_those_of_the_bootstrap(report, data, metric):
    proba, labels = data
    expected = calibrant.inference.bootstrap_interval(
        "log_loss", labels, proba, n_resamples=199, rng=0
    )
    before = metric(report, "log_loss").before
    assert (before.low, before.high) == (expected.low, expected.high)


def test_means_of_fractional_weights_have_no_interval(data, metric):
    proba, labels = data
    weight = np.linspace(0.1, 1.9, len(labels))
    options = {"calibrator": calibrant.Identity(), "n_resamples": 9}
    report = summarize(labels, proba, sample_weight=weight, **options)
    assert metric(report, "accuracy").before.low is None
    assert metric(report, "class-wise-l2").before.low is not None


def test_titles_are_those_of_the_metrics(report):
    titles = {row.name: row.title for row in report.metrics}
    assert titles["conf_ece"] == "ECE, confidence"
    assert titles["log_loss"] == "Log-loss"
    better = {row.name: row.better for row in report.metrics}
    assert (better["accuracy"], better["ks"]) == ("higher", "lower")
    assert better["confidence_on_errors"] == "neither"
