"""Blocks of rows as one array, in memory or in a file."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant.io._loading import load_blocks


def blocks(rng, dtype=np.float32):
    return [rng.normal(size=(n, 3)).astype(dtype) for n in (40, 1, 60)]


@pytest.mark.parametrize("limit", [0, 500, 10**6])
def test_rows_are_those_of_the_blocks_wherever_they_are(rng, limit):
    parts = blocks(rng)
    rows = load_blocks(iter(parts), limit)
    assert isinstance(rows, np.memmap) == (limit < 10**6)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, np.concatenate(parts))


def test_rows_in_a_file_are_fitted_as_rows_in_memory(rng):
    parts, y = blocks(rng), rng.integers(3, size=101)
    mapped = TemperatureScaling(inputs="logits").fit(load_blocks(iter(parts), 0), y)
    held = TemperatureScaling(inputs="logits").fit(np.concatenate(parts), y)
    assert mapped.temperature_ == held.temperature_


def test_blocks_of_one_score_per_row_are_taken(rng):
    assert load_blocks(iter([rng.random(5), rng.random(2)]), 0).shape == (7,)
