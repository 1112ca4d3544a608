"""Batch output of OpenAI-style services."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant import llm
from llm_logs import batch_line, token, write_lines


def test_batch_with_letters(tmp_path):
    top = [(" B", math.log(0.7)), ("A", math.log(0.2)), ("The", math.log(0.05))]
    lines = [batch_line(f"q{i}", [token(" B", math.log(0.7), top)]) for i in range(3)]
    lines += [batch_line("q3", None), batch_line("other", [token("A", -0.1, [("A", -0.1)])])]
    write_lines(tmp_path / "batch.jsonl", lines)
    (tmp_path / "targets.csv").write_text(
        "custom_id,target,n_options\nq0,B,2\nq1,A,2\nq2,C,3\nq3,A,2\n"
    )
    run = llm.read(tmp_path)["batch"]
    assert run.source == "options (letters)"
    np.testing.assert_allclose(run.options.proba[0], [2 / 9, 7 / 9, 0])
    assert run.options.n_options.tolist() == [2, 2, 3]
    np.testing.assert_allclose(run.options.proba[2], np.array([0.2, 0.7, 0.05]) / 0.95)
    assert run.correct.tolist() == [True, False, False]
    assert run.n_missing == 1
    assert run.skipped["no target in the table"] == 1


def test_batch_with_open_answers_and_given_targets(tmp_path):
    lines = [batch_line(f"q{i}", [token("Paris", -0.5)], content="Paris") for i in range(2)]
    path = write_lines(tmp_path / "batch.jsonl", lines)
    with pytest.raises(ValueError, match=r"does not contain the correct answers.*targets="):
        llm.read(path)
    run = llm.read(path, targets={"q0": "paris", "q1": "Rome"})["batch"]
    assert run.correct.tolist() == [True, False]
    np.testing.assert_allclose(run.confidence, math.exp(-0.5))


def test_requests_with_the_same_id_are_one_question(tmp_path):
    top = [("A", math.log(0.7)), ("B", math.log(0.2))]
    lines = [batch_line(name, [token("A", math.log(0.7), top)]) for name in ("x", "y", "x")]
    path = write_lines(tmp_path / "batch.jsonl", lines)
    assert llm.read(path, targets={"x": "A", "y": "B"})["batch"].groups.tolist() == [0, 1, 0]


def test_targets_must_belong_to_the_requests_and_not_contradict_each_other(tmp_path):
    write_lines(tmp_path / "batch.jsonl", [batch_line("x", [token("A", -0.1)])])
    with pytest.raises(ValueError, match="none of the requests has a correct answer"):
        llm.read(tmp_path, targets={"other": "A"})
    (tmp_path / "targets.csv").write_text("custom_id,target\nx,A\nx,B\n")
    with pytest.raises(ValueError, match="line 3: the custom_id 'x' has another target"):
        llm.read(tmp_path)
