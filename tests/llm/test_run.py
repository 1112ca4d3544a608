"""Runs and their names."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import OptionScores
from calibrant.llm import Run, Runs
from calibrant.llm._run import as_runs


def run(task="a", source="stated", n_rows=3, n_missing=0):
    return Run(task, source, np.ones(n_rows, bool), np.full(n_rows, 0.5), n_missing=n_missing)


def test_runs_are_a_mapping_of_tasks():
    runs = Runs({"a": run(), "b": run("b", n_rows=0, n_missing=2)})
    assert runs.tasks == ("a", "b")
    assert list(runs.evaluated) == ["a"]
    assert repr(runs) == "Runs(2 tasks, 3 rows)"
    assert "2 without a confidence" in repr(runs["b"])
    assert runs["a"].accuracy == 1.0
    with pytest.raises(KeyError, match=r"There is no task 'c'. The tasks are 'a', 'b'"):
        runs["c"]


def test_rows_are_selected():
    whole = Run(
        "a",
        "options (sum)",
        np.array([True, False, True]),
        np.array([0.7, 0.6, 0.5]),
        OptionScores(np.zeros((3, 2))),
        np.array([0, 1, 0]),
        features={"length": np.arange(3.0)},
        groups=np.array([0, 0, 1]),
        n_missing=5,
    )
    part = whole[[0, 2]]
    assert part.correct.tolist() == [True, True]
    assert len(part.options) == 2
    assert part.features["length"].tolist() == [0, 2]
    assert part.groups.tolist() == [0, 1]
    assert part.n_missing == 0
    assert whole[:1].labels.tolist() == [0]


def test_sources_are_not_mixed():
    assert Runs({"a": run(), "b": run()}).one_source("calibrator") == "stated"
    mixed = Runs({"a": run(), "b": run(source="max_prob")})
    with pytest.raises(ValueError, match=r"different sources: max_prob, stated.*llm\.Runs"):
        mixed.one_source("calibrator")


def test_a_run_is_made_of_lists_or_columns():
    made = Run("a", "stated", [1, 0], [0.5, 1])
    assert (made.correct.dtype, made.confidence.dtype) == (bool, float)
    assert made[1].confidence.tolist() == [1.0]
    with pytest.raises(ValueError, match="correct has 2 rows and confidence has 3 rows"):
        Run("a", "stated", [True, False], np.ones(3))
    with pytest.raises(ValueError, match="correct must be 0 or 1"):
        Run("a", "stated", ["True", "False"], [0.5, 1])


def test_a_dictionary_of_runs_is_accepted_and_a_single_run_is_not():
    assert as_runs({"a": run()}).tasks == ("a",)
    with pytest.raises(TypeError, match=r"got Run. Pass llm.Runs\(\{run.task: run\}\)"):
        as_runs(run())
    with pytest.raises(ValueError, match="The runs have no rows"):
        Runs({}).one_source("calibrator")
