"""Collection of rows."""

from __future__ import annotations

import numpy as np

from calibrant.llm._collect import AnswerRows, OptionRows


def test_several_right_options_keep_the_best_one():
    rows = OptionRows()
    rows.add([-3.0, -1.0, -2.0], [0, 2])
    rows.add([-1.0, -2.0], [0, 5])
    rows.add([-1.0, -2.0], [])
    rows.add([float("-inf")] * 2, [0])
    run = rows.build("task", "options", "file")
    assert run.labels.tolist() == [2, 0]
    assert run.correct.tolist() == [False, True]
    assert run.skipped == {
        "several correct options (used)": 1,
        "no correct option among the options": 1,
        "all options impossible": 1,
    }


def test_equal_scores_choose_the_first_option():
    rows = OptionRows()
    rows.add([-1.0, -1.0], [1])
    assert rows.build("task", "options", "file").correct.tolist() == [False]


def test_rows_of_a_repeated_question_are_a_group():
    rows = OptionRows()
    for question in (5, None, 5, None):
        rows.add([-1.0, -2.0], [0], question)
    assert rows.build("task", "options", "file").groups.tolist() == [0, 1, 0, 2]
    rows = OptionRows()
    rows.add([-1.0, -2.0], [0], 5)
    assert rows.build("task", "options", "file").groups is None


def test_answers_without_confidence_are_only_counted():
    rows = AnswerRows(("length", "other"))
    rows.add(True, 0.9, {"length": 3.0}, "q")
    rows.add(False, None, {"length": 4.0}, "q")
    rows.add(False, 0.2, {}, "q")
    run = rows.build("task", "stated", "file")
    assert run.n_missing == 1
    assert run.confidence.tolist() == [0.9, 0.2]
    np.testing.assert_array_equal(run.features["length"], [3.0, np.nan])
    assert "other" not in run.features
    assert run.groups.tolist() == [0, 0]
    assert len(AnswerRows().build("task", "stated", "file")) == 0
    assert len(OptionRows().build("task", "options", "file")) == 0


def test_questions_are_numbered_by_their_first_row():
    rows = AnswerRows()
    for question in ("b", -1, None, "a", -2, "b", None, "-1", -2):
        rows.add(True, 0.5, question=question)
    run = rows.build("task", "stated", "path")
    assert run.groups.tolist() == [0, 1, 2, 3, 4, 0, 5, 6, 4]


def test_rows_without_a_repeated_question_have_no_groups():
    rows = AnswerRows()
    for question in (None, "a", None, "b"):
        rows.add(True, 0.5, question=question)
    assert rows.build("task", "stated", "path").groups is None
    assert AnswerRows().build("task", "stated", "path").groups is None
