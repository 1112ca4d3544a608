"""The list of e-values that are worth a look."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor, discoveries
from streams import draw, sharpened


def test_nothing_is_listed_where_nothing_stands_out():
    assert discoveries(np.zeros(10), 0.05).size == 0


def test_many_large_values_help_each_other():
    assert discoveries(np.log([39.0, 1.0]), 0.05).size == 0
    assert discoveries(np.log([21.0, 21.0]), 0.05).tolist() == [0, 1]


@pytest.mark.slow
def test_b6_the_share_of_false_discoveries_among_fifty_groups_is_at_most_alpha(rng):
    shares = []
    for _ in range(30):
        group = rng.integers(0, 50, 6_000)
        proba = rng.dirichlet(np.full(3, 0.5), 6_000)
        truth = np.where((group < 10)[:, None], sharpened(proba, 0.4), proba)
        monitor = CalibrationMonitor(tolerance=0.0, notions=["confidence"])
        monitor.update(draw(truth, rng), proba, group=group)
        listed = {int(g.claim.split()[1]) for g in monitor.gaps()[1:] if g.is_listed}
        shares.append(sum(g >= 10 for g in listed) / max(1, len(listed)))
    assert np.mean(shares) <= 0.05
