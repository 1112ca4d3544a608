"""Weights of a report: copies if they are integers."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.read import as_sample
from calibrant.report import _weights
from calibrant.report._weights import copy_rows, has_weights, weight_sentences

PROBA = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])


def sample_of(weight, columns=()):
    return as_sample(PROBA, [0, 1, 1], weight, columns=columns)[0]


def test_rows_of_integer_weights_are_copied_with_their_columns():
    copies = copy_rows(sample_of([2, 0, 1], (np.array(["a", "b", "c"]),)))
    np.testing.assert_array_equal(copies.u, PROBA[[0, 0, 2]])
    assert copies.y.tolist() == [0, 0, 1]
    assert not has_weights(copies)
    assert [column.tolist() for column in copies.columns] == [["a", "a", "c"]]


def test_columns_of_another_length_are_not_copied():
    with pytest.raises(ValueError, match="shape"):
        copy_rows(sample_of([2, 0, 1], (np.array(["a", "b", "c", "d"]),)))


def test_rows_without_weights_and_with_other_weights_stay(monkeypatch):
    for weight in (None, [1, 1, 1], [0.5, 1, 2]):
        sample = sample_of(weight)
        assert copy_rows(sample) is sample
    monkeypatch.setattr(_weights, "_MOST_COPIES", 2)
    many = sample_of([5, 5, 5])
    assert copy_rows(many) is many


def test_weights_that_come_to_fewer_than_two_rows_are_rejected():
    with pytest.raises(ValueError, match="a report counts rows"):
        copy_rows(sample_of([0.1, 0.2, 0.3]))


@pytest.mark.parametrize(
    ("weight", "expected"), [(None, False), ([1, 0, 1], True), ([1, 1, 2], True)]
)
def test_a_row_of_weight_zero_is_a_weight_too(weight, expected):
    assert has_weights(sample_of(weight)) == expected


def test_the_sentences_name_what_is_left_out():
    assert weight_sentences(sample_of(None), is_copied=True) == ()
    assert len(weight_sentences(sample_of([2, 1, 1]), is_copied=True)) == 1
    both = weight_sentences(sample_of([0.5, 0, 1.5]), is_copied=False)
    assert "come to 2 rows of 2" in both[0]
    assert "kernel test is left out" in both[1]
