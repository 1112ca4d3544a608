"""Blocks of rows in the place of arrays: the same numbers, in the memory of a few blocks."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from calibrant import (
    DirichletCalibration,
    HistogramBinning,
    MulticlassToBinary,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    evaluate,
    metrics,
)
from calibrant.io import Chunk, RowBlocks, ScoreChunks


@pytest.fixture
def data(rng):
    logits = 2 * rng.normal(size=(1000, 4))
    labels = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, labels, rng.integers(0, 3, size=1000).astype(float)


def blocks_of(*columns, size=130, **how):
    n_rows = len(columns[0])

    def read():
        for start in range(0, n_rows, size):
            yield tuple(column[start : start + size] for column in columns)

    return RowBlocks(read, **how)


@pytest.mark.parametrize(
    "calibrator",
    [
        TemperatureScaling(inputs="logits"),
        VectorScaling(inputs="logits"),
        StructuredScaling("vector", inputs="logits"),
        DirichletCalibration(0.01, inputs="logits"),
        MulticlassToBinary(
            HistogramBinning(10, strategy="uniform"), notion="class-wise", inputs="logits"
        ),
    ],
    ids=lambda c: type(c).__name__,
)
def test_a_fit_to_blocks_is_the_fit_to_their_rows(calibrator, data):
    logits, labels, weight = data
    blocks = blocks_of(logits, labels, weight)
    whole = calibrator.fit(logits, labels, sample_weight=weight).predict_proba(logits)
    parted = calibrator.fit(blocks.scores, blocks.labels, sample_weight=blocks.weight)
    assert np.abs(parted.predict_proba(logits) - whole).max() < 1e-8


def test_an_evaluation_of_blocks_is_that_of_their_rows(data):
    logits, labels, weight = data
    blocks = blocks_of(logits, labels, weight)
    found = evaluate(
        blocks.labels, blocks.scores, inputs="logits", sample_weight=blocks.weight
    ).to_dict()
    whole = evaluate(labels, logits, inputs="logits", sample_weight=weight).to_dict()
    for name in set(whole) - {"ks"}:  # which needs all top scores in order
        assert found[name] == pytest.approx(whole[name], rel=1e-12)


@pytest.mark.parametrize(
    "metric",
    [
        metrics.accuracy,
        metrics.log_loss,
        metrics.brier_score,
        metrics.confidence_on_errors,
        metrics.sharpness,
        metrics.expected_calibration_error,
        partial(metrics.expected_calibration_error, notion="class-wise"),
        partial(metrics.expected_calibration_error, notion="top-label"),
    ],
)
def test_a_metric_of_blocks_is_that_of_their_rows(metric, data):
    logits, labels, _ = data
    blocks = blocks_of(logits, labels)
    found = metric(blocks.labels, blocks.scores, inputs="logits")
    assert found == pytest.approx(metric(labels, logits, inputs="logits"), rel=1e-12)


def test_labels_may_be_an_array_of_all_rows(data):
    logits, labels, _ = data
    blocks = blocks_of(logits, np.zeros(1000, dtype=int))
    found = TemperatureScaling(inputs="logits").fit(blocks.scores, labels)
    whole = TemperatureScaling(inputs="logits").fit(logits, labels)
    assert found.temperature_ == pytest.approx(whole.temperature_, rel=1e-9)
    with pytest.raises(
        ValueError,
        match="must have one entry per row of scores, but there are 999 entries and 1,000 rows",
    ):
        TemperatureScaling(inputs="logits").fit(blocks.scores, labels[:999])


def test_names_of_classes_are_those_of_the_columns_and_not_of_the_alphabet(data):
    logits, labels, _ = data
    names = np.array(["pear", "apple", "fig", "date"])
    blocks = blocks_of(logits, names[labels], classes=names)
    model = TemperatureScaling(inputs="logits").fit(blocks.scores, blocks.labels)
    assert model.classes_.tolist() == names.tolist()
    assert model.score(logits, names[labels]) == (logits.argmax(axis=1) == labels).mean()
    with pytest.raises(ValueError, match="the columns have the names pear, apple"):
        TemperatureScaling(inputs="logits", classes=sorted(names)).fit(blocks.scores, blocks.labels)


def test_labels_without_names_of_columns_are_taken_in_sorted_order(data):
    logits, labels, _ = data
    names = np.array(["a", "b", "c", "d"])
    blocks = blocks_of(logits, names[labels])
    with pytest.warns(UserWarning, match="in sorted order"):
        model = TemperatureScaling(inputs="logits").fit(blocks.scores, blocks.labels)
    assert model.classes_.tolist() == names.tolist()


def test_one_score_per_row_is_that_of_class_1(rng):
    score = rng.normal(size=300)
    labels = (score + rng.logistic(size=300) > 0).astype(int)
    blocks = blocks_of(score, labels)
    found = TemperatureScaling(inputs="logits").fit(blocks.scores, blocks.labels)
    whole = TemperatureScaling(inputs="logits").fit(score, labels)
    assert found.temperature_ == pytest.approx(whole.temperature_, rel=1e-9)


def test_an_iterator_that_cannot_begin_anew_is_found_out(data):
    logits, labels, _ = data
    once = iter([(logits[:500], labels[:500]), (logits[500:], labels[500:])])
    blocks = RowBlocks(lambda: once)
    with pytest.raises(ValueError, match=r"Every call to read\(\) must start with the first row"):
        TemperatureScaling(inputs="logits").fit(blocks.scores, blocks.labels)


def test_a_bad_row_is_named_by_its_number_in_all(data):
    logits, labels, _ = data
    logits[777, 2] = np.nan
    blocks = blocks_of(logits, labels)
    with pytest.raises(ValueError, match="Row 777"):
        TemperatureScaling(inputs="logits").fit(blocks.scores, blocks.labels)


def test_what_needs_all_rows_says_so(data):
    logits, labels, _ = data
    blocks = blocks_of(logits, labels)
    with pytest.raises(TypeError, match="read in chunks"):
        np.asarray(blocks.scores)
    with pytest.raises(TypeError, match="needs all rows in memory, but the labels"):
        np.asarray(blocks.labels)
    with pytest.raises(ValueError, match="and the scores come from different blocks"):
        evaluate(blocks_of(logits, labels).labels, blocks.scores)
    with pytest.raises(ValueError, match="returned no blocks"):
        evaluate([0], RowBlocks(list).scores)


def test_blocks_say_what_they_are(data):
    logits, labels, _ = data
    blocks = blocks_of(logits, labels, n_rows=1000)
    assert repr(blocks) == "<RowBlocks: 1,000 rows in blocks>"
    assert [len(scores) for scores in blocks][:3] == [130, 130, 130]
    assert repr(blocks.labels) == "<labels of <RowBlocks: 1,000 rows in blocks>>"
    assert [chunk.start for chunk in blocks.chunks()][:3] == [0, 130, 260]


class Thirds(ScoreChunks):
    """Rows in three parts, as an engine would hold them: functions and results are pickled."""

    n_columns = 4

    def __init__(self, *columns, classes=None):
        self.columns, self.classes = columns, classes

    def map_chunks(self, function):
        size = len(self.columns[0]) // 3 + 1
        for start in range(0, 3 * size, size):
            part = Chunk(*(column[start : start + size] for column in self.columns), start)
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(function))(part)))


@pytest.mark.parametrize(
    "calibrator",
    [TemperatureScaling(inputs="logits"), DirichletCalibration(0.01, inputs="logits")],
    ids=lambda c: type(c).__name__,
)
def test_parts_of_an_engine_are_fitted_as_all_rows_are(calibrator, data):
    logits, labels, weight = data
    whole = calibrator.fit(logits, labels, sample_weight=weight).predict_proba(logits)
    found = calibrator.fit(Thirds(logits, labels, weight), None).predict_proba(logits)
    assert np.abs(found - whole).max() < 1e-8


def test_parts_of_an_engine_may_have_names_of_classes(data):
    logits, labels, weight = data
    names = np.array(["pear", "apple", "fig", "date"])
    parts = Thirds(logits, names[labels], weight, classes=names)
    model = TemperatureScaling(inputs="logits").fit(parts, None)
    assert model.classes_.tolist() == names.tolist()
    with pytest.raises(TypeError, match="already contain labels and weights"):
        model.fit(parts, labels)
