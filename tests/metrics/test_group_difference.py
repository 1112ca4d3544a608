"""The test of a difference between groups, and gains of recalibration."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.sample import ArraySample
from calibrant.datasets import draw_labels
from calibrant.metrics import _group_difference as module
from calibrant.metrics._group_difference import compare_groups, recalibration_gains


def rows(rng, n_rows=400, n_classes=3):
    proba = rng.dirichlet(np.ones(n_classes), n_rows)
    return ArraySample(proba, draw_labels(proba, rng=rng), np.ones(n_rows))


def test_p_values_of_equal_groups_are_uniform(rng, monkeypatch):
    monkeypatch.setattr(module, "_MOST_RESAMPLES", 99)
    p_values = [
        compare_groups(rows(rng, 120), rng.integers(0, 4, 120), 4, "proba").p_value
        for _ in range(60)
    ]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15  # three standard errors above 5%
    assert 0.35 < np.mean(p_values) < 0.65


def test_a_weight_of_two_is_a_row_twice(rng):
    sample, group = rows(rng), rng.integers(0, 3, 400)
    twice = np.repeat(np.arange(400), 2)
    one = compare_groups(sample.weighted(np.full(400, 2.0)), group, 3, "proba")
    other = compare_groups(sample.subset(twice), group[twice], 3, "proba")
    assert one.statistic == pytest.approx(other.statistic, rel=1e-6)


def test_a_group_with_one_row_has_no_gain(rng):
    group = np.append(np.zeros(399, dtype=int), 1)
    large, single = recalibration_gains(rows(rng), group, 2, "proba", 0.05)
    assert large.low < large.value < large.high
    assert single is None
    alone = rows(rng, 1)
    assert recalibration_gains(alone, np.zeros(1, dtype=int), 1, "proba", 0.05) == [None]
