from __future__ import annotations

import builtins
from io import StringIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from calibrant import _blocks
from calibrant._blocks import sum_in_pairs


@given(n_rows=st.integers(1, 200), n_columns=st.integers(1, 20), elements=st.integers(1, 500))
def test_blocks_cover_every_row_once_in_order(n_rows, n_columns, elements):
    blocks = list(_blocks.row_blocks(n_rows, n_columns, elements=elements))
    covered = np.concatenate([np.arange(n_rows)[rows] for rows in blocks])
    np.testing.assert_array_equal(covered, np.arange(n_rows))
    assert all((b.stop - b.start) * n_columns <= max(elements, n_columns) for b in blocks)


@given(elements=st.integers(1, 300))
def test_blocks_of_any_size_give_the_same_sums(elements):
    data = np.arange(120.0).reshape(40, 3)
    total, rows = _blocks.sum_blocks(
        lambda b: (data[b].sum(axis=0), b.stop - b.start), 40, 3, elements=elements
    )
    np.testing.assert_array_equal(total, data.sum(axis=0))
    assert rows == 40


def test_threads_give_bit_for_bit_what_one_thread_gives(monkeypatch, rng):
    data = rng.normal(size=(5000, 3))
    results = []
    for threads, limit in (("1", 10**9), ("3", 1)):
        monkeypatch.setenv("CALIBRANT_NUM_THREADS", threads)
        monkeypatch.setattr(_blocks, "THREAD_ELEMENTS", limit)
        results.append(
            _blocks.sum_blocks(lambda b: np.exp(data[b]).sum(axis=0), 5000, 3, elements=100)
        )
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("n_others", "expected"), [(0, 4), (1, 4), (4, 4), (5, 3), (7, 1), (50, 1)]
)
def test_cores_that_others_use_get_no_hasty_thread(n_others, expected, monkeypatch):
    monkeypatch.delenv("CALIBRANT_NUM_THREADS", raising=False)
    monkeypatch.setattr(_blocks.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(_blocks.os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    monkeypatch.setattr(_blocks, "_n_others", lambda: n_others)
    assert _blocks.n_threads(are_hasty=True) == expected
    assert _blocks.n_threads() == 4


def test_the_number_of_threads_that_is_asked_for_is_taken_on_a_busy_machine(monkeypatch):
    monkeypatch.setenv("CALIBRANT_NUM_THREADS", "3")
    monkeypatch.setattr(_blocks, "_n_others", lambda: 50)
    assert _blocks.n_threads(are_hasty=True) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.20 0.18 0.12 3/234 11206\n", 2), ("0 0 0 1/9 2", 0), ("0 0 0 0/0 0", 0), ("?", 0)],
)
def test_what_runs_beside_us_is_read_from_the_kernel(text, expected, monkeypatch):
    monkeypatch.setattr(builtins, "open", lambda *_, **__: StringIO(text))
    assert _blocks._n_others() == expected


def test_where_no_kernel_tells_nothing_runs_beside_us(monkeypatch):
    def fails(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", fails)
    assert _blocks._n_others() == 0


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("CALIBRANT_NUM_THREADS", "2")
    monkeypatch.setattr(_blocks, "THREAD_ELEMENTS", 1)

    def fails(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _blocks.sum_blocks(fails, 10, 1, elements=2)


def test_blas_has_one_thread_in_our_loops_and_its_own_number_after_them():
    def n_threads():
        return [part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = n_threads()
        with _blocks.one_blas_thread(2**20), _blocks.one_blas_thread(2**20):
            assert set(n_threads()) == {1}
        assert n_threads() == before
        with _blocks.one_blas_thread(10):
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
    x = np.asarray(rng.random((3, _blocks.READ_ELEMENTS)), order=order)
    root, twice = _blocks.by_blocks(lambda part: (np.sqrt(part), 2 * part), x, 2)
    np.testing.assert_array_equal(root, np.sqrt(x))
    np.testing.assert_array_equal(twice, 2 * x)
