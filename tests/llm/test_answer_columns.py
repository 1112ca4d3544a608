"""Columns of answers."""

from __future__ import annotations

import numpy as np

from calibrant.llm import Run, Runs
from calibrant.llm._answer_columns import answer_columns, answer_frame


def test_transformations_of_columns():
    frame = {"confidence": [0.5, 1.0], "agreement": [0.5, 0.0], "length": [0, 9], "x": [1, 2]}
    columns = answer_columns(frame, list(frame), percent=False)
    expected = [
        [0, 0, 0, 1],
        [np.log(0.995 / 0.005), np.log(0.02 / 0.98), np.log(10), 2],
    ]
    np.testing.assert_allclose(columns, expected)


def test_runs_become_one_frame_with_missing_features():
    one = Run("a", "stated", np.array([True]), np.array([0.5]), features={"x": np.array([3.0])})
    two = Run("b", "stated", np.array([False, True]), np.array([0.6, 0.7]))
    frame, correct = answer_frame(Runs({"a": one, "b": two}))
    assert frame["task"].tolist() == ["a", "b", "b"]
    np.testing.assert_array_equal(frame["x"], [3.0, np.nan, np.nan])
    assert correct.tolist() == [True, False, True]
