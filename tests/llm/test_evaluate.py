"""Evaluation of tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from calibrant import OptionScores, evaluate_answers
from calibrant.llm import Run, Runs, evaluate
from calibrant.llm._evaluate import auroc


def stated(rng, task="a", n_rows=300, shift=0.0, groups=None):
    confidence = rng.uniform(0.5, 1, n_rows)
    correct = rng.random(n_rows) < confidence - shift
    return Run(task, "stated", correct, confidence, groups=groups)


def options_run(rng, n_rows=300, temperature=3.0):
    logits = rng.normal(size=(n_rows, 4)) * temperature
    proba = np.exp(logits / temperature)
    proba /= proba.sum(axis=1, keepdims=True)
    labels = (proba.cumsum(axis=1) < rng.random(n_rows)[:, None]).sum(axis=1)
    options = OptionScores(logits)
    correct = logits.argmax(axis=1) == labels
    return Run("b", "options (sum)", correct, options.proba.max(axis=1), options, labels)


def test_table_has_one_row_per_task_with_confidences(rng):
    none = Run("c", "stated", np.empty(0, bool), np.empty(0), n_missing=7)
    runs = Runs({"a": stated(rng, shift=0.25), "b": options_run(rng), "c": none})
    result = evaluate(runs)
    assert [task.task for task in result] == ["a", "b"]
    assert result.without_confidence == {"c": 7}
    assert result["a"].finding == result["b"].finding == "overconfident"
    assert result["b"].gain_low > 0.1
    assert result["a"].error == pytest.approx(0.25, abs=0.1)
    assert "Tasks without confidences: c." in str(result)
    assert repr(result) == "<RunsEvaluation: 2 tasks, 2 miscalibrated>"
    assert result._repr_html_().startswith("<table>")
    assert result.to_dict()["tasks"][0]["finding"] == "overconfident"
    with pytest.raises(KeyError, match="No task with the name 'x' has confidences"):
        result["x"]


def test_result_is_a_frame(rng):
    pytest.importorskip("pandas")
    frame = evaluate(Runs({"a": stated(rng)})).to_frame()
    assert frame.loc["a", "n_samples"] == 300


def test_figures_of_one_task_are_those_of_evaluate_answers(rng):
    run = stated(rng)
    task, expected = evaluate(Runs({"a": run}))["a"], evaluate_answers(run.correct, run.confidence)
    for name in ("accuracy", "mean_confidence", "gap", "gap_low", "gap_high", "log_loss"):
        assert getattr(task, name) == pytest.approx(getattr(expected, name))
    assert task.auroc == pytest.approx(roc_auc_score(run.correct, run.confidence))


def test_intervals_hold_for_all_tasks_together(rng):
    missed = 0
    for _ in range(40):
        runs = {str(i): stated(rng, n_rows=19) for i in range(20)}
        result = evaluate(Runs(runs))
        missed += any(task.finding != "no gap detected" for task in result)
    assert missed <= 6  # 5% of 40, and three standard errors


def test_repeated_questions_widen_the_interval(rng):
    run = stated(rng, n_rows=200)
    once = evaluate(Runs({"a": run}))["a"]
    repeated = Run("a", "stated", run.correct, run.confidence, groups=np.arange(200) // 4)
    task = evaluate(Runs({"a": repeated}))["a"]
    assert task.gap == once.gap
    assert task.gap_high - task.gap_low > 1.8 * (once.gap_high - once.gap_low)


def test_few_rows_and_equal_outcomes_have_no_estimates(rng):
    few = stated(rng, n_rows=5)
    right = Run("b", "stated", np.ones(50, bool), rng.uniform(0.5, 1, 50))
    result = evaluate(Runs({"a": few, "b": right}))
    assert np.isnan(result["a"].error)
    assert np.isnan(result["a"].gain)
    assert np.isnan(result["b"].auroc)
    assert np.isnan(result["b"].gain)
    assert " - " in str(result)
    assert np.isnan(auroc(np.zeros(3, bool), np.ones(3)))


def test_runs_without_confidences_are_an_error():
    none = Run("c", "stated", np.empty(0, bool), np.empty(0), n_missing=7)
    with pytest.raises(ValueError, match="no confidences"):
        evaluate(Runs({"c": none}))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        evaluate(Runs({"c": none}), level=95)


def test_a_part_of_repeated_questions_counts_its_own_questions(rng):
    whole = stated(rng, n_rows=400, groups=np.arange(400) // 4)
    part = evaluate(Runs({"a": whole[200:]}))["a"]
    renumbered = replace(whole[200:], groups=np.arange(200) // 4)
    assert part == evaluate(Runs({"a": renumbered}))["a"]
