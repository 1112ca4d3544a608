"""Chunks of shards add up to that of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring._chunk import MonitorChunk
from calibrant.monitoring._experts import ExpertSums
from calibrant.monitoring._sequences import GapSums


def chunk(size, start=("rule", 0)):
    """A chunk whose sums are all ``size``."""
    full = np.full(2, float(size))
    learnt = ExpertSums(size, full, np.diag(full))
    return MonitorChunk(size, full, GapSums(full, full, full), (learnt,), start)


def test_every_sum_of_two_chunks_is_added():
    both = chunk(3) + chunk(4)
    seven = np.full(2, 7.0)
    assert both.n_rows == both.learnt[0].n_rows == 7
    assert both.start == ("rule", 0)
    for sums in (both.log_factors, both.gaps.count, both.gaps.residual, both.gaps.variance):
        np.testing.assert_array_equal(sums, seven)
    np.testing.assert_array_equal(both.learnt[0].gradient, seven)
    np.testing.assert_array_equal(both.learnt[0].information, np.diag(seven))


@pytest.mark.parametrize("start", [("rule", 9), ("another", 0)])
def test_chunks_of_another_monitor_or_another_state_do_not_add_up(start):
    with pytest.raises(ValueError, match="the same monitor in the same state"):
        chunk(1) + chunk(1, start)
