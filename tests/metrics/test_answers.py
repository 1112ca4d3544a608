"""Confidences of answers that were correct or not."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import evaluate, evaluate_answers
from calibrant.exceptions import DataWarning
from calibrant.metrics import TopScores


def test_confidence_without_a_correct_answer_is_overconfident():
    result = evaluate_answers(np.zeros(100, int), np.full(100, 0.3), by=["math"] * 100)
    group = result["math"]
    assert group.finding == "overconfident"
    assert group.gap == pytest.approx(0.3)
    assert group.evaluation.accuracy == 0.0
    assert "overconfident" in str(result)


def test_figures_of_six_answers_by_hand():
    result = evaluate_answers([1, 1, 0, 1, 0, 0], [0.9, 0.9, 0.9, 0.6, 0.6, 0.6], n_bins=10)
    assert result.n_samples == 6
    assert result.accuracy == 0.5
    assert result.mean_confidence == pytest.approx(0.75)
    assert result.gap == pytest.approx(0.25)
    assert result.gap_low < 0.25 < result.gap_high
    assert result.conf_ece == pytest.approx((0.9 - 2 / 3) / 2 + (0.6 - 1 / 3) / 2)
    assert result.mce == pytest.approx(0.6 - 1 / 3)
    assert result.brier_score == pytest.approx(np.mean([0.01, 0.01, 0.81, 0.16, 0.36, 0.36]))
    assert result.log_loss == pytest.approx(-np.log([0.9, 0.9, 0.1, 0.6, 0.4, 0.4]).mean())


def test_confidences_agree_with_top_scores_of_one_class(rng):
    confidence = rng.uniform(0.3, 1, 500)
    correct = rng.random(500) < confidence**2
    top = TopScores(np.ones((500, 1), int), np.log(confidence)[:, None], n_classes=2)
    expected, result = evaluate(correct.astype(int), top), evaluate_answers(correct, confidence)
    for name in ("accuracy", "conf_ece", "mce", "ks"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name))


def test_intervals_of_calibrated_confidences_hold_for_all_groups(rng):
    subject, missed = np.arange(600) % 4, 0
    for _ in range(60):
        confidence = rng.uniform(0.4, 1, 600)
        result = evaluate_answers(rng.random(600) < confidence, confidence, by=subject)
        missed += bool(result.miscalibrated)
    assert missed <= 8  # 5% of 60, and three standard errors


def test_unequal_weights_widen_the_interval(rng):
    confidence, weight = rng.uniform(0.4, 1, 300), rng.lognormal(sigma=1.5, size=300)
    correct = rng.random(300) < confidence
    equal = evaluate_answers(correct, confidence, sample_weight=np.full(300, 0.01))
    plain = evaluate_answers(correct, confidence)
    unequal = evaluate_answers(correct, confidence, sample_weight=weight)
    assert equal.gap_high == pytest.approx(plain.gap_high)
    assert unequal.gap_high - unequal.gap_low > 1.2 * (plain.gap_high - plain.gap_low)


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([0, 2], [0.5, 0.5], "correct must be 0 or 1, or True or False"),
        (np.array([0, 2], object), [0.5, 0.5], "correct must be .*, got 2. Compare"),
        (np.array([0, "yes"], object), [0.5, 0.5], "correct must be .*, got strings"),
        (["cat", "dog"], [0.5, 0.5], "Compare predictions and labels first"),
        ([0, 1], [50, 95], "p / 100 for percentages"),
        ([0, 1], [0.5, np.nan], "Row 1.*nan"),
        ([0, 1], [[0.5, 0.5], [0.1, 0.9]], "one confidence per row.*evaluate"),
        (
            [0, 1, 1],
            [0.5, 0.5],
            "Arrays must have the same number of rows, but correct has 3 rows and confidence has 2",
        ),
        ([], [], "at least one row"),
    ],
)
def test_wrong_pairs_are_errors(correct, confidence, message):
    with pytest.raises(ValueError, match=message):
        evaluate_answers(correct, confidence)


def test_columns_that_are_named_as_a_pair_get_a_warning():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"correct": [0, 1, 1], "confidence": [0.7, 0.8, 0.9]})
    with pytest.warns(DataWarning, match="evaluate_answers"):
        evaluate(frame["correct"], frame["confidence"])
    with pytest.warns(DataWarning, match="evaluate_answers"):
        evaluate(frame["correct"].to_numpy(), frame["confidence"])


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
def test_boolean_labels_with_one_score_per_row_get_a_warning(kind):
    correct: object = [True, False, True]
    if kind == "array":
        correct = np.array(correct)
    elif kind != "list":
        correct = pytest.importorskip(kind).Series(correct)
    with pytest.warns(
        DataWarning, match=r"evaluate_answers\(correct, confidence\).*\[False, True\]"
    ):
        result = evaluate(correct, np.array([0.9, 0.3, 0.8]))
    assert result.accuracy == 1.0
    assert evaluate_answers(correct, np.array([0.9, 0.3, 0.8])).accuracy == pytest.approx(2 / 3)


def test_declared_boolean_classes_and_whole_rows_get_no_warning():
    scores = np.array([0.9, 0.3, 0.8])
    labels = np.array([True, False, True])
    assert evaluate(labels, scores, classes=[False, True]).accuracy == 1.0
    assert evaluate(labels, np.stack([1 - scores, scores], axis=1)).accuracy == 1.0
    assert evaluate(labels.astype(int), scores).accuracy == 1.0


def test_results_are_frames_dictionaries_and_tables():
    pandas = pytest.importorskip("pandas")
    result = evaluate_answers([1, 0, 1], [0.9, 0.4, 0.8])
    assert result.to_dict()["accuracy"] == result.accuracy
    assert "mean confidence" in str(result)
    assert result._repr_html_().startswith("<table>")
    assert isinstance(result.to_frame(), pandas.DataFrame)


def test_outcomes_may_be_numbers_of_type_object():
    correct = np.array([1, 0, 1, 0], dtype=object)
    confidence = [0.9, 0.8, 0.7, 0.6]
    assert evaluate_answers(correct, confidence) == evaluate_answers([1, 0, 1, 0], confidence)
