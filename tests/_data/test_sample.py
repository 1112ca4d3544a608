from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample, LazyRows, lifted, mapped


def test_small_data_is_lifted_once_and_large_data_on_demand(monkeypatch):
    scores = np.arange(12.0).reshape(4, 3)
    assert isinstance(lifted(scores, np.sqrt), np.ndarray)
    monkeypatch.setattr("calibrant._data.sample.KEEP_ELEMENTS", 5)
    lazy = lifted(scores, np.sqrt)
    assert isinstance(lazy, LazyRows)
    assert lazy.shape == (4, 3)
    assert len(lazy) == 4
    np.testing.assert_array_equal(lazy[1:3], np.sqrt(scores[1:3]))


def test_a_function_of_lifted_rows_is_applied_when_they_are_asked_for(rng):
    scores = rng.random((20, 3))
    asked = []

    def lift(block):
        asked.append(len(block))
        return np.log(block)

    lazy = mapped(LazyRows(scores, lift), np.exp)
    assert not asked
    assert lazy.shape == (20, 3)
    np.testing.assert_allclose(lazy[5:9], scores[5:9])
    assert asked == [4]
    np.testing.assert_array_equal(mapped(np.log(scores), np.exp), np.exp(np.log(scores)))


def test_some_lifted_rows_are_lifted_on_demand_too(rng):
    scores = rng.random((20, 3))
    some = LazyRows(scores, np.log).take([3, 1])
    assert some.shape == (2, 3)
    np.testing.assert_array_equal(some[:], np.log(scores[[3, 1]]))


def test_a_sample_in_memory_is_one_part(rng):
    u, y, weight = rng.random((50, 3)), rng.integers(3, size=50), rng.random(50)
    sample = ArraySample(u, y, weight)
    assert not sample.is_chunked
    assert sample.sum_chunks(lambda part: part) is sample
    np.testing.assert_allclose(sample.class_weights.sum(), sample.total)
    assert sample.normalized().total == pytest.approx(1)
    found = sample.sum(lambda block: (block.weight @ block.u, [block.start]), elements=30)
    np.testing.assert_allclose(found[0], weight @ u)
    assert found[1] == [0, 10, 20, 30, 40]
    np.testing.assert_array_equal(sample.lifted(np.log).u, np.log(u))
    assert sample.every(16).shape == (4, 3)
