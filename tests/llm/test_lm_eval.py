"""Sample files of lm-evaluation-harness."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant import llm
from llm_logs import lm_eval_line, old_lm_eval_line, write_lines

NAME = "samples_arc_2026-11-01T10-20-30.123456.jsonl"


def test_options_of_both_spellings_are_the_same(tmp_path):
    sums, target = [-2.5, -1.25, -4.0], 1
    new = llm.read(write_lines(tmp_path / NAME, [lm_eval_line(0, sums, target)]))["arc"]
    lines = [old_lm_eval_line(0, sums, target)]
    old = llm.read(write_lines(tmp_path / "samples_old.jsonl", lines))["old"]
    (tmp_path / "list_arc.jsonl").write_text(json.dumps(lines, indent=2))
    listed = llm.read(tmp_path / "list_arc.jsonl")["list_arc"]
    for run in (new, old, listed):
        assert run.labels.tolist() == [1]
        assert run.correct.tolist() == [True]
        np.testing.assert_allclose(run.options.proba[0], np.exp(sums) / np.exp(sums).sum())
    assert new.source == "options (sum)"


def test_questions_with_different_numbers_of_options(tmp_path):
    lines = [lm_eval_line(0, [-1, -2, -3, -4, -5], 0), lm_eval_line(1, [-3.0, -1.0], 0)]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert run.options.n_options.tolist() == [5, 2]
    assert run.options.proba[1, 2:].tolist() == [0, 0, 0]
    assert run.correct.tolist() == [True, False]


@pytest.mark.parametrize("target", ["[,]", "[0 1]", "[--1]", "9" * 5000])
def test_targets_that_look_like_an_index_are_texts(tmp_path, target):
    lines = [{**lm_eval_line(0, [-1, -2], 0), "target": target, "acc": float("nan")}]
    with pytest.raises(ValueError, match="no correct option among the options: 1"):
        llm.read(write_lines(tmp_path / NAME, lines))


def test_a_repeated_question_is_one_group(tmp_path):
    lines = [lm_eval_line(i, [-1, -2], 0) for i in (7, 8, 7)]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert run.groups.tolist() == [0, 1, 0]


def test_responses_of_another_shape_are_rejected(tmp_path):
    lines = [{**lm_eval_line(0, [-1, -2], 0), "filtered_resps": [["-1", "False"], 5]}]
    with pytest.raises(ValueError, match="line 1: responses must be pairs"):
        llm.read(write_lines(tmp_path / NAME, lines))


def test_first_filter_is_kept_and_the_others_are_counted(tmp_path):
    lines = [lm_eval_line(i, [-1, -2], 0, filter_=f) for f in ("none", "letters") for i in range(3)]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert len(run) == 3
    assert run.skipped == {"other filter 'letters'": 3}


@pytest.mark.parametrize(
    ("target", "label"),
    [
        ("2", 2),
        ("[0, 2]", 2),
        ([0, 2], 2),
        ("option C", 2),
        (2, 2),
        ("[1]", 1),
        ("[ 0, 2 ,]", 2),
    ],
)
def test_targets_are_indices_lists_or_texts(tmp_path, target, label):
    lines = [{**lm_eval_line(0, [-3, -4, -1], 0), "target": target}]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert run.labels.tolist() == [label]
    assert run.correct.tolist() == [label == 2]


def test_question_without_a_right_option_is_counted(tmp_path):
    lines = [lm_eval_line(0, [-1, -2], -100), lm_eval_line(1, [-1, -2], 1)]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert len(run) == 1
    assert run.skipped == {"no correct option among the options": 1}


def test_options_in_the_context_are_read_by_their_accuracy(tmp_path):
    lines = [
        lm_eval_line(0, [-1, -2], "the end.", texts=["the end."] * 2, acc=0.0),
        lm_eval_line(1, [-1, -2], "the end.", texts=["the end."] * 2, acc=1.0),
    ]
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert run.labels.tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"texts of the options.*reading='sum'"):
        llm.read(tmp_path / NAME, reading="char")


def test_truncated_last_line_is_counted_and_a_broken_line_is_an_error(tmp_path):
    lines = [json.dumps(lm_eval_line(i, [-1, -2], 0)) for i in range(3)]
    path = tmp_path / NAME
    path.write_text("\n".join(lines) + "\n" + lines[0][:50])
    run = llm.read(path)["arc"]
    assert len(run) == 3
    assert run.skipped == {"truncated last line": 1}
    path.write_text("\n".join([lines[0], lines[1][:50], lines[2]]) + "\n")
    with pytest.raises(ValueError, match=r"line 2 is not valid JSON") as error:
        llm.read(path)
    assert "\n" not in str(error.value)


def test_readings_divide_by_characters_and_bytes(tmp_path):
    sums, texts = [-6.0, -7.0, -8.0], ["ab", "abc", "äöüäö"]
    path = write_lines(tmp_path / NAME, [lm_eval_line(0, sums, 2, texts=texts)])
    expected = {"sum": sums, "char": [-3, -7 / 3, -1.6], "byte": [-3, -7 / 3, -0.8]}
    for reading, scores in expected.items():
        run = llm.read(path, reading=reading)["arc"]
        np.testing.assert_allclose(
            run.options.proba[0], np.exp(scores) / np.exp(scores).sum(), rtol=1e-12
        )
        assert run.source == f"options ({reading})"


def test_delimiter_of_the_results_file_is_used(tmp_path):
    line = lm_eval_line(0, [-6.0, -6.0], 0, texts=["ab", "abcd"])
    for entry in line["arguments"].values():
        entry["arg_1"] = "\n\n" + entry["arg_1"].strip()
    write_lines(tmp_path / NAME, [line])
    (tmp_path / "results_2026-11-01T10-20-30.123456.json").write_text(
        json.dumps({"configs": {"arc": {"target_delimiter": "\n\n"}}})
    )
    run = llm.read(tmp_path, reading="char")["arc"]
    np.testing.assert_allclose(np.diff(run.options.log_proba[0]), [1.5])


@pytest.mark.parametrize("is_strided", [False, True])
def test_mutual_information_subtracts_the_unconditional_score(tmp_path, is_strided):
    conditional, unconditional = [-2.0, -3.0], [-1.0, -4.0]
    line = lm_eval_line(0, [*conditional, *unconditional], 1, acc_mutual_info=1.0, acc=0.0)
    order = [0, 2, 1, 3] if is_strided else [0, 1, 2, 3]
    contexts = ["Q?", "Q?", "", ""]
    line["filtered_resps"] = [line["filtered_resps"][i] for i in order]
    line["arguments"] = {
        f"gen_args_{place}": {"arg_0": contexts[i], "arg_1": f" option {'AB'[i % 2]}"}
        for place, i in enumerate(order)
    }
    path = write_lines(tmp_path / NAME, [line])
    assert llm.read(path)["arc"].correct.tolist() == [False]
    run = llm.read(path, reading="mutual")["arc"]
    assert run.correct.tolist() == [True]
    np.testing.assert_allclose(np.diff(run.options.log_proba[0]), [2.0])


def test_mutual_information_that_was_not_logged_is_an_error(tmp_path):
    path = write_lines(tmp_path / NAME, [lm_eval_line(0, [-1, -2], 0)])
    with pytest.raises(ValueError, match="acc_mutual_info, or pass reading='sum'"):
        llm.read(path, reading="mutual")


def test_generated_answers_without_confidences_are_refused_with_the_fix(tmp_path):
    line = {**lm_eval_line(0, [-1, -2], 0), "filtered_resps": ["42"], "exact_match": 1.0}
    path = write_lines(tmp_path / "samples_gsm8k_2026-11-01T10-20-30.123456.jsonl", [line] * 3)
    with pytest.raises(ValueError, match=r"3 answers, but no confidences.*--logprobs"):
        llm.read(path)
    write_lines(tmp_path / NAME, [lm_eval_line(0, [-1, -2], 0)])
    runs = llm.read(tmp_path)
    assert runs["gsm8k"].n_missing == 3
    assert len(runs["gsm8k"]) == 0
    assert list(runs.evaluated) == ["arc"]


def test_models_and_dates_are_not_merged(tmp_path):
    for model in ("a", "b"):
        write_lines(tmp_path / model / NAME, [lm_eval_line(0, [-1, -2], 0)])
    again = NAME.replace("10-20", "11-20")
    write_lines(tmp_path / "b" / again, [lm_eval_line(0, [-1, -2], 0)])
    runs = llm.read(tmp_path)
    assert len(runs) == 3
    assert {"a/arc", "b/arc"} < set(runs.tasks)
    assert all(len(run) == 1 for run in runs.values())


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "not a number", None])
def test_log_probabilities_must_be_numbers(tmp_path, value):
    line = lm_eval_line(0, [-1.0, -2.0], 0)
    line["filtered_resps"][1][0] = value
    with pytest.raises(ValueError, match=r"line 1: a log-probability is") as error:
        llm.read(write_lines(tmp_path / NAME, [line]))
    assert "\n" not in str(error.value)


def test_accuracy_of_the_harness_is_kept(tmp_path, rng):
    lines, accuracy = [], []
    for doc in range(200):
        sums = rng.normal(size=rng.integers(2, 6)).tolist()
        label = int(rng.integers(len(sums)))
        accuracy.append(float(np.argmax(sums) == label))
        lines.append(lm_eval_line(doc, sums, label, acc=accuracy[-1]))
    run = llm.read(write_lines(tmp_path / NAME, lines))["arc"]
    assert run.correct.tolist() == [value == 1 for value in accuracy]
    assert run.figures["acc"] == run.accuracy
