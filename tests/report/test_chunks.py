"""Reports of chunked rows: sums over all of them, and rows that are drawn."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

import calibrant
from calibrant import AutoCalibration, TemperatureScaling, evaluate
from calibrant._output.numbers import format_number
from calibrant.io import RowBlocks
from calibrant.report import _rows, summarize, to_html

N_ROWS, CV = 3000, 3
NAMES = ["ant", "bee", "cat"]
OPTIONS = {"calibrator": TemperatureScaling(), "inputs": "logits", "cv": CV, "n_resamples": 49}


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


def report_of(data, size=700, **options):
    blocks = in_blocks(*data, size=size)
    return summarize(blocks.labels, blocks.scores, **{**OPTIONS, **options})


def memory_report_of(data, **options):
    logits, labels = data
    return summarize(labels, logits, **{"classes": NAMES, **OPTIONS, **options})


@pytest.fixture(scope="module")
def report(data):
    return report_of(data)


@pytest.fixture(scope="module")
def both(data):
    """Evaluations of all rows, before and after calibration on the other folds."""
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


def assert_close(one, other, path="report"):
    """Nested content is equal, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            assert_close(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), path
        for place, pair in enumerate(zip(one, other, strict=True)):
            assert_close(*pair, f"{path}[{place}]")
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-9), path
    else:
        assert one == other, path


