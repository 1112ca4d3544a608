"""What sums over all rows tell."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._crossfit.scores import SCORES
from calibrant._data.read import as_sample
from calibrant.binning import merge_small_bins
from calibrant.inference import paired_gain
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.report._findings import evaluate_rows
from calibrant.report._fits import fit_rows
from calibrant.report._request import Request
from calibrant.report._rows import read_rows

NAMES = ("a", "b", "c", "d")


def findings_of(data, weight=None, training=None):
    rows = read_rows(as_sample(*data, weight)[0], 0)
    training = training and read_rows(as_sample(*training)[0], 0)
    scaling = calibrant.TemperatureScaling()
    request = Request(scaling, "proba", "method", "data", None, None, 5, 15, 99, 0).set_up(
        np.arange(4)
    )
    fits = fit_rows(rows, training, request)
    predicted = rows.sample.rescored(fits.predictor.predict)
    return evaluate_rows(rows, predicted, fits, request, NAMES)


@pytest.fixture(scope="module", params=["none", "fractions"])
def weight(request):
    return None if request.param == "none" else np.linspace(0.1, 1.9, 600)


@pytest.fixture(scope="module")
def found(data, weight):
    return findings_of(data, weight)


def test_all_rows_in_memory_are_drawn(found, data):
    drawn = found[1]
    np.testing.assert_array_equal(drawn.before, data[0])
    np.testing.assert_array_equal(drawn.y, data[1])


def test_evaluations_are_those_of_evaluate(found, data, weight):
    findings, drawn = found
    for evaluation, proba in zip(findings.evaluations, drawn.both, strict=True):
        expected = calibrant.evaluate(data[1], proba, sample_weight=weight).to_dict()
        assert evaluation.to_dict() == pytest.approx(expected, abs=1e-12)


def test_the_gap_of_confidence_is_that_of_the_rows(found):
    findings, drawn = found
    for gap, proba in zip(findings.gaps, drawn.both, strict=True):
        expected = confidence_gap(drawn.y, proba, drawn.weight)
        assert (gap.low, gap.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_gain_is_paired_over_rows(found):
    findings, drawn = found
    before, after = (SCORES["log_loss"].losses(proba, drawn.y) for proba in drawn.both)
    expected = paired_gain(before, after, drawn.weight, [0.25] * 5, score="log_loss")
    assert findings.gain.gain == pytest.approx(expected.gain, abs=1e-12)
    assert findings.gain.low == pytest.approx(expected.low, abs=0.003)  # folds are nearly equal
    assert findings.gain.interval == "nadeau-bengio"


def test_the_gain_on_held_out_rows_has_no_folds(data):
    proba, labels = data
    training = proba[:300], labels[:300]
    findings, drawn = findings_of((proba[300:], labels[300:]), training=training)
    before, after = (SCORES["log_loss"].losses(proba, drawn.y) for proba in drawn.both)
    assert findings.gain == paired_gain(before, after, drawn.weight, score="log_loss")


def test_standard_errors_are_those_of_means(data):
    findings, drawn = findings_of(data)
    for name, errors in findings.standard_errors.items():
        for error, proba in zip(errors, drawn.both, strict=True):
            losses = SCORES[name].losses(proba, drawn.y)
            assert error == pytest.approx(losses.std(ddof=1) / np.sqrt(len(losses)), rel=1e-9)


def test_one_row_has_findings_too(data):
    proba, labels = data
    findings, _ = findings_of((proba[:1], labels[:1]), training=(proba, labels))
    assert findings.n_samples == 1
    assert np.isfinite([findings.gain.low, findings.gaps[0].low]).all()


def test_the_ks_error_of_rows_in_memory_needs_no_cells(found):
    assert found[0].cell_shares == (None, None)


def test_the_ks_graph_ends_at_the_mean_gap_and_reaches_the_error(report, data):
    proba, labels = data
    gap = proba.max(axis=1).mean() - (proba.argmax(axis=1) == labels).mean()
    assert report.ks.before[-1] == pytest.approx(gap, abs=1e-5)
    # The graph has 200 points of 600 rows; between two of them it moves by at most three rows.
    assert np.abs(report.ks.before).max() == pytest.approx(report.ks.before_error, abs=3 / 600)


def test_reliability_curves_are_those_of_the_metric(report, data):
    proba, labels = data
    table = merge_small_bins(
        calibrant.metrics.calibration_curve(labels, proba, notion="class-wise")
    )
    chosen = next(
        one for one in report.reliability if (one.notion, one.column) == ("class-wise", 2)
    )
    some = table.weight[2] > 0
    np.testing.assert_allclose(chosen.before.frequency, table.mean_outcome[2][some], atol=1e-5)
    np.testing.assert_allclose(chosen.before.count, table.weight[2][some])
    assert {one.notion for one in report.reliability} == {"confidence", "top-label", "class-wise"}
