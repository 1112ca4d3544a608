from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant._kernels._numpy import alias_draws, byte_counts
from calibrant.inference._alias import N_BYTES, alias_tables, byte_tables, byte_values


def law(proba):
    """Probability of each column: the share of the 32-bit numbers that select it."""
    return shares(*alias_tables(proba))


def shares(threshold, columns):
    n_rows, n_slots = threshold.shape
    width = 2**32 // n_slots
    own = (threshold.astype(float) - np.arange(n_slots) * width) / 2**32
    result = np.zeros((n_rows, n_slots))
    rows = np.arange(n_rows)[:, None]
    np.add.at(result, (rows, columns[:, :, 0]), own)
    np.add.at(result, (rows, columns[:, :, 1]), 1 / n_slots - own)
    return result


def law_of_bytes(proba):
    """Probability of each column: its own bytes, and its part of the open ones."""
    whole, threshold, columns = byte_tables(proba)
    is_open = 1 - whole.sum(axis=1, keepdims=True) / N_BYTES
    return whole / N_BYTES + is_open * shares(threshold, columns)[:, : proba.shape[1]]


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.01, 0.3, 1.0, 50.0]))
def test_the_tables_hold_the_probabilities_of_every_row(seed, n_columns, concentration):
    proba = np.random.default_rng(seed).dirichlet(np.full(n_columns, concentration), 20)
    result = law(proba)
    # Thresholds are multiples of 2**-32, and the last one is 2**-32 too low.
    assert result[:, :n_columns] == pytest.approx(proba, abs=2**-32 * result.shape[1])
    assert result[:, n_columns:] == pytest.approx(0, abs=2**-31)


def test_certain_and_uniform_rows_and_rows_that_do_not_sum_to_one():
    proba = np.array(
        [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 1e-9]]
    )
    expected = proba / proba.sum(axis=1, keepdims=True)
    assert law(proba)[:, :3] == pytest.approx(expected, abs=1e-8)


def test_a_column_of_probability_zero_is_never_drawn(rng):
    proba = rng.dirichlet(np.full(5, 0.2), 200)
    proba[:, 2] = 0
    bits = rng.integers(0, 2**32, (500, 200), dtype=np.uint32)
    bits[0], bits[1] = 0, 2**32 - 1
    drawn = alias_draws(*alias_tables(proba), bits)
    assert not (drawn == 2).any()
    assert drawn.max() < 5


def test_draws_have_the_frequencies_of_the_rows(rng):
    proba = rng.dirichlet(np.ones(6), 3)
    bits = rng.integers(0, 2**32, (40_000, 3), dtype=np.uint32)
    drawn = alias_draws(*alias_tables(proba), bits)
    for i in range(3):
        result = np.bincount(drawn[:, i], minlength=6) / 40_000
        assert (np.abs(result - proba[i]) < 4 * np.sqrt(proba[i] / 40_000)).all()


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.01, 0.3, 1.0, 50.0]))
def test_bytes_hold_the_probabilities_of_every_row(seed, n_columns, concentration):
    proba = np.random.default_rng(seed).dirichlet(np.full(n_columns, concentration), 20)
    n_slots = byte_tables(proba)[1].shape[1]
    assert law_of_bytes(proba) == pytest.approx(proba, abs=2**-32 * n_slots)


def test_bytes_of_certain_and_even_rows_and_of_rows_that_do_not_sum_to_one():
    proba = np.array(
        [[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 1e-9]]
    )
    expected = proba / proba.sum(axis=1, keepdims=True)
    assert law_of_bytes(proba) == pytest.approx(expected, abs=1e-8)
    whole, _, _ = byte_tables(proba)
    assert whole.sum(axis=1).tolist()[:4] == [256, 255, 256, 256]


def test_what_is_left_of_a_row_may_be_too_small_to_divide_by():
    proba = np.array([[1.0, 1e-320], [1e-320, 1.0], [0.5, 0.5]])
    assert law_of_bytes(proba) == pytest.approx(np.round(proba, 9), abs=1e-12)


def test_each_column_owns_its_bytes_and_the_others_are_open():
    values = byte_values(
        np.array([[128, 0, 127], [0, 256, 0]]), np.array([[5, 6, 7], [1, 2, 3]]), 9
    )
    assert values.tolist() == [[5] * 128 + [7] * 127 + [9], [2] * 256]


def cells_by_bytes(proba):
    """Tables in which every column is its own cell."""
    whole, threshold, columns = byte_tables(proba)
    column = np.broadcast_to(np.arange(proba.shape[1]), proba.shape)
    return byte_values(whole, column, proba.shape[1]), threshold, columns


def test_a_column_of_probability_zero_has_no_byte(rng):
    proba = rng.dirichlet(np.full(5, 0.2), 200)
    proba[:, 2] = 0
    first = rng.integers(0, 256, (200, 500), dtype=np.uint8)
    counts = byte_counts([(cells_by_bytes(proba), first, 7)], 500, 5)
    assert not counts[:, 2].any()
    assert (counts.sum(axis=1) == 200).all()


def test_rows_in_parts_are_counted_together(rng):
    tables = cells_by_bytes(rng.dirichlet(np.ones(4), 30))
    first = rng.integers(0, 256, (30, 7), dtype=np.uint8)
    parts = [
        (tuple(table[rows] for table in tables), first[rows], key)
        for key, rows in enumerate([slice(0, 11), slice(11, 30)])
    ]
    each = [byte_counts([part], 7, 4) for part in parts]
    assert np.array_equal(byte_counts(parts, 7, 4), each[0] + each[1])