@pytest.mark.parametrize(
    "name", ["accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "mce"]
)
def test_numbers_are_those_of_all_rows_by_fits_on_other_folds(report, both, name):
    row = metric(report, name)
    assert row.before.value == pytest.approx(getattr(both[0], name), abs=1e-9)
    assert row.after.value == pytest.approx(getattr(both[1], name), abs=1e-9)


def test_the_ks_error_is_within_its_bound(report, both):
    (line,) = [line for line in report.how if "cells of similar confidence" in line]
    bound = float(line.split("by at most ")[1].split(" ")[0])
    assert -1e-12 <= both[0].ks - report.ks.before_error <= bound


def test_the_rest_is_that_of_a_report_of_rows_in_memory(report, data):
    expected = memory_report_of(data)
    assert report.classes == expected.classes
    assert report.conclusion == expected.conclusion
    assert report.n_samples == expected.n_samples
    assert [row.name for row in report.metrics] == [row.name for row in expected.metrics]
    for one, other in zip(report.reliability, expected.reliability, strict=True):
        assert (one.notion, one.column, one.before) == (other.notion, other.column, other.before)
    for one, other in zip(report.per_class, expected.per_class, strict=True):
        assert (one.rows, one.predicted, one.class_before) == (
            (other.rows, other.predicted, other.class_before)
        )
    for name in ("log_loss", "brier_score", "confidence-l2", "class-wise-l2", "top-label-l2"):
        one, other = metric(report, name).before, metric(expected, name).before
        assert one.value == pytest.approx(other.value, abs=1e-9)
        assert one.high - one.low == pytest.approx(other.high - other.low, rel=0.15)
    for one, other in zip(report.tests, expected.tests, strict=True):
        assert one.p_before == other.p_before
    assert report.guarantee.text == expected.guarantee.text


def test_the_gain_is_that_of_the_same_folds(report, both):
    assert f"by {format_number(both[0].log_loss - both[1].log_loss)} (95% CI" in report.verdict


@pytest.mark.parametrize("drawn_scores", [900, 9000])
def test_a_report_does_not_depend_on_the_size_of_chunks(data, monkeypatch, drawn_scores):
    monkeypatch.setattr(_rows, "_DRAWN_SCORES", drawn_scores)
    one, other = (report_of(data, size).to_dict() for size in (700, 97))
    assert_close(one, other)


def test_of_many_rows_some_are_drawn_for_what_needs_rows(data, both, monkeypatch):
    monkeypatch.setattr(_rows, "_DRAWN_SCORES", 900)
    report = report_of(data)
    assert metric(report, "log_loss").before.value == pytest.approx(both[0].log_loss, abs=1e-9)
    assert "use 300 rows, drawn at random" in " ".join(report.how)
    assert metric(report, "conf_ece").note.endswith("for 300 rows, and smaller for all rows.")
    assert "3,000 rows" in to_html(report)
    assert report_of(data).to_dict() == report.to_dict()  # the same rows are drawn again


def test_the_summary_of_the_fit_counts_all_rows(data, monkeypatch):
    monkeypatch.setattr(_rows, "_DRAWN_SCORES", 900)
    (line,) = [line for line in report_of(data).how if line.startswith("Text for a paper")]
    assert "fitted on 3,000 rows" in line


def test_a_stack_of_probabilities_is_accepted(data):
    logits, labels = data[0][:600], data[1][:600]
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    stack = AutoCalibration([TemperatureScaling()], cv=2)
    report = report_of((proba, labels), calibrator=stack, inputs="proba", cv=2, method="auto")
    assert "auto was cross-fitted with 2 folds" in report.how[0]
    assert report.conclusion == "good"


@pytest.mark.parametrize("is_chunked", [True, False])
def test_rows_to_fit_on_may_be_chunked_or_in_memory(data, is_chunked):
    logits, labels = data
    fit, test = (logits[:1000], labels[:1000]), (logits[1000:], labels[1000:])
    expected = memory_report_of(test, calibration=fit)
    blocks = in_blocks(*fit)
    calibration = (blocks.scores, blocks.labels) if is_chunked else fit
    report = report_of(test, calibration=calibration)
    assert report.how[0] == expected.how[0]
    for name in ("log_loss", "conf_ece", "top-label-l2"):
        one, other = metric(report, name).after, metric(expected, name).after
        assert one.value == pytest.approx(other.value, abs=1e-9)
    for name in ("guarantee", "warnings", "map"):
        assert getattr(report, name) == getattr(expected, name)
    assert "Folds" not in " ".join(report.how)


def test_a_fit_to_chunked_rows_is_described_as_one(data):
    logits, labels = data
    blocks = in_blocks(logits[1000:], labels[1000:])
    note = "cells of scores per claim"
    options = {"calibrator": calibrant.IsotonicCalibration()}
    fitted = blocks.scores, blocks.labels
    of_chunks = memory_report_of((logits[:1000], labels[:1000]), calibration=fitted, **options)
    assert note in " ".join(of_chunks.how)
    assert note not in " ".join(memory_report_of((logits, labels), **options).how)


def test_weights_of_chunks_count_their_effective_rows(data):
    logits, labels = data
    weight = np.arange(N_ROWS) % 3 / 2
    blocks = in_blocks(logits, labels, weight)
    report = summarize(blocks.labels, blocks.scores, sample_weight=blocks.weight, **OPTIONS)
    expected = evaluate(labels, logits, inputs="logits", classes=NAMES, sample_weight=weight)
    for name in ("accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece"):
        estimate = metric(report, name).before
        assert estimate.value == pytest.approx(getattr(expected, name), abs=1e-9)
        assert estimate.low is None
    assert report.n_samples == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert (report.is_weighted, report.guarantee) == (True, None)
    in_memory = memory_report_of(data, sample_weight=weight)
    before = [test.p_before for test in report.tests]
    assert before == pytest.approx([test.p_before for test in in_memory.tests], abs=0.2)
    assert "effective number of rows, 1,800 of 2,000" in " ".join(report.how)


def test_chunked_rows_of_weight_zero_do_not_count(data):
    logits, labels = data
    weight = (np.arange(N_ROWS) % 3 > 0).astype(float)
    blocks = in_blocks(logits, labels, weight)
    report = summarize(blocks.labels, blocks.scores, sample_weight=blocks.weight, **OPTIONS)
    expected = evaluate(labels[weight > 0], logits[weight > 0], inputs="logits", classes=NAMES)
    assert metric(report, "log_loss").before.value == pytest.approx(expected.log_loss, abs=1e-9)
    assert metric(report, "log_loss").before.low is not None
    assert report.tests[-1].name == "kernel"


def test_weights_of_chunks_that_sum_to_one_are_those_of_one(data):
    blocks, plain = in_blocks(*data, weight=np.full(N_ROWS, 1 / N_ROWS)), in_blocks(*data)
    report = summarize(blocks.labels, blocks.scores, sample_weight=blocks.weight, **OPTIONS)
    expected = summarize(plain.labels, plain.scores, **OPTIONS)
    assert report.n_samples == pytest.approx(expected.n_samples)
    assert report.verdict == expected.verdict


def test_groups_of_chunks_are_those_of_rows_in_memory(data):
    group = np.arange(N_ROWS) % 4
    options = {"calibrator": calibrant.Identity(), "by": {"quarter": group}}
    found, expected = report_of(data, **options).groups, memory_report_of(data, **options).groups
    assert (found.header, found.rows) == (expected.header, expected.rows)
    # The test of a difference needs the rows in memory.
    assert expected.text.startswith("Before calibration: No difference between the groups")
    assert expected.text.endswith(found.text)
    for chart, other in zip(found.charts, expected.charts, strict=True):
        assert (chart.name, chart.before, chart.after) == (other.name, other.before, other.after)
        for gap in ("gap_before", "gap_after"):
            ends = [astuple(getattr(one, gap)) for one in (chart, other)]
            assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_chunks_can_be_evaluated_in_other_processes(data):
    dask_array = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    scores, y = data[0][:300], np.searchsorted(NAMES, data[1][:300])
    chunks = dask_array.from_array(scores, chunks=(100, 3)), dask_array.from_array(y, chunks=100)
    options = {**OPTIONS, "n_resamples": 9}
    with dask.config.set(scheduler=_pickling_scheduler):
        report = summarize(chunks[1], chunks[0], **options)
    blocks = in_blocks(scores, data[1][:300], size=100)
    expected = summarize(blocks.labels, blocks.scores, **options)
    assert_close(report.to_dict()["metrics"], expected.to_dict()["metrics"])


def _pickling_scheduler(graph, keys, **options):
    """Tasks are pickled, as they are for other processes."""
    import cloudpickle
    from dask.local import get_sync

    return get_sync(cloudpickle.loads(cloudpickle.dumps(graph)), keys, **options)


def test_methods_that_need_all_rows_in_memory_are_rejected(data):
    with pytest.raises(TypeError, match="CanonicalBinning needs all rows in memory"):
        report_of(data, calibrator=calibrant.CanonicalBinning())
