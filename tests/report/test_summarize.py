"""The content of a report: the numbers of the library, and sentences that follow from them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant
from calibrant._output import progress
from calibrant._output.numbers import format_number
from calibrant.report import count_steps, summarize, to_html, to_json, to_markdown


def test_the_verdict_follows_from_the_gain(report, data):
    assert report.conclusion == "good"
    assert report.verdict.startswith("Overconfident: ")
    proba, _ = data
    labels = calibrant.datasets.draw_labels(proba, rng=0)
    unsure = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert unsure.conclusion == "mixed"
    assert "It is uncertain whether calibration" in unsure.verdict


def test_the_improvement_is_one_figure_for_held_out_rows(data):
    """`AutoCalibration` cross-validates on its calibration rows, with another result."""
    proba, labels = data
    report = summarize(
        labels[300:], proba[300:], calibration=(proba[:300], labels[:300]), n_resamples=19
    )
    rows = {row.name: row for row in report.metrics}
    before, after = (
        format_number(value)
        for value in (rows["log_loss"].before.value, rows["log_loss"].after.value)
    )
    assert f"log-loss from {before} to {after} on held-out rows" in report.verdict
    assert "log-loss" not in report.map.text
    assert "gain" not in report.map.text


@pytest.mark.parametrize("n_rows", [80, 600])
def test_report_and_comparison_show_one_value_for_one_quantity(data, n_rows):
    proba, labels = data[0][:n_rows], data[1][:n_rows]
    report = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    names = ["log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece", "tl_ece", "ks"]
    comparison = calibrant.compare(labels, proba, methods=["temperature"], metrics=names)
    rows = {row.name: row for row in report.metrics}
    for place, name in enumerate(names):
        expected = [rows[name].before.value, rows[name].after.value]
        assert comparison.mean[0, :, place] == pytest.approx(expected, rel=1e-9)


def test_warnings_name_what_is_wrong(data):
    proba, labels = data
    kept = (labels != 3) | (np.arange(len(labels)) < 20)
    fit = kept & (np.arange(len(labels)) >= 20)
    coarse = np.round(proba, 1)
    coarse[:, 0] += 1 - coarse.sum(axis=1)
    usable = coarse[:, 0] >= 0
    report = summarize(
        labels[usable],
        coarse[usable],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(coarse[fit & usable], labels[fit & usable]),
        classes=None,
        n_resamples=99,
    )
    warnings = " ".join(report.warnings)
    for part in (
        "Classes without calibration rows: 3",
        "Label shift",
        "Ties",
        "probability of exactly 0",
    ):
        assert part in warnings


def test_the_same_seed_gives_the_same_report(report, data):
    proba, labels = data
    again = summarize(
        labels,
        proba,
        calibrator=calibrant.TemperatureScaling(),
        method="temperature",
        n_resamples=199,
    )
    assert to_json(again) == to_json(report)


def test_json_holds_everything_that_html_and_markdown_show(report):
    content = json.loads(to_json(report))
    assert content["schema"] == "calibrant.report/1"
    assert content["verdict"] in to_html(report).replace("&#x27;", "'")
    assert content["verdict"] in to_markdown(report)
    for row in content["metrics"]:
        shown = format_number(row["after"]["value"])
        assert shown in to_html(report)
        assert shown in to_markdown(report)


def test_equal_weights_do_not_make_rows_more_numerous(data):
    proba, labels = data[0][:150], data[1][:150]
    options = {"calibrator": calibrant.TemperatureScaling(), "n_resamples": 19}
    one = summarize(labels, proba, sample_weight=np.full(150, 2), **options)
    other = summarize(labels, proba, **options)
    assert (one.n_samples, one.verdict) == (150, other.verdict)
    assert [test.p_before for test in one.tests] == [test.p_before for test in other.tests]


def test_scores_that_do_not_match_their_labels_are_rejected(data):
    proba, labels = data
    with pytest.raises(ValueError, match="labels have 599 rows, but the scores have 600 rows"):
        summarize(labels[:-1], proba, calibrator=calibrant.Identity())


def test_top_scores_are_rejected(data):
    proba, labels = data
    order = np.argsort(-proba, axis=1)[:, :2]
    top = calibrant.TopScores(order, np.log(np.take_along_axis(proba, order, 1)), n_classes=4)
    with pytest.raises(TypeError, match="TopScores contain only the top 2"):
        summarize(labels, top, calibrator=calibrant.Identity())


@pytest.mark.parametrize("is_held_out", [True, False])
def test_the_steps_of_a_report_are_counted(data, monkeypatch, is_held_out):
    started = []
    token = progress._next_step.set(started.append)
    try:
        summarize(
            data[1],
            data[0],
            calibrator=calibrant.TemperatureScaling(),
            calibration=data if is_held_out else None,
            cv=3,
            n_resamples=19,
        )
    finally:
        progress._next_step.reset(token)
    assert len(started) == count_steps(0 if is_held_out else 3)


def test_rows_of_one_class_give_no_recommendation(data):
    proba, labels = data
    rows, scaling = labels == 3, calibrant.TemperatureScaling()
    report = summarize(
        labels[rows].repeat(3), proba[rows].repeat(3, axis=0), calibrator=scaling, n_resamples=19
    )
    assert report.action.startswith("No recommendation is possible, because all rows belong to")
    assert report.advice == "bad"
