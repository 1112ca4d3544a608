"""Sketches of rows: the same rows are found, other rows are not."""

import numpy as np
import pytest

from calibrant._data.row_sketch import (
    contains_rows,
    repeated_share,
    row_hashes,
    sketch_rows,
)


@pytest.fixture
def rows(rng):
    return rng.dirichlet(np.ones(4), size=2000)


def test_the_same_rows_are_found_in_any_order_and_precision(rows, rng):
    sketch = sketch_rows(row_hashes(rows))
    other = rng.permutation(rows).astype(np.float32)
    assert contains_rows(sketch, row_hashes(other))


def test_half_of_the_rows_are_found(rows):
    assert contains_rows(sketch_rows(row_hashes(rows)), row_hashes(rows[::2]))


def test_other_rows_are_not_found(rows):
    assert not contains_rows(sketch_rows(row_hashes(rows[::2])), row_hashes(rows[1::2]))


def test_rows_of_few_values_are_not_mistaken_for_the_same_rows(rng):
    votes = rng.multinomial(10, [0.5, 0.3, 0.2], size=2000) / 10
    assert not contains_rows(sketch_rows(row_hashes(votes[::2])), row_hashes(votes[1::2]))


def test_negative_zero_is_zero():
    assert row_hashes(np.array([[0.0, 1.0]])) == row_hashes(np.array([[-0.0, 1.0]]))


def test_repeated_rows_are_counted(rows):
    assert repeated_share(row_hashes(rows)) == 0
    assert repeated_share(row_hashes(np.tile(rows[:500], (2, 1)))) == 0.5
    assert repeated_share(row_hashes(rows[:0])) == 0


def test_an_empty_sketch_contains_nothing(rows):
    assert not contains_rows("", row_hashes(rows))


def test_different_rows_have_different_hashes(rng):
    rows = rng.integers(4, size=(3000, 6)) / 4
    hashes = row_hashes(rows)
    assert len(np.unique(hashes)) == len(np.unique(rows, axis=0))
    assert row_hashes(rows[:1]) != row_hashes(rows[:1, ::-1]) or (rows[0] == rows[0][::-1]).all()
