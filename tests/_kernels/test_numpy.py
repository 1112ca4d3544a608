import numpy as np
import pytest

from calibrant._kernels import cell_sums, entries, top_labels


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
