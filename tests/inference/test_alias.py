from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant._kernels._numpy import alias_counts, alias_draws
from calibrant.inference._alias import alias_tables


def law(proba):
    """What the tables give to each column, from the share of the 32-bit numbers that means it."""
    threshold, columns = alias_tables(proba)
    n_rows, n_slots = threshold.shape
    width = 2**32 // n_slots
    own = (threshold.astype(float) - np.arange(n_slots) * width) / 2**32
    found = np.zeros((n_rows, n_slots))
    rows = np.arange(n_rows)[:, None]
    np.add.at(found, (rows, columns[:, :, 0]), own)
    np.add.at(found, (rows, columns[:, :, 1]), 1 / n_slots - own)
    return found


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.01, 0.3, 1.0, 50.0]))
def test_the_tables_hold_the_probabilities_of_every_row(seed, n_columns, concentration):
    proba = np.random.default_rng(seed).dirichlet(np.full(n_columns, concentration), 20)
    found = law(proba)
    # Thresholds are whole numbers of 2**-32, and the last one is one short of the end.
    assert found[:, :n_columns] == pytest.approx(proba, abs=2**-32 * found.shape[1])
    assert found[:, n_columns:] == pytest.approx(0, abs=2**-31)


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
        found = np.bincount(drawn[:, i], minlength=6) / 40_000
        assert (np.abs(found - proba[i]) < 4 * np.sqrt(proba[i] / 40_000)).all()


def test_counts_are_those_of_the_draws(rng):
    proba = rng.dirichlet(np.ones(4), 30)
    threshold, columns = alias_tables(proba)
    bits = rng.integers(0, 2**32, (7, 30), dtype=np.uint32)
    drawn = alias_draws(threshold, columns, bits)
    expected = np.array([np.bincount(row, minlength=9) for row in drawn])
    assert np.array_equal(alias_counts(threshold, columns, bits, 9), expected)
    assert np.array_equal(alias_counts(threshold, columns, bits[:1], 9), expected[:1])
