"""The compiled loops are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import _kernels
from calibrant._data.sample import ArraySample
from calibrant._kernels import _numpy, kernel
from calibrant._optim import fast_temperature
from calibrant._optim.temperature import find_log_beta
from calibrant.inference._alias import byte_tables, byte_values

pytest.importorskip("numba")

from calibrant._kernels import _numba  # only where numba is


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100, 3000])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_power_sums_are_those_of_numpy(rng, n_classes, scale):
    x = np.clip(scale * rng.normal(size=(40, n_classes)), -60, 60)
    ours, theirs = (np.stack(k.power_sums(x, 0.9, 4)) for k in (_numba, _numpy))
    np.testing.assert_allclose(ours / theirs[0], theirs / theirs[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("n_classes", "n_draws"), [(2, 7), (10, 1), (100, 1000)])
def test_counts_of_draws_by_bytes_are_those_of_numpy(rng, n_classes, n_draws, dtype):
    whole, threshold, columns = byte_tables(rng.dirichlet(np.ones(n_classes), 300))
    column = np.broadcast_to(np.arange(n_classes, dtype=dtype), (300, n_classes))
    tables = byte_values(whole, column, 128), threshold, columns.astype(dtype)
    assert tables[0].dtype == dtype
    first = rng.integers(0, 256, (300, n_draws), dtype=np.uint8)
    parts = [
        (tuple(table[rows] for table in tables), first[rows], 2**64 - 1 - rows.start)
        for rows in (slice(0, 200), slice(200, 300))
    ]
    ours, theirs = (k.byte_counts(parts, n_draws, 128) for k in (_numba, _numpy))
    np.testing.assert_array_equal(ours, theirs)
    assert (ours.sum(axis=1) == 300).all()


def test_power_sums_of_rows_that_are_not_contiguous(rng):
    x = rng.normal(size=(60, 7))[::3]
    ours, theirs = (k.power_sums(x, 2.0, 3) for k in (_numba, _numpy))
    np.testing.assert_allclose(ours, theirs, rtol=1e-11)


def test_a_search_with_compiled_loops_is_in_double_precision_all_the_way(rng, monkeypatch):
    z = 4 * rng.normal(size=(6000, 5))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    sample = ArraySample(z, y, np.broadcast_to(1.0, len(y)))
    monkeypatch.setenv("CALIBRANT_FAST", "0")
    expected = find_log_beta(sample)
    monkeypatch.setenv("CALIBRANT_FAST", "1")
    monkeypatch.setattr(fast_temperature, "_SINGLE", None)
    found = find_log_beta(sample)
    np.testing.assert_allclose(found.parameters, expected.parameters, atol=1e-10)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_bins", [1, 15, 100])
def test_column_cells_are_those_of_numpy(rng, n_bins, dtype):
    score = rng.dirichlet(np.ones(4), 500).astype(dtype)
    score[0], score[1] = [1.0, 0.0, 0.0, 0.0], [0.2, 0.2, 0.2, 0.4]
    for ours, theirs in zip(
        _numba.column_cells(score, n_bins), _numpy.column_cells(score, n_bins), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_isotonic_fits_with_a_hit_are_those_of_numpy(rng):
    total = rng.integers(1, 4, 400).astype(float)
    hits = np.floor(total * rng.random(400))
    x, y = np.cumsum(total), np.cumsum(hits)
    np.testing.assert_array_equal(_numba.fits_with_a_hit(x, y), _numpy.fits_with_a_hit(x, y))
    one = np.array([1.0])
    np.testing.assert_array_equal(
        _numba.fits_with_a_hit(one, one), _numpy.fits_with_a_hit(one, one)
    )


@pytest.mark.parametrize("name", sorted(_numba.FUNCTIONS))
def test_the_compiled_function_is_chosen_where_it_is_asked_for(name, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "1")
    assert kernel(name, 1) is _numba.FUNCTIONS[name]
    monkeypatch.setenv("CALIBRANT_FAST", "0")
    assert kernel(name, 2**40) is getattr(_numpy, name)


def test_without_a_wish_the_size_decides(monkeypatch):
    monkeypatch.delenv("CALIBRANT_FAST", raising=False)
    assert kernel("power_sums", _kernels.WORTH_CALL) is _numba.power_sums
    assert kernel("power_sums", _kernels.WORTH_CALL - 1) is _numpy.power_sums
