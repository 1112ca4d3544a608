from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.read import as_source, is_chunked
from calibrant.io import RowBlocks


def blocks():
    return RowBlocks(lambda: iter([([[0.9, 0.1]], [0]), ([[0.2, 0.8]], [1])]))


def test_row_blocks_are_chunked_and_arrays_are_not():
    assert is_chunked(blocks().scores)
    assert not is_chunked(np.eye(2))


def test_dask_arrays_are_chunked():
    da = pytest.importorskip("dask.array")
    scores = da.from_array(np.eye(4)[:, :2], chunks=(2, 2))
    assert is_chunked(scores)
    assert as_source(scores, np.zeros(4, dtype=int)).n_columns == 2
