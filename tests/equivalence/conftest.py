"""Fixtures of the equivalence grid."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from data_kinds import KINDS


@pytest.fixture(autouse=True)
def _one_thread():
    """dask runs in the thread of the test, which is fastest for small chunks."""
    if not find_spec("dask"):
        yield
        return
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def make(tmp_path):
    """``make("dask array", rows)``: the rows as this kind of data."""
    return lambda kind, rows: KINDS[kind](rows, tmp_path)
