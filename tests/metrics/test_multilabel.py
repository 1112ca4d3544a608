"""Multilabel data: every label is a binary problem."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import (
    AutoCalibration,
    HistogramBinning,
    MulticlassToBinary,
    PlattScaling,
    TemperatureScaling,
    evaluate,
    load,
    save,
)
from calibrant.exceptions import DataWarning
from calibrant.inference import consistency_test, debiased_interval, kernel_test
from calibrant.metrics import brier_score, expected_calibration_error, ks_error, log_loss
from calibrant.plots import ReliabilityDisplay
from calibrant.report import summarize

pd = pytest.importorskip("pandas")


@pytest.fixture
def data(rng):
    proba = rng.uniform(size=(700, 3))
    y = (rng.uniform(size=proba.shape) < proba**1.5).astype(int)
    return y, proba


def binary(y, proba, k):
    return y[:, k], proba[:, k]


def test_class_wise_metrics_are_those_of_the_columns(data):
    y, proba = data
    for metric in (expected_calibration_error, ks_error):
        columns = [metric(*binary(y, proba, k), notion="class-1") for k in range(3)]
        for k in range(3):
            assert metric(y, proba, notion=f"class-{k}") == columns[k]
        if metric is expected_calibration_error:
            assert metric(y, proba, notion="class-wise") == pytest.approx(
                np.mean(columns), abs=1e-15
            )


def test_an_evaluation_has_the_metrics_of_each_label(data):
    y, proba = data
    frame = pd.DataFrame(proba, columns=["red", "round", "sweet"])
    result = evaluate(y, frame)
    for k, name in enumerate(frame):
        label = result[name]
        assert label.log_loss == log_loss(*binary(y, proba, k))
        assert label.brier_score == brier_score(*binary(y, proba, k))
        assert label.ece == expected_calibration_error(*binary(y, proba, k), notion="class-1")
        assert label.ks == ks_error(*binary(y, proba, k), notion="class-1")
        assert label.frequency == pytest.approx(y[:, k].mean())
    assert result.to_dict()["log_loss"] == np.mean([label.log_loss for label in result.labels])
    assert str(result).splitlines()[1].startswith("red")
    assert result.to_frame().index.tolist() == ["red", "round", "sweet"]
    with pytest.raises(KeyError, match="no label 'blue'"):
        result["blue"]


def test_one_vs_rest_calibrators_are_those_of_the_columns(data, tmp_path):
    y, proba = data
    model = MulticlassToBinary(PlattScaling(), notion="class-wise").fit(proba, y)
    found = model.predict_proba(proba)
    for k in range(3):
        own = PlattScaling().fit(proba[:, k], y[:, k]).predict_proba(proba[:, k])[:, 1]
        np.testing.assert_allclose(found[:, k], own, atol=1e-9)
    save(model, tmp_path / "m.json")
    np.testing.assert_array_equal(load(tmp_path / "m.json").predict_proba(proba), found)
    with pytest.raises(ValueError, match=r"predict_proba\(X\) >= 0.5"):
        model.predict(proba)
    weight = np.arange(700) % 3
    weighted = MulticlassToBinary(HistogramBinning(), notion="class-wise")
    assert "class 1" in str(weighted.fit(proba, y).guarantee())
    assert weighted.fit(proba, y, weight).predict_proba(proba).shape == (700, 3)


def test_tests_intervals_and_diagrams_of_labels(data):
    y, proba = data
    options = {"notion": "class-wise"}
    assert debiased_interval(y, proba, **options).low > 0
    assert ReliabilityDisplay.from_predictions(y, proba, **options) is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda y, p: TemperatureScaling().fit(p, y),
        lambda y, p: AutoCalibration().fit(p, y),
        lambda y, p: MulticlassToBinary(PlattScaling(), notion="confidence").fit(p, y),
        lambda y, p: MulticlassToBinary(PlattScaling(), notion="class-wise", normalize=True).fit(
            p, y
        ),
        lambda y, p: expected_calibration_error(y, p),
        lambda y, p: summarize(y, p),
        lambda y, p: evaluate(y, p, by=y[:, 0]),
    ],
)
def test_what_is_about_the_whole_vector_is_rejected(call, data):
    with pytest.raises(ValueError, match=r"multilabel.*notion='class-wise'"):
        call(*data)


def test_one_hot_labels_of_classes_are_still_rejected(rng):
    proba = rng.dirichlet(np.ones(3), 50)
    y = np.eye(3)[proba.argmax(axis=1)]
    with pytest.raises(ValueError, match="one-hot"):
        evaluate(y, proba)


def test_logits_are_rejected(data):
    y, proba = data
    with pytest.raises(ValueError, match="expit"):
        evaluate(y, np.log(proba), inputs="logits")


def test_labels_are_matched_to_the_columns_of_the_scores_by_name(data):
    y, proba = data
    scores = pd.DataFrame(proba, columns=["red", "round", "sweet"])
    labels = pd.DataFrame(y, columns=scores.columns)
    expected = evaluate(labels, scores)
    swapped = labels[["sweet", "red", "round"]]
    assert evaluate(swapped, scores) == expected
    assert evaluate(swapped, scores.add_prefix("p_")).log_loss == expected.log_loss
    assert evaluate(swapped, scores, classes=["round", "red", "sweet"])["red"] == expected["red"]
    with pytest.raises(ValueError, match="'sour' is not one of the classes"):
        evaluate(labels.rename(columns={"sweet": "sour"}), scores)
    fitted = MulticlassToBinary(PlattScaling(), notion="class-wise").fit(scores, swapped)
    plain = MulticlassToBinary(PlattScaling(), notion="class-wise").fit(proba, y)
    np.testing.assert_array_equal(fitted.predict_proba(scores), plain.predict_proba(proba))
    np.testing.assert_array_equal(
        fitted.predict_proba(scores[["sweet", "red", "round"]]), plain.predict_proba(proba)
    )
    with pytest.warns(DataWarning, match="the same rows in different orders"):
        evaluate(labels[::-1], scores)


def test_a_calibrator_of_one_label_rejects_the_other_labels(data):
    y, proba = data
    with pytest.raises(ValueError, match=r"pass y\[:, k\] and scores\[:, k\]"):
        MulticlassToBinary(PlattScaling(), notion="class-2").fit(proba, y)


@pytest.mark.parametrize("test", [consistency_test, kernel_test])
def test_tests_of_one_class_per_row_name_the_kind_of_data(test, data):
    with pytest.raises(ValueError, match=r"several labels \(multilabel\)\. Pass y\[:, k\]"):
        test(*data)


def test_labels_of_another_shape_than_the_scores_are_rejected(data):
    y, proba = data
    with pytest.raises(ValueError, match=r"evaluate\(\) accepts such labels if the scores have"):
        evaluate(y[:, :2], proba)
