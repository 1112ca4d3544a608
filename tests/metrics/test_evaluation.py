"""Evaluation and MetricAccumulator, and `calibrant.evaluate` which is built on them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import softmax

from calibrant import Evaluation, MetricAccumulator, evaluate, metrics

FIELDS = [
    *("n_samples", "n_classes", "accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece"),
    *("tl_ece", "mce", "ks", "overconfidence", "underconfidence", "sharpness"),
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
        "overconfidence": metrics.overconfidence(y, proba, **options),
        "underconfidence": metrics.underconfidence(y, proba, **options),
        "sharpness": metrics.sharpness(y, proba, **options),
    }
    for result in (evaluate(y, proba, **options), evaluate(y, logits, inputs="logits", **options)):
        assert list(result.to_dict()) == FIELDS
        assert result.to_dict() == pytest.approx(expected, abs=1e-12)


def test_logits_of_any_size_have_a_log_loss_without_a_floor():
    assert evaluate([1], [[100.0, 0.0]], inputs="logits").log_loss == pytest.approx(100.0)
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
    with pytest.raises(ValueError, match="pass inputs='logits'"):
        evaluate(y, logits)
    with pytest.raises(ValueError, match="n_bins must be"):
        evaluate(y, logits, inputs="logits", n_bins=0)


def test_parts_accumulate_to_the_whole_except_for_ks(data):
    y, logits, weight = data
    proba = softmax(logits, axis=1)
    accumulator = MetricAccumulator()
    for part in np.array_split(np.arange(500), 7):
        assert accumulator.update(y[part], proba[part], weight[part]) is accumulator
    whole = evaluate(y, proba, sample_weight=weight).to_dict()
    result = accumulator.compute()
    assert isinstance(result, Evaluation)
    assert result.ks is None
    assert "not computed" in str(result)
    assert {k: v for k, v in result.to_dict().items() if k != "ks"} == pytest.approx(
        {k: v for k, v in whole.items() if k != "ks"}, abs=1e-12
    )


def test_merging_is_updating_and_survives_json(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    left, right = (
        MetricAccumulator(10).update(y[:200], proba[:200]),
        MetricAccumulator(10).update(y[200:], proba[200:]),
    )
    again = MetricAccumulator.from_json(left.to_json()).merge(
        MetricAccumulator.from_json(right.to_json())
    )
    assert again.compute() == left.merge(right).compute()
    empty = MetricAccumulator(10)
    assert MetricAccumulator.from_json(empty.to_json()).merge(left).compute() == left.compute()


def test_text_labels_in_parts_need_classes():
    accumulator = MetricAccumulator(classes=["no", "yes"])
    accumulator.update(["yes"], [[0.1, 0.9]]).update(["no"], [[0.8, 0.2]])
    assert accumulator.compute().accuracy == 1.0
    assert (
        MetricAccumulator.from_json(accumulator.to_json())
        .update(["no"], [[0.8, 0.2]])
        .compute()
        .n_samples
        == 3
    )


def test_the_state_has_the_size_of_the_table_not_of_the_data(rng):
    small, large = MetricAccumulator(), MetricAccumulator()
    small.update(rng.integers(3, size=1000), rng.dirichlet(np.ones(3), 1000))
    for _ in range(20):
        large.update(rng.integers(3, size=1000), rng.dirichlet(np.ones(3), 1000))
    assert len(large.to_json()) < 1.2 * len(small.to_json())


def test_what_does_not_belong_together_is_refused():
    accumulator = MetricAccumulator().update([0], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="expected 2 classes as before, got 3"):
        accumulator.update([0], [[0.5, 0.3, 0.2]])
    with pytest.raises(ValueError, match="same n_bins; got 15 and 10"):
        accumulator.merge(MetricAccumulator(10))
    with pytest.raises(ValueError, match="same classes"):
        accumulator.merge(MetricAccumulator(classes=["a", "b"]))
    with pytest.raises(ValueError, match="call update"):
        MetricAccumulator().compute()


def damaged(**changes):
    state = json.loads(MetricAccumulator().update([0], [[0.5, 0.5]]).to_json())
    return json.dumps({**state, **changes})


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{",
            "null",
            "[" * 100_000,
            damaged(schema="other"),
            damaged(n_bins=0),
            damaged(n_bins=10),
        ),
        *(
            damaged(tables={"confidence": []}),
            damaged(log_loss="x"),
            damaged(confidence={"weight": 1, "evil": 2}),
        ),
        damaged(
            tables={
                "confidence": [[[float("nan")] * 15]] * 3,
                "class-wise": [[[0.0] * 15] * 2] * 3,
                "top-label": [],
            }
        ),
    ],
)
def test_a_damaged_state_is_a_clear_error(text):
    with pytest.raises(ValueError, match="not the JSON of a MetricAccumulator"):
        MetricAccumulator.from_json(text)
