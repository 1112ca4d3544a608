"""The rows of a report: folds, and rows that are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.read import as_sample
from calibrant.io import RowBlocks
from calibrant.report import _rows
from calibrant.report._rows import DrawnRows, draw_rows, first_fold, join_drawn, read_rows

N_ROWS = 40


@pytest.fixture
def arrays(rng):
    return rng.dirichlet(np.ones(3), N_ROWS), rng.integers(3, size=N_ROWS)


def sample_of(arrays, weight=None):
    return as_sample(*arrays, weight)[0]


def chunked_sample_of(arrays, size=15):
    proba, y = arrays

    def read():
        for start in range(0, len(y), size):
            yield proba[start : start + size], y[start : start + size]

    blocks = RowBlocks(read)
    return as_sample(blocks.scores, blocks.labels)[0]


def drawn_of(arrays):
    proba, y = arrays
    return DrawnRows(proba, proba[:, ::-1], y, np.ones(len(y)))


def test_all_rows_in_memory_are_drawn(arrays):
    rows = read_rows(sample_of(arrays), 0)
    assert rows.places is None
    assert rows.gather() is rows.sample


def test_of_chunked_rows_as_many_are_drawn_as_the_budget_allows(arrays, monkeypatch):
    sample = chunked_sample_of(arrays)
    np.testing.assert_array_equal(read_rows(sample, 0).places, np.arange(N_ROWS))
    monkeypatch.setattr(_rows, "_DRAWN_SCORES", 30)
    rows = read_rows(sample, 0)
    assert len(np.unique(rows.places)) == 10
    np.testing.assert_array_equal(rows.gather().u, arrays[0][rows.places])
    assert read_rows(sample, 1).places.tolist() != rows.places.tolist()


def test_equal_weights_become_one(arrays):
    rows = read_rows(sample_of(arrays, np.full(N_ROWS, 2)), 0).effective()
    assert rows.sample.shape == (N_ROWS, 3)
    assert rows.sample.total == pytest.approx(N_ROWS)


@pytest.mark.parametrize("make", [sample_of, chunked_sample_of])
def test_every_row_is_held_out_by_one_fold(arrays, make):
    rows = read_rows(make(arrays), 0)
    folds = rows.cut_folds(4, 0)
    fold = rows.sample.sum_chunks(lambda chunk: folds.fold_of(chunk).tolist())
    assert np.bincount(fold).tolist() == [10] * 4
    for number, train in enumerate(folds.plan.trains):
        assert train.total == N_ROWS - 10
        expected = np.bincount(arrays[1][np.array(fold) != number], minlength=3)
        np.testing.assert_array_equal(train.class_weights, expected)


def test_a_row_of_a_weight_is_in_one_fold_with_its_weight(arrays):
    weight = np.linspace(0.1, 1.9, N_ROWS)
    folds = read_rows(sample_of(arrays, weight), 0).cut_folds(4, 0)
    held_out = folds.plan.sum_held_out(lambda part: part.rows.weight.tolist())
    assert sorted(held_out) == pytest.approx(weight.tolist())


@pytest.mark.parametrize("make", [sample_of, chunked_sample_of])
def test_one_row_cannot_be_cut_into_folds(arrays, make):
    rows = read_rows(make([part[:1] for part in arrays]), 0)
    with pytest.raises(ValueError, match="at least two rows"):
        rows.cut_folds(2, 0)


def test_rows_that_one_fit_predicts_are_in_the_first_fold(arrays):
    assert first_fold(sample_of(arrays)).tolist() == [0] * N_ROWS


def test_drawn_rows_of_chunks_are_joined_in_row_order(arrays):
    drawn, places = drawn_of(arrays), np.array([3, 14, 15, 39])
    chunks = chunked_sample_of(arrays).sum_chunks(
        lambda chunk: draw_rows(
            places, chunk, drawn.subset(slice(chunk.start, chunk.start + len(chunk.y)))
        )
    )
    joined = join_drawn(chunks)
    for one, other in zip(joined, drawn.subset(places), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_of_weight_zero_are_not_drawn_from_chunks(arrays):
    weight = np.arange(N_ROWS) % 2
    (drawn,) = draw_rows(np.arange(N_ROWS), sample_of(arrays, weight), drawn_of(arrays))
    np.testing.assert_array_equal(drawn.y, arrays[1][1::2])


def test_some_rows_are_drawn_at_random_in_their_order(arrays):
    drawn = drawn_of(arrays)
    assert drawn.draw(N_ROWS, 0) is drawn
    some = drawn.draw(10, 0)
    assert len(some.y) == 10
    places = [int(np.flatnonzero((drawn.before == row).all(axis=1))[0]) for row in some.before]
    assert places == sorted(places)
    np.testing.assert_array_equal(some.before, drawn.draw(10, 0).before)


def test_weights_that_are_all_one_are_none(arrays):
    drawn = drawn_of(arrays)
    assert drawn.sample_weight is None
    weighted = drawn._replace(weight=np.full(N_ROWS, 0.5))
    assert weighted.sample_weight is weighted.weight
