"""`calibrant.evaluate`: every value equals the metric of the same name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import evaluate, metrics
from calibrant.exceptions import DataWarning

FIELDS = [
    *("n_samples", "n_classes", "accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece"),
    *("tl_ece", "mce", "ks", "confidence_on_errors", "doubt_on_correct", "sharpness"),
]


@pytest.fixture
def data(rng):
    logits = rng.normal(scale=2, size=(500, 4))
    return rng.integers(4, size=500), logits, rng.integers(0, 3, size=500)


def test_every_field_is_the_metric_of_its_name(data):
    y, logits, weight = data
    proba = softmax(logits, axis=1)
    options = {"sample_weight": weight}
    ece = metrics.expected_calibration_error
    expected = {
        "n_samples": weight.sum(),
        "n_classes": 4,
        "accuracy": metrics.accuracy(y, proba, **options),
        "log_loss": metrics.log_loss(y, proba, **options),
        "brier_score": metrics.brier_score(y, proba, **options),
        "conf_ece": ece(y, proba, **options),
        "cw_ece": ece(y, proba, notion="class-wise", **options),
        "tl_ece": ece(y, proba, notion="top-label", **options),
        "mce": ece(y, proba, norm=np.inf, **options),
        "ks": metrics.ks_error(y, proba, **options),
        "confidence_on_errors": metrics.confidence_on_errors(y, proba, **options),
        "doubt_on_correct": metrics.doubt_on_correct(y, proba, **options),
        "sharpness": metrics.sharpness(y, proba, **options),
    }
    for result in (evaluate(y, proba, **options), evaluate(y, logits, inputs="logits", **options)):
        assert list(result.to_dict()) == FIELDS
        assert result.to_dict() == pytest.approx(expected, abs=1e-12)


def test_logits_have_the_log_loss_of_their_probabilities_with_the_same_floor():
    assert evaluate([1], [[20.0, 0.0]], inputs="logits").log_loss == pytest.approx(20.0)
    assert evaluate([1], [[100.0, 0.0]], inputs="logits").log_loss == -np.log(1e-12)
    assert evaluate([1], [[1.0, 0.0]]).log_loss == -np.log(1e-12)
    assert evaluate([0, 1], [[0.0, -np.inf], [0.0, 1.0]], inputs="logits").log_loss < 1


def test_numbers_are_plain_and_go_to_json(data):
    y, logits, _ = data
    result = evaluate(y, logits, inputs="logits")
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert isinstance(result.n_samples, int)


def test_the_text_is_a_table_with_a_line_per_number(data):
    y, logits, _ = data
    lines = str(evaluate(y, logits, inputs="logits")).splitlines()
    assert len(lines) == len(FIELDS)
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["rows", "500"]


def test_logits_given_as_probabilities_say_what_to_do(data):
    y, logits, _ = data
    with pytest.raises(ValueError, match="Pass inputs='logits'"):
        evaluate(y, logits)
    with pytest.raises(ValueError, match="n_bins must be"):
        evaluate(y, logits, inputs="logits", n_bins=0)


def test_no_name_of_a_figure_calls_an_underconfident_model_overconfident(rng):
    proba = rng.dirichlet(np.ones(4), 300)
    labels = proba.argmax(axis=1)  # always correct, and so underconfident
    names = evaluate(labels, proba).to_dict()
    assert not [name for name in names if "overconfidence" in name or "underconfidence" in name]
    assert names["doubt_on_correct"] == pytest.approx(np.mean(1 - proba.max(axis=1)))


def test_evaluations_can_be_converted_to_frames(rng):
    pandas = pytest.importorskip("pandas")
    proba, labels = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    result, groups = evaluate(labels, proba), evaluate(labels, proba, by=np.arange(60) % 2)
    frame = pandas.concat([result.to_frame(), result.to_frame()])
    assert frame["accuracy"].tolist() == [result.accuracy] * 2
    assert groups.to_frame().loc["1", "gap"] == groups["1"].gap


def test_true_classes_of_score_minus_infinity_are_counted(rng):
    logits, labels = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    logits[np.arange(3), labels[:3]] = -np.inf
    with pytest.warns(
        DataWarning, match=r"The true class has the score -inf in 3 of 50 rows.*27.6 nats"
    ):
        evaluate(labels, logits, inputs="logits")
    evaluate(labels[3:], logits[3:], inputs="logits")  # without a warning
