"""The content of a report: the numbers of the library, and sentences that follow from them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant
from calibrant.report import summarise, to_html, to_json, to_markdown


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    logits = rng.normal(scale=2.0, size=(600, 4))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    return proba, labels


@pytest.fixture(scope="module")
def report(data):
    proba, labels = data
    calibrator = calibrant.TemperatureScaling()
    return summarise(labels, proba, calibrator=calibrator, method="temperature", n_resamples=199)


def metric(report, name):
    return next(row for row in report.metrics if row.name == name)


def test_the_numbers_before_are_those_of_evaluate(report, data):
    proba, labels = data
    expected = calibrant.evaluate(labels, proba)
    for name in ("accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "ks"):
        assert metric(report, name).before.value == pytest.approx(
            getattr(expected, name), rel=1e-9
        ), name


def test_rows_are_judged_by_maps_that_have_not_seen_them(data):
    proba, labels = data
    binning = calibrant.HistogramBinning(n_bins=200, boundary="include")
    memory = calibrant.MulticlassToBinary(
        binning, notion="class-wise", normalize=True
    )  # three rows a bin
    made = summarise(labels, proba, calibrator=memory, n_resamples=99)
    own = calibrant.evaluate(labels, memory.fit(proba, labels).predict_proba(proba))
    assert metric(made, "brier_score").after.value > 1.3 * own.brier_score
    assert made.judgement == "bad"


def test_held_out_rows_are_judged_by_the_fitted_map(data):
    proba, labels = data
    fit, judge = slice(0, 300), slice(300, None)
    made = summarise(
        labels[judge],
        proba[judge],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(proba[fit], labels[fit]),
        n_resamples=99,
    )
    model = calibrant.TemperatureScaling().fit(proba[fit], labels[fit])
    expected = calibrant.evaluate(labels[judge], model.predict_proba(proba[judge]))
    assert metric(made, "log_loss").after.value == pytest.approx(expected.log_loss, rel=1e-9)
    assert "fitted on 300 calibration rows and judged on 300 others" in made.how[0]


def test_intervals_hold_their_estimate(report):
    for row in report.metrics:
        for estimate in (row.before, row.after):
            if estimate.low is not None:
                assert estimate.low <= estimate.value <= estimate.high, row.name


def test_the_verdict_follows_from_the_gain(report, data):
    assert report.judgement == "good"
    assert report.verdict.startswith("Overconfident: ")
    proba, _ = data
    honest = calibrant.datasets.draw_labels(proba, rng=0)
    made = summarise(honest, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert made.judgement == "mixed"
    assert "not certain" in made.verdict


def test_reliability_curves_are_those_of_the_metric(report, data):
    proba, labels = data
    table = calibrant.metrics.calibration_curve(labels, proba, notion="class-wise")
    chosen = next(
        one for one in report.reliability if (one.notion, one.column) == ("class-wise", 2)
    )
    some = table.weight[2] > 0
    np.testing.assert_allclose(chosen.before.frequency, table.mean_outcome[2][some], atol=1e-5)
    np.testing.assert_allclose(chosen.before.count, table.weight[2][some])
    assert {one.notion for one in report.reliability} == {"confidence", "top-label", "class-wise"}


def test_the_ks_graph_ends_at_the_mean_gap_and_reaches_the_error(report, data):
    proba, labels = data
    gap = (proba.argmax(axis=1) == labels).mean() - proba.max(axis=1).mean()
    assert report.ks.before[-1] == pytest.approx(gap, abs=1e-5)
    # The graph has 200 points of 600 rows; between two of them it moves by at most three rows.
    assert np.abs(report.ks.before).max() == pytest.approx(report.ks.before_error, abs=3 / 600)


def test_a_decomposition_adds_up(report):
    assert sum(report.decomposition.before) == pytest.approx(
        metric(report, "log_loss").before.value, rel=1e-9
    )
    assert sum(report.decomposition.after) == pytest.approx(
        metric(report, "log_loss").after.value, rel=1e-9
    )


def test_warnings_name_what_is_wrong(data):
    proba, labels = data
    kept = (labels != 3) | (np.arange(len(labels)) < 20)
    fit = kept & (np.arange(len(labels)) >= 20)
    coarse = np.round(proba, 1)
    coarse[:, 0] += 1 - coarse.sum(axis=1)
    usable = coarse[:, 0] >= 0
    made = summarise(
        labels[usable],
        coarse[usable],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(coarse[fit & usable], labels[fit & usable]),
        classes=None,
        n_resamples=99,
    )
    said = " ".join(made.warnings)
    for part in (
        "Never seen in the calibration rows: 3",
        "Label shift",
        "Ties",
        "probability of exactly 0",
    ):
        assert part in said


def test_few_rows_have_no_guarantee_and_a_warning(data):
    proba, labels = data
    made = summarise(
        labels[:40], proba[:40], calibrator=calibrant.TemperatureScaling(), n_resamples=99
    )
    assert made.guarantee is None
    assert any("Few calibration rows" in line for line in made.warnings)
    for form in (to_html, to_markdown):
        assert "too few calibration rows for a distribution-free guarantee" in form(made)


def test_an_error_that_is_not_about_few_rows_is_not_hidden(data, monkeypatch):
    def broken(self, alpha):
        raise ValueError("something else is wrong")

    monkeypatch.setattr(calibrant.MulticlassToBinary, "guarantee", broken)
    with pytest.raises(ValueError, match="something else"):
        summarise(data[1], data[0], calibrator=calibrant.Identity(), n_resamples=9)


def test_titles_are_those_of_the_metrics(report):
    titles = {row.name: row.title for row in report.metrics}
    assert titles["conf_ece"] == "ECE, confidence"
    assert titles["log_loss"] == "Log-loss"
    better = {row.name: row.better for row in report.metrics}
    assert (better["accuracy"], better["ks"]) == ("higher", "lower")
    assert better["overconfidence"] == "neither"


def test_the_same_seed_gives_the_same_report(report, data):
    proba, labels = data
    again = summarise(
        labels,
        proba,
        calibrator=calibrant.TemperatureScaling(),
        method="temperature",
        n_resamples=199,
    )
    assert to_json(again) == to_json(report)


def test_the_code_to_repeat_it_runs(report, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = []
    proba, labels = data
    exec(report.code, {"scores": proba, "labels": labels, "print": printed.append})
    assert printed[0] == calibrant.evaluate(labels, proba)
    assert calibrant.load("model.json").temperature_ > 1


def test_json_holds_everything_that_html_and_markdown_say(report):
    content = json.loads(to_json(report))
    assert content["schema"] == "calibrant.report/1"
    assert content["verdict"] in to_html(report).replace("&#x27;", "'")
    assert content["verdict"] in to_markdown(report)
    for row in content["metrics"]:
        shown = f"{row['after']['value']:.4f}"
        assert shown in to_html(report)
        assert shown in to_markdown(report)


def test_the_map_is_fitted_once_for_all_rows_and_once_a_fold(data, calls):
    proba, labels = data
    calls.watch(calibrant.VectorScaling, "_fit")
    summarise(labels, proba, calibrator=calibrant.VectorScaling(), cv=4, n_resamples=99)
    assert calls["_fit"] == 5


def test_a_report_says_how_to_write_about_the_map(report):
    (line,) = [text for text in report.how if text.startswith("To write about it")]
    assert "temperature scaling (Guo et al. 2017), fitted to 600 rows of 4 classes" in line
    assert "arXiv:1706.04599" in line


def test_the_chance_in_an_error_is_said_to_be_that_of_the_rows_that_were_tested(
    report, data, monkeypatch
):
    proba, labels = data
    assert "rows" not in metric(report, "conf_ece").note
    monkeypatch.setattr("calibrant.report._summarise._TESTED_ROWS", 200)
    made = summarise(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert metric(made, "conf_ece").note.endswith("with 200 rows, less with all")
