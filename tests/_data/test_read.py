from __future__ import annotations

import numpy as np
import pytest

from calibrant import TopScores
from calibrant._data.read import as_chunked, as_sample
from calibrant.io import RowBlocks


def blocks():
    return RowBlocks(lambda: iter([([[0.9, 0.1]], [0]), ([[0.2, 0.8]], [1])]))


def test_row_blocks_are_chunked_and_arrays_are_not():
    assert as_chunked(blocks().scores) is not None
    assert as_chunked(np.eye(2)) is None


def test_dask_arrays_are_chunked():
    da = pytest.importorskip("dask.array")
    scores = da.from_array(np.eye(4)[:, :2], chunks=(2, 2))
    chunked = as_chunked(scores)
    assert chunked.n_columns == 2
    assert chunked.source(np.zeros(4, dtype=int)).n_columns == 2


def test_arrays_chunks_and_top_scores_become_samples_of_the_same_labels():
    rows = blocks()
    top = TopScores([[0], [1]], np.log([[0.9], [0.8]]), n_classes=2)
    array, _ = as_sample([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    for sample, _ in (as_sample(rows.scores, rows.labels), as_sample(top, [0, 1])):
        assert sample.shape == array.shape
        np.testing.assert_array_equal(sample.class_weights, array.class_weights)
        assert sample.n_rows == array.n_rows == 2
        assert not sample.is_weighted


def test_groups_of_chunked_scores_are_rejected():
    rows = blocks()
    with pytest.raises(TypeError, match="groups= works on scores in memory"):
        as_sample(rows.scores, rows.labels, groups=[0, 1])
