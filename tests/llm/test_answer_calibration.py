"""Calibrated confidences of open answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import evaluate_answers
from calibrant.llm import AnswerCalibration, Run, Runs


def answers(rng, n_rows=600):
    """Overconfident statements, and token log-probabilities that tell more."""
    chance = rng.uniform(0.2, 0.9, n_rows)
    correct = rng.random(n_rows) < chance
    noise = rng.normal(0, 1.0, n_rows)
    stated = 1 / (1 + np.exp(-(np.log(chance / (1 - chance)) + 1.5 + noise)))
    frame = {
        "confidence": stated.round(2),
        "mean_logprob": np.log(chance) + rng.normal(0, 0.2, n_rows),
        "agreement": np.clip(chance + rng.normal(0, 0.1, n_rows), 0, 1),
        "length": rng.integers(1, 500, n_rows),
    }
    return frame, correct


def test_overconfident_statements_are_calibrated(rng):
    frame, correct = answers(rng)
    new, new_correct = answers(rng)
    model = AnswerCalibration().fit(frame, correct)
    before = evaluate_answers(new_correct, new["confidence"])
    after = evaluate_answers(new_correct, model.predict_confidence(new))
    assert before.gap > 0.15
    assert abs(after.gap) < 0.06
    assert after.log_loss < before.log_loss - 0.05


def test_more_features_help(rng):
    frame, correct = answers(rng, 2000)
    new, new_correct = answers(rng, 2000)
    names = ("confidence", "mean_logprob", "agreement", "length")
    losses = [
        evaluate_answers(
            new_correct, AnswerCalibration(f).fit(frame, correct).predict_confidence(new)
        ).log_loss
        for f in (names[:1], names)
    ]
    assert losses[1] < losses[0] - 0.01


def test_statements_in_words_and_missing_ones(rng):
    text = np.tile(["90%", "very likely", "no idea", "1/2"], 100)
    correct = rng.random(400) < 0.6
    model = AnswerCalibration().fit({"confidence": text}, correct)
    assert model.n_missing_ == 100
    predicted = model.predict_confidence({"confidence": ["90%", "no idea"]})
    assert np.isfinite(predicted[0])
    assert np.isnan(predicted[1])
    percent = AnswerCalibration(percent=True).fit({"confidence": np.tile([90, 50], 200)}, correct)
    assert percent.n_missing_ == 0


def test_effects_of_tasks_are_shrunk(rng):
    task = np.repeat(["easy", "hard", "small"], [500, 500, 10])
    chance = np.select([task == "easy", task == "hard"], [0.9, 0.4], 0.9)
    correct = rng.random(1010) < chance
    frame = {"confidence": np.full(1010, 0.8), "task": task}
    model = AnswerCalibration(by="task").fit(frame, correct)
    one = {"confidence": [0.8] * 4, "task": ["easy", "hard", "small", "new"]}
    easy, hard, small, new = model.predict_confidence(one)
    assert easy == pytest.approx(0.9, abs=0.05)
    assert hard == pytest.approx(0.4, abs=0.05)
    assert hard < new < small <= easy + 0.05
    assert np.isfinite(model.strength_)


def test_tasks_that_do_not_differ_hardly_cost_anything(rng):
    excess = []
    new, new_correct = answers(rng, 4000)
    new["task"] = np.arange(4000) % 10
    for _ in range(20):
        frame, correct = answers(rng, 300)
        frame["task"] = np.arange(300) % 10
        losses = [
            evaluate_answers(
                new_correct, AnswerCalibration(by=by).fit(frame, correct).predict_confidence(new)
            ).log_loss
            for by in ("task", None)
        ]
        excess.append(losses[0] - losses[1])
    assert np.median(excess) < 1e-3
    assert np.mean(excess) < 5e-3


def test_runs_are_fitted_if_they_have_one_source(rng):
    frame, correct = answers(rng)
    run = Run("a", "stated", correct, frame["confidence"], features={"length": frame["length"]})
    other = Run("b", "stated", correct, frame["confidence"])
    model = AnswerCalibration(by="task").fit(Runs({"a": run, "b": other}))
    assert set(model.effects_) == {"a", "b"}
    single = AnswerCalibration(("confidence", "length")).fit(run)
    assert single.predict_proba(run).shape == (600, 2)
    assert single.predict(run).dtype == bool
    mixed = Runs({"a": run, "b": Run("b", "max_prob", correct, frame["confidence"])})
    with pytest.raises(ValueError, match="different sources: max_prob, stated"):
        AnswerCalibration().fit(mixed)


def test_data_frames(rng):
    frame, correct = answers(rng)
    expected = AnswerCalibration(("confidence", "length")).fit(frame, correct)
    for module in ("pandas", "polars"):
        table = pytest.importorskip(module).DataFrame(frame)
        model = clone(expected).fit(table, correct)
        np.testing.assert_allclose(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("options", "frame", "correct", "message"),
    [
        ({}, {"other": [0.5]}, [1], "but column 'confidence' is needed"),
        ({}, [0.5, 0.6], [1, 0], "Pass a data frame"),
        ({}, {"confidence": [90.0, 50.0]}, [1, 0], "percent=True"),
        ({}, {"confidence": [0.9, 0.5]}, [1, 1], "only one outcome"),
        ({}, {"confidence": [0.9, 0.5]}, [1, 2], "correct must be 0 or 1"),
        ({}, {"confidence": [0.9]}, [1, 0], "same number of rows"),
        ({"features": "confidence"}, {"confidence": [0.9]}, [1], "sequence of column names"),
        ({"features": ("length",)}, {"length": [-1, 2]}, [1, 0], "negative"),
        ({"features": ("x",)}, {"x": ["a", "b"]}, [1, 0], "must contain numbers"),
        ({"features": ("x",)}, {"x": [np.inf, 1]}, [1, 0], "infinite"),
        ({"features": ("x", "z")}, {"x": [1, 2], "z": [1]}, [1, 0], "same number of rows"),
    ],
)
def test_wrong_answers_are_errors(options, frame, correct, message):
    with pytest.raises(ValueError, match=message):
        AnswerCalibration(**options).fit(frame, correct)


def test_the_correctness_is_needed(rng):
    with pytest.raises(ValueError, match="fit needs the correctness of each answer"):
        AnswerCalibration().fit({"confidence": rng.random(10)})
