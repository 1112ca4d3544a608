"""Weights of a report: copies where they are whole."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import check_predictions
from calibrant.report import _weights
from calibrant.report._weights import is_weighted, weight_sentences, with_copies

PROBA = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])


def given(weight):
    return check_predictions([0, 1, 1], PROBA, weight)


def test_whole_weights_become_copies_with_their_groups():
    made, by = with_copies(given([2, 0, 1]), ["a", "b", "c"])
    np.testing.assert_array_equal(made.scores, PROBA[[0, 0, 2]])
    assert made.y.tolist() == [0, 0, 1]
    assert not is_weighted(made.weight)
    assert {name: part.tolist() for name, part in by.items()} == {"group": ["a", "a", "c"]}


def test_rows_without_weights_and_with_other_weights_stay(monkeypatch):
    for weight in (None, [1, 1, 1], [0.5, 1, 2]):
        data = given(weight)
        assert with_copies(data, "by") == (data, "by")
    monkeypatch.setattr(_weights, "_MOST_COPIES", 2)
    many = given([5, 5, 5])
    assert with_copies(many)[0] is many


def test_weights_that_come_to_fewer_than_two_rows_are_refused():
    with pytest.raises(ValueError, match="a report counts rows"):
        with_copies(given([0.1, 0.2, 0.3]))


def test_what_is_left_out_is_said():
    assert weight_sentences(np.ones(3), np.ones(3)) == ()
    assert len(weight_sentences(np.array([2.0, 1, 1]), np.ones(4))) == 1
    both = weight_sentences(np.array([0.5, 0, 1.5]), np.array([0.5, 0, 1.5]))
    assert "come to 2 rows of 2" in both[0]
    assert "kernel test is left out" in both[1]
