from __future__ import annotations

import numpy as np

from calibrant.metrics._risk_path import path_of, risk_path


def test_rows_and_errors_are_cumulative_at_the_ends_of_ties():
    score = np.array([0.5, 0.9, 0.7, 0.9])
    path = risk_path(score, np.array([1, 0, 1, 1]), np.ones(4))
    assert path.score.tolist() == [0.9, 0.7, 0.5]
    assert path.rows.tolist() == [2, 3, 4]
    assert path.errors.tolist() == [1, 2, 3]
    assert path.errors_at([1.0, 2.5]).tolist() == [0.5, 1.5]


def test_rows_of_weight_zero_are_left_out():
    path = risk_path(np.array([0.9, 0.8]), np.array([1, 1]), np.array([0.0, 2.0]))
    assert path.score.tolist() == [0.8]
    assert (path.total, path.n_errors) == (2, 2)


def test_the_best_path_puts_all_errors_last():
    best = risk_path(np.array([0.9, 0.8, 0.7]), np.array([1, 0, 0]), np.ones(3)).best()
    assert best.rows.tolist() == [2, 3]
    assert best.errors.tolist() == [0, 1]
    for wrong in ([0, 0], [1, 1]):  # one block only
        path = risk_path(np.array([0.9, 0.8]), np.array(wrong), np.ones(2)).best()
        assert (path.rows.tolist(), path.errors.tolist()) == ([2], [sum(wrong)])


def test_confidence_by_name_and_by_function_have_the_same_path(rng):
    proba, y = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    rest = (None, None, "proba")
    named, own = (
        path_of(y, proba, score, *rest) for score in ("confidence", lambda p: p.max(axis=1))
    )
    for left, right in zip(named, own, strict=True):
        np.testing.assert_array_equal(left, right)
