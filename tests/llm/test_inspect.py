"""Logs of Inspect."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from calibrant import llm
from llm_logs import inspect_sample, token, write_inspect

pytest.importorskip("pyarrow")


@pytest.mark.parametrize("method", ["zstd", "deflate", "json"])
def test_stated_confidences_of_an_inspect_log(tmp_path, method):
    values = [("C", 85), ("I", 100), ("C", 100), (float("nan"), 100), ("I", 20)]
    samples = [
        inspect_sample(i, {"score": score, "confidence": confidence})
        for i, (score, confidence) in enumerate(values)
    ]
    path = tmp_path / ("log.json" if method == "json" else "log.eval")
    if method == "json":
        log = {"version": 2, "eval": {"task": "hle"}, "samples": samples}
        path.write_text(json.dumps(log))
    else:
        write_inspect(path, samples, method=method)
    run = llm.read(path)["hle"]
    assert run.source == "stated"
    assert run.correct.tolist() == [True, False, True, False]
    assert run.confidence.tolist() == [0.85, 1.0, 1.0, 0.2]
    assert run.skipped == {"unscored": 1, "confidence 100, stated or missing (used)": 2}
    assert run.figures["hle/cerr"] != run.figures["hle/cerr without 100%"]


def test_epochs_are_rows_of_one_question(tmp_path):
    samples = [
        inspect_sample(i, {"score": "C", "confidence": 50}, epoch=e) for i in (1, 2) for e in (1, 2)
    ]
    run = llm.read(write_inspect(tmp_path / "log.eval", samples))["hle"]
    assert run.groups.tolist() == [0, 0, 1, 1]


def test_epochs_of_options_are_rows_of_one_question(tmp_path):
    answer = [token("A", -0.5, [("A", -0.5), ("B", -1.5)])]
    samples = [
        inspect_sample(i, "C", choices=["x", "y"], tokens=answer, epoch=e)
        for i in (1, 2)
        for e in (1, 2)
    ]
    run = llm.read(write_inspect(tmp_path / "log.eval", samples, task="quiz"))["quiz"]
    assert run.source == "options (letters)"
    assert run.groups.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"eval": "hle", "samples": []}, "contains no evaluation"),
        ({"eval": {"task": "hle"}, "samples": 5}, "'samples' is not a list"),
        (
            {"eval": {}, "samples": [{"id": 1, "scores": {"s": {"value": {"confidence": None}}}}]},
            "contains no evaluation|no answer|no confidences",
        ),
    ],
)
def test_documents_of_other_shapes_are_rejected(tmp_path, log, message):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with pytest.raises(ValueError, match=message):
        llm.read(path)


def test_answers_of_other_shapes_have_no_confidence(tmp_path):
    odd = {"message": "hi", "logprobs": {"content": 5}}
    listed = {"logprobs": {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": 5}]}}
    score = {"s": {"value": "C"}}
    samples = [
        {"id": i, "choices": ["x", "y"], "output": {"choices": [choice]}, "scores": score}
        for i, choice in enumerate([odd, listed])
    ]
    samples.append({"id": 3, "scores": {"s": {"value": {"score": "C", "confidence": None}}}})
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"eval": {"task": "quiz"}, "samples": samples}))
    run = llm.read(path)["quiz"]
    assert (run.source, len(run), run.n_missing) == ("mean token probability", 1, 2)


def test_option_letters_of_an_inspect_log(tmp_path):
    top = [("A", math.log(0.5)), (" A", math.log(0.1)), ("B", math.log(0.3))]
    answer = [token("ANSWER: ", -0.1), token("A", math.log(0.5), top), token(".", -0.01)]
    samples = [inspect_sample(0, "C", choices=["x", "y"], tokens=answer)]
    samples += [inspect_sample(1, "I", choices=["x", "y", "z"], target="C", tokens=answer)]
    samples += [inspect_sample(2, "I", choices=["x", "y"], tokens=None)]
    run = llm.read(write_inspect(tmp_path / "log.eval", samples, task="quiz"))["quiz"]
    assert run.source == "options (letters)"
    np.testing.assert_allclose(run.options.proba[0], [2 / 3, 1 / 3, 0])
    # C was not listed: the rest is 0.1, which is below the smallest listed probability.
    np.testing.assert_allclose(run.options.proba[1], [0.6, 0.3, 0.1])
    assert run.labels.tolist() == [0, 2]
    assert run.n_missing == 1
    assert run.skipped["letter not among the top tokens (bounded)"] == 1


def test_token_probabilities_of_open_answers(tmp_path):
    samples = [inspect_sample(i, 1.0, tokens=[token("a", -0.2), token("b", -0.4)]) for i in (1, 2)]
    run = llm.read(write_inspect(tmp_path / "log.eval", samples, task="open"))["open"]
    assert run.source == "mean token probability"
    np.testing.assert_allclose(run.confidence, math.exp(-0.3))
    np.testing.assert_allclose(run.features["mean_logprob"], -0.3)


def test_inspect_log_without_confidences_is_refused(tmp_path):
    path = write_inspect(tmp_path / "log.eval", [inspect_sample(1, "C"), inspect_sample(2, "I")])
    with pytest.raises(ValueError, match=r"2 answers, but no confidences.*--logprobs"):
        llm.read(path)


def test_scorers_are_separate_runs(tmp_path):
    sample = inspect_sample(1, {"score": "C", "confidence": 50})
    sample["scores"]["second"] = {"value": {"score": "I", "confidence": 50}}
    runs = llm.read(write_inspect(tmp_path / "log.eval", [sample]))
    assert runs["hle/judge"].correct.tolist() == [True]
    assert runs["hle/second"].correct.tolist() == [False]
