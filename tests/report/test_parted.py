"""Reports of rows that come in parts."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import AutoCalibration, TemperatureScaling, evaluate
from calibrant.io import RowBlocks
from calibrant.report import _parted, summarise, to_html

N_ROWS, CV = 3000, 3
NAMES = ["ant", "bee", "cat"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(N_ROWS, 3))
    y = (0.5 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, np.array(NAMES)[y]


def in_blocks(logits, labels, weight=None, size=700):
    def read():
        for start in range(0, len(labels), size):
            rows = slice(start, start + size)
            yield logits[rows], labels[rows], None if weight is None else weight[rows]

    return RowBlocks(read, classes=NAMES)


def report_of(data, **how):
    blocks = in_blocks(*data)
    options = {"calibrator": TemperatureScaling(), "inputs": "logits", "cv": CV, "n_resamples": 49}
    return summarise(blocks.labels, blocks.scores, **{**options, **how})


@pytest.fixture(scope="module")
def report(data):
    return report_of(data)


@pytest.fixture(scope="module")
def both(data):
    """Evaluations of all rows, before and after maps of the other folds."""
    logits, labels = data
    fold, after = np.arange(N_ROWS) // 60 % CV, np.empty(logits.shape)
    for k in range(CV):
        fitted = TemperatureScaling(inputs="logits", classes=NAMES)
        fitted.fit(logits[fold != k], labels[fold != k])
        after[fold == k] = fitted.predict_proba(logits[fold == k])
    return (
        evaluate(labels, logits, inputs="logits", classes=NAMES),
        evaluate(labels, after, classes=NAMES),
    )


def metric(report, name):
    return next(row for row in report.metrics if row.name == name)


@pytest.mark.parametrize(
    "name", ["accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "mce"]
)
def test_numbers_are_those_of_all_rows_by_maps_that_have_not_seen_them(report, both, name):
    row = metric(report, name)
    assert row.before.value == pytest.approx(getattr(both[0], name), abs=1e-9)
    assert row.after.value == pytest.approx(getattr(both[1], name), abs=1e-9)


def test_the_ks_error_is_within_its_bound(report, both):
    (said,) = [line for line in report.how if "cells of scores" in line]
    bound = float(said.split("fullest one, ")[1].split(" ")[0])
    assert -1e-12 <= both[0].ks - report.ks.before_error <= bound


def test_the_rest_is_that_of_a_report_of_rows_in_memory(report, data):
    logits, labels = data
    made = summarise(
        labels,
        logits,
        calibrator=TemperatureScaling(),
        inputs="logits",
        classes=NAMES,
        cv=CV,
        n_resamples=49,
    )
    assert report.classes == made.classes
    assert report.judgement == made.judgement
    assert report.n_samples == made.n_samples
    assert [row.name for row in report.metrics] == [row.name for row in made.metrics]
    for one, other in zip(report.reliability, made.reliability, strict=True):
        assert (one.notion, one.column, one.before) == (other.notion, other.column, other.before)
    for one, other in zip(report.per_class, made.per_class, strict=True):
        assert (one.rows, one.predicted, one.class_before) == (
            (other.rows, other.predicted, other.class_before)
        )
    for name in ("log_loss", "brier_score", "confidence-l2", "class-wise-l2", "top-label-l2"):
        one, other = metric(report, name).before, metric(made, name).before
        assert one.value == pytest.approx(other.value, abs=1e-9)
        assert one.high - one.low == pytest.approx(other.high - other.low, rel=0.15)
    one, other = report.guarantee.text, made.guarantee.text
    assert one == other


def test_the_gain_is_that_of_the_same_folds(report, both):
    assert f"{both[0].log_loss - both[1].log_loss:.4f}" in report.verdict


def test_parts_are_judged_a_block_of_rows_at_a_time(report, data, monkeypatch):
    monkeypatch.setattr(_parted, "PREDICT_ELEMENTS", 600)
    made = report_of(data)
    for one, other in zip(made.metrics, report.metrics, strict=True):
        for when in ("before", "after"):
            own, expected = getattr(one, when).value, getattr(other, when).value
            assert own == pytest.approx(expected, abs=1e-9), one.name


def test_of_many_rows_some_are_drawn_for_what_needs_rows(data, both, monkeypatch):
    monkeypatch.setattr(_parted, "_DRAWN_ELEMENTS", 900)
    made = report_of(data)
    assert metric(made, "log_loss").before.value == pytest.approx(both[0].log_loss, abs=1e-9)
    assert "are of 300 rows, drawn at random" in " ".join(made.how)
    assert "3,000 rows" in to_html(made)
    assert report_of(data).to_dict() == made.to_dict()  # drawn alike when it is made again


def test_a_stack_of_probabilities_is_taken(data):
    logits, labels = data[0][:600], data[1][:600]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    stack = AutoCalibration([TemperatureScaling()], cv=2)
    made = report_of((proba, labels), calibrator=stack, inputs="proba", cv=2, method="auto")
    assert "auto was cross-fitted in 2 folds" in made.how[0]
    assert made.judgement == "good"


def test_what_needs_all_rows_in_memory_is_refused(data):
    blocks = in_blocks(*data, weight=np.full(N_ROWS, 0.5))
    with pytest.raises(TypeError, match="weights"):
        summarise(blocks.labels, blocks.scores, sample_weight=blocks.weight, inputs="logits")
    with pytest.raises(TypeError, match="groups"):
        report_of(data, by=np.zeros(N_ROWS))
    with pytest.raises(TypeError, match="CanonicalBinning"):
        report_of(data, calibrator=calibrant.CanonicalBinning())
