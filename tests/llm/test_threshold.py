"""Thresholds of confidences."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.llm import AnswerThreshold, Run, find_answer_threshold

needs_decisions = pytest.importorskip  # thresholds are proved by calibrant.decisions


def run(rng, n_rows=2000, groups=None):
    confidence = rng.uniform(0.2, 1, n_rows)
    return Run("a", "stated", rng.random(n_rows) < confidence, confidence, groups=groups)


def test_answers_above_the_threshold_keep_the_risk(rng):
    needs_decisions("calibrant.decisions")
    risks = []
    for _ in range(20):
        found = find_answer_threshold(run(rng), 0.1)
        # The chance of an error above t is the mean of 1 - confidence.
        risks.append((1 - found.threshold) / 2)
        assert found.coverage > 0.05
    assert np.mean(np.array(risks) > 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 20)


def test_repeated_questions_count_once(rng):
    needs_decisions("calibrant.decisions")
    found = find_answer_threshold(run(rng, 400, groups=np.arange(400) // 4), 0.2)
    assert found.n_samples == 100


def test_rows_that_prove_nothing_have_no_threshold(rng):
    needs_decisions("calibrant.decisions")
    wrong = Run("a", "stated", np.zeros(100, bool), rng.random(100))
    found = find_answer_threshold(wrong, 0.05)
    assert found.threshold is None
    assert "No threshold could be proved" in str(found)
    with pytest.raises(ValueError, match="risk must be a number between 0 and 1"):
        find_answer_threshold(wrong, 5)
    with pytest.raises(ValueError, match=r"needs one Run with rows, got Run\('a', 0 rows"):
        find_answer_threshold(wrong[:0], 0.05)


def test_thresholds_are_sentences_and_dictionaries():
    found = AnswerThreshold(0.83, 0.05, 0.1, 0.46, 500)
    assert str(found) == (
        "Give answers with a confidence above 0.830. With 90% confidence, at most 5% of these "
        "answers are wrong. 46% of the questions are answered."
    )
    everything = AnswerThreshold(-np.inf, 0.05, 0.1, 1.0, 500)
    assert str(everything).startswith("Give all answers.")
    assert everything.to_dict()["threshold"] == 0.0
    assert AnswerThreshold(None, 0.05, 0.1, 0.0, 5).to_dict()["threshold"] is None
