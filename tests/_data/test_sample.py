from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample, LazyRows


def sample_of(u):
    return ArraySample(u, np.zeros(len(u), dtype=int), np.ones(len(u)))


def test_small_data_are_transformed_once_and_large_data_on_demand(monkeypatch):
    scores = np.arange(12.0).reshape(4, 3)
    assert isinstance(sample_of(scores).transformed(np.sqrt).u, np.ndarray)
    monkeypatch.setattr("calibrant._data.sample.WORK_MEMORY", 5)
    lazy = sample_of(scores).transformed(np.sqrt).u
    assert isinstance(lazy, LazyRows)
    assert lazy.shape == (4, 3)
    assert len(lazy) == 4
    np.testing.assert_array_equal(lazy[1:3], np.sqrt(scores[1:3]))


def test_a_function_of_lazy_rows_is_applied_when_they_are_needed(rng):
    scores = rng.random((20, 3))
    sizes = []

    def log(block):
        sizes.append(len(block))
        return np.log(block)

    lazy = sample_of(LazyRows(scores, log)).transformed(np.exp).u
    assert not sizes
    assert lazy.shape == (20, 3)
    np.testing.assert_allclose(lazy[5:9], scores[5:9])
    assert sizes == [4]


def test_some_lazy_rows_stay_lazy(rng):
    scores = rng.random((20, 3))
    some = LazyRows(scores, np.log).take([3, 1])
    assert some.shape == (2, 3)
    np.testing.assert_array_equal(some[:], np.log(scores[[3, 1]]))


def test_a_sample_in_memory_is_one_chunk(rng):
    u, y, weight = rng.random((50, 3)), rng.integers(3, size=50), rng.random(50)
    sample = ArraySample(u, y, weight)
    assert not sample.is_chunked
    assert sample.sum_chunks(lambda chunk: chunk) is sample
    np.testing.assert_allclose(sample.class_weights.sum(), sample.total)
    assert sample.normalized().total == pytest.approx(1)
    found = sample.sum(lambda block: (block.weight @ block.u, [block.start]), elements=30)
    np.testing.assert_allclose(found[0], weight @ u)
    assert found[1] == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(sample.transformed(np.log).u, np.log(u))
    assert sample.every(16).shape == (4, 3)


@pytest.mark.parametrize("weight", [np.ones(50), np.arange(50) % 3 * 1.0])
def test_rows_are_taken_by_their_places_among_those_that_count(rng, weight):
    u, y = rng.random((50, 3)), rng.integers(3, size=50)
    sample, places = ArraySample(u, y, weight), np.array([0, 3, 7])
    rows = np.flatnonzero(weight)[places]
    taken = sample.take(places)
    np.testing.assert_array_equal(taken.u, u[rows])
    np.testing.assert_array_equal(taken.y, y[rows])
    np.testing.assert_array_equal(taken.weight, weight[rows])
    assert sample.n_rows == np.count_nonzero(weight)
    assert sample.is_weighted == bool((weight > 1).any())
