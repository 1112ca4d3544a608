"""Rows on their way to a fit, in memory or in a file."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling
from calibrant.io._spool import Spool


def blocks(rng, dtype=np.float32):
    return [rng.normal(size=(n, 3)).astype(dtype) for n in (40, 1, 60)]


@pytest.mark.parametrize("keep", [0, 500, 10**6])
def test_rows_are_those_that_were_added_wherever_they_are(rng, keep):
    parts = blocks(rng)
    with Spool(keep) as spool:
        for part in parts:
            spool.add(part)
        rows = spool.rows()
    assert isinstance(rows, np.memmap) == (keep < 10**6)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, np.concatenate(parts))


def test_rows_in_a_file_are_fitted_as_rows_in_memory(rng):
    parts, y = blocks(rng), rng.integers(3, size=101)
    with Spool(0) as spool:
        for part in parts:
            spool.add(part)
        rows = spool.rows()
    mapped = TemperatureScaling(inputs="logits").fit(rows, y)
    held = TemperatureScaling(inputs="logits").fit(np.concatenate(parts), y)
    assert mapped.temperature_ == held.temperature_


def test_blocks_of_one_score_a_row_are_taken(rng):
    with Spool(0) as spool:
        spool.add(rng.random(5))
        spool.add(rng.random(2))
        assert spool.rows().shape == (7,)
