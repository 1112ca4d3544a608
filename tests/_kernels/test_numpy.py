import numpy as np
import pytest

from calibrant import _kernels
from calibrant._kernels import _numpy, cell_sums, entries, top_labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_rows", "n_columns"), [(1, 2), (100, 10), (3000, 2), (3000, 16), (3000, 17)]
)
def test_the_top_label_is_the_lowest_column_of_the_largest_entry(rng, n_rows, n_columns, dtype):
    block = (rng.integers(0, 4, size=(n_rows, n_columns)) / 4).astype(
        dtype
    )  # nearly every row has ties
    expected = [row.index(max(row)) for row in block.tolist()]
    assert top_labels(block, 1)[:, 0].tolist() == expected


@pytest.mark.parametrize("n_ranks", [2, 4, 5])
def test_ranks_are_in_falling_order_and_ties_in_the_order_of_the_columns(rng, n_ranks):
    block = rng.integers(0, 4, size=(50, 7)) / 4
    expected = [
        sorted(range(7), key=lambda k, row=row: (-row[k], k))[:n_ranks] for row in block.tolist()
    ]
    assert top_labels(block, n_ranks).tolist() == expected


def test_the_top_label_works_on_views_that_are_not_contiguous(rng):
    block = rng.random((3000, 20))[:, ::2]
    assert top_labels(block, 1)[:, 0].tolist() == [row.index(max(row)) for row in block.tolist()]


def test_entries_are_those_of_the_named_columns_in_float64():
    block = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)
    taken = entries(block, np.array([[1], [0]]))
    assert taken.dtype == np.float64
    assert taken.tolist() == [[0.75], [0.5]]


def test_unit_weights_and_ones_that_are_stored_give_the_same_sums(rng):
    cell, score, hit = rng.integers(0, 6, size=(40, 3)), rng.random((40, 3)), np.arange(0, 120, 5)
    short = cell_sums(cell, score, hit, np.broadcast_to(1.0, 40), 6)
    full = cell_sums(cell, score, hit, np.ones(40), 6)
    np.testing.assert_allclose(short, full, rtol=1e-12)


def test_ordered_pairs_are_those_of_an_indirect_sort(rng):
    score, outcome = np.round(rng.random(500), 2), rng.integers(2, size=500)
    score[:3], outcome[:3] = [0.0, -0.0, 1.0], [1, 0, 1]
    order = np.lexsort((outcome, score))
    ordered, hit = _numpy.ordered_pairs(score, outcome)
    np.testing.assert_array_equal(ordered, score[order])
    np.testing.assert_array_equal(hit, outcome[order])


@pytest.mark.parametrize("n_powers", [1, 3, 4])
@pytest.mark.parametrize("beta", [1.0, 0.6])
def test_power_sums_are_sums_of_exponentials_times_powers(rng, beta, n_powers):
    x = 3 * rng.normal(size=(20, 4))
    sums = _numpy.power_sums(x, beta, n_powers)
    assert len(sums) == n_powers
    for j, total in enumerate(sums):
        np.testing.assert_allclose(total, (np.exp(beta * x) * x**j).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 100])
def test_power_sums_in_single_precision_are_close_to_those_in_double(rng, n_classes):
    x = 10 * rng.normal(size=(50, n_classes))
    double = _numpy.power_sums(x, 0.9, 4)
    for j, single in enumerate(_numpy.power_sums(x, 0.9, 4, np.float32)):
        np.testing.assert_allclose(single / double[0], double[j] / double[0], rtol=1e-4, atol=1e-5)
        assert single.dtype == np.float64


def test_column_cells_are_counts_and_sums_of_uniform_bins(rng):
    score = np.vstack([rng.dirichlet(np.ones(3), 100), [[1.0, 0.0, 0.0]]])
    count, total = _numpy.column_cells(score, 5)
    place = np.minimum((score * 5).astype(int), 4)
    for j in range(3):
        np.testing.assert_array_equal(count[j], np.bincount(place[:, j], minlength=5))
        np.testing.assert_allclose(total[j], np.bincount(place[:, j], score[:, j], minlength=5))


def test_mixed_bits_are_those_of_splitmix64():
    # the first numbers of the state 1234567, as Rosetta Code lists them
    full = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    found = _numpy.mixed_bits(1234567, np.arange(1, 4))
    assert found.tolist() == [number >> 32 for number in full]


def test_without_the_extra_the_loops_of_numpy_are_taken(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "1")
    monkeypatch.setattr(_kernels, "_is_installed", lambda: False)
    assert _kernels.kernel("power_sums", 2**40) is _numpy.power_sums
