from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from calibrant._kernels import blocks
from calibrant._kernels.blocks import sum_in_pairs


@given(n_rows=st.integers(1, 200), n_columns=st.integers(1, 20), elements=st.integers(1, 500))
def test_blocks_cover_every_row_once_in_order(n_rows, n_columns, elements):
    slices = list(blocks.row_blocks(n_rows, n_columns, elements=elements))
    covered = np.concatenate([np.arange(n_rows)[rows] for rows in slices])
    np.testing.assert_array_equal(covered, np.arange(n_rows))
    assert all((b.stop - b.start) * n_columns <= max(elements, n_columns) for b in slices)


@given(elements=st.integers(1, 300))
def test_blocks_of_any_size_give_the_same_sums(elements):
    data = np.arange(120.0).reshape(40, 3)
    total, rows = blocks.sum_blocks(
        lambda b: (data[b].sum(axis=0), b.stop - b.start), 40, 3, elements=elements
    )
    np.testing.assert_array_equal(total, data.sum(axis=0))
    assert rows == 40


def test_threads_give_bit_for_bit_what_one_thread_gives(monkeypatch, rng):
    data = rng.normal(size=(5000, 3))
    results = []
    for threads, limit in (("1", 10**9), ("3", 1)):
        monkeypatch.setenv("CALIBRANT_NUM_THREADS", threads)
        monkeypatch.setattr(blocks, "THREAD_WORK", limit)
        results.append(
            blocks.sum_blocks(lambda b: np.exp(data[b]).sum(axis=0), 5000, 3, elements=100)
        )
    np.testing.assert_array_equal(*results)


def test_threads_are_the_cores_of_the_process_or_the_number_that_is_asked_for(monkeypatch):
    monkeypatch.delenv("CALIBRANT_NUM_THREADS", raising=False)
    monkeypatch.setattr(blocks.os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    assert blocks.n_threads() == 4
    monkeypatch.setenv("CALIBRANT_NUM_THREADS", "3")
    assert blocks.n_threads() == 3


@pytest.mark.parametrize(("n_cores", "expected"), [(6, 6), (None, 1)])
def test_without_affinities_every_core_is_used(n_cores, expected, monkeypatch):
    monkeypatch.delenv("CALIBRANT_NUM_THREADS", raising=False)
    monkeypatch.delattr(blocks.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(blocks.os, "cpu_count", lambda: n_cores)
    assert blocks.n_threads() == expected


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("CALIBRANT_NUM_THREADS", "2")
    monkeypatch.setattr(blocks, "THREAD_WORK", 1)

    def fails(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blocks.sum_blocks(fails, 10, 1, elements=2)


def test_blas_has_one_thread_in_our_loops_and_its_own_number_after_them():
    def n_threads():
        return [part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        with blocks.one_blas_thread(2**20), blocks.one_blas_thread(2**20):
            assert set(n_threads()) == {1}
        assert n_threads() == before
        with blocks.one_blas_thread(10):
            assert n_threads() == before


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40))
def test_sums_in_pairs_are_sums_in_order(values):
    assert sum_in_pairs(values) == sum(values)
    assert sum_in_pairs([[v] for v in values]) == values
    assert sum_in_pairs((v, [v]) for v in values) == (sum(values), values)


def test_there_is_no_sum_of_no_rows():
    with pytest.raises(ValueError, match="no rows"):
        sum_in_pairs([])


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_array_is_mapped_by_blocks_as_at_once(rng, order):
    x = np.asarray(rng.random((3, blocks.READ_BLOCK)), order=order)
    root, twice = blocks.map_elements(lambda part: (np.sqrt(part), 2 * part), x, 2)
    np.testing.assert_array_equal(root, np.sqrt(x))
    np.testing.assert_array_equal(twice, 2 * x)
