"""Risk-coverage curves of a report."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant.decisions import SelectiveClassifier
from calibrant.inference import risk_coverage
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._selective import RISKS


def test_curves_have_the_bounds_of_the_rows(report, data):
    proba, labels = data
    curve = risk_coverage(labels, proba)
    before = report.selective.before
    np.testing.assert_allclose(before.bound, curve.high, atol=1e-5)
    np.testing.assert_allclose(before.bound_coverage, curve.coverage, atol=1e-5)
    assert before.risk[-1] == pytest.approx((proba.argmax(axis=1) != labels).mean(), abs=1e-5)
    assert before.coverage[0] == pytest.approx(20 / 600, abs=1e-5)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
def test_proved_shares_are_those_of_the_selective_classifier(report, data):
    proba, labels = data
    assert [row[0] for row in report.selective.proved] == list(RISKS)
    for risk, before, _ in report.selective.proved:
        model = SelectiveClassifier(risk=risk, delta=0.1 / 4).fit(proba, labels)
        assert before == model.coverage_


def test_bounds_after_cross_fitting_are_heuristic(report, data):
    assert report.selective.guarantee_after == "heuristic"
    assert "The bounds after calibration are heuristic" in to_markdown(report)
    proba, labels = data
    held_out = summarize(
        labels[:300],
        proba[:300],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(proba[300:], labels[300:]),
        n_resamples=19,
    )
    assert held_out.selective.guarantee_after == "finite-sample"
    assert "heuristic, because the calibrator was cross-fitted" not in to_html(held_out)


def test_weighted_rows_have_no_bounds_and_a_reason(data):
    proba, labels = data
    weighted = summarize(
        labels,
        proba,
        calibrator=calibrant.Identity(),
        sample_weight=np.linspace(0.5, 2, 600),
        n_resamples=19,
    )
    assert weighted.selective is None
    for text in (to_html(weighted), to_markdown(weighted)):
        assert "There are no bounds of the error rate, because they require rows without" in text


def test_the_page_and_the_text_have_the_table_and_a_finding(report):
    page, text = to_html(report), to_markdown(report)
    for form in (page, text):
        assert "Among the most confident half of the held-out rows" in form
        assert "at most 10%" in form
        assert "Answered before" in form
    assert "hold jointly with 90% confidence" in text
