"""Tests of calibration in a report, and the decomposition."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant
from calibrant import inference
from calibrant._optim.maps import AffineMap
from calibrant.inference import consistency_test
from calibrant.inference._results import holm
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._checks import detectable_sentence, possible_error
from calibrant.report._rows import DrawnRows


def test_tests_are_those_of_the_library(report, data):
    proba, labels = data
    expected = consistency_test(labels, proba, "conf_ece", 199, rng=0)
    row = next(test for test in report.tests if test.name == "conf_ece")
    assert (row.statistic_before, row.p_before) == (expected.statistic, expected.p_value)
    assert row.expected_before == expected.expected


def test_p_values_are_adjusted_for_their_number(report):
    adjusted = holm([test.p_after for test in report.tests])
    assert [test.p_holm_after for test in report.tests] == list(adjusted)


def test_p_values_after_cross_fitting_are_heuristic(report, data):
    proba, labels = data
    assert {test.guarantee_after for test in report.tests} == {"heuristic"}
    held_out = summarize(
        labels[300:],
        proba[300:],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(proba[:300], labels[:300]),
        n_resamples=19,
    )
    assert "heuristic" not in {test.guarantee_after for test in held_out.tests}


def test_few_rows_and_fractional_weights_have_no_kernel_test(report, data):
    proba, labels = data
    options = {"calibrator": calibrant.Identity(), "n_resamples": 9}
    weight = np.linspace(0.1, 1.9, len(labels))
    assert report.tests[-1].name == "kernel"
    assert len(summarize(labels[:99], proba[:99], **options).tests) == 4
    assert len(summarize(labels, proba, sample_weight=weight, **options).tests) == 4


def rare_class(rng, accuracy):
    """Calibrated rows of two classes, and 2% of rows that are predicted as a third with 0.9."""
    score = rng.uniform(0.5, 1, 1000)
    proba = np.column_stack([score, 1 - score, np.zeros(1000)])
    labels = (rng.random(1000) > score).astype(int)
    proba[:20] = [0.05, 0.05, 0.9]
    labels[:20] = np.where(np.arange(20) < 20 * accuracy, 2, 0)
    return labels, proba


def test_an_error_of_a_rare_predicted_class_is_detected(rng):
    labels, proba = rare_class(rng, accuracy=0.4)
    rare = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    assert next(t for t in rare.tests if t.name == "predicted-class").p_before < 1e-4
    assert "No miscalibration" not in rare.action


def test_the_verdict_names_the_largest_error_that_is_not_excluded(rng):
    labels, proba = rare_class(rng, accuracy=0.9)
    report = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    assert report.action == "No miscalibration detected; no change recommended."
    assert report.advice == "mixed"
    assert re.search(
        r"at most \d\.\d+% over all rows\. For predictions of class 2 \(20 rows\), the difference",
        report.verdict,
    )


def test_an_error_that_is_present_is_not_excluded(rng):
    labels, proba = rare_class(rng, accuracy=0.4)
    possible = possible_error(DrawnRows(proba, proba, labels, np.ones(1000)), "abc")
    assert possible.name == "c"
    assert possible.worst > 0.5
    assert 0.01 < possible.overall < 0.1


def test_the_smallest_error_that_could_have_been_detected_is_stated(rng, report, data):
    error = inference.detectable_error(data[0])
    assert report.detectable.gap == error.gap
    assert report.detectable.temperature == error.temperature
    assert report.detectable.text in to_html(report)
    assert report.detectable.text in to_markdown(report)
    labels, proba = rare_class(rng, accuracy=0.9)
    quiet = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    assert quiet.verdict.endswith(quiet.detectable.text)


def test_the_detectable_error_is_a_sentence():
    error = inference.DetectableError(600, 1.0816, 0.0213, 0.004, 0.8, 0.05)
    assert detectable_sentence(error) == (
        "The tests may miss overconfidence (mean confidence minus accuracy) below 2.13%, which "
        "corresponds to a temperature below 1.08. Even the most powerful test at level 5% misses "
        "such overconfidence in more than 20% of samples of this size."
    )
    few = inference.DetectableError(3, np.inf, 0.5, 0.2, 0.8, 0.05)
    assert detectable_sentence(few).startswith("There are too few rows to detect any")


def test_a_decomposition_adds_up(report, metric):
    assert sum(report.decomposition.before) == pytest.approx(
        metric(report, "log_loss").before.value, rel=1e-9
    )
    assert sum(report.decomposition.after) == pytest.approx(
        metric(report, "log_loss").after.value, rel=1e-9
    )


def test_the_decomposition_of_many_classes_fits_no_matrix(calls, rng):
    proba = rng.dirichlet(np.full(120, 0.1), 150)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    calls.watch(AffineMap, "apply")
    summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    assert calls["apply"] == 0
