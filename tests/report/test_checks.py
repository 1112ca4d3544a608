"""Tests of calibration in a report, and the decomposition."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._optim.maps import AffineMap
from calibrant.inference import consistency_test
from calibrant.inference._results import holm
from calibrant.report import summarize


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
    assert len(summarize(labels[:99], proba[:99], **options).tests) == 3
    assert len(summarize(labels, proba, sample_weight=weight, **options).tests) == 3


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
