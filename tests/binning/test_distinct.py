"""Distinct scores with the sums of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.binning import (
    distinct_sums,
    place_scores,
    sum_steps,
)


def test_distinct_scores_are_pooled_and_rows_of_weight_zero_are_absent():
    values, total, outcome = distinct_sums(
        np.array([0.3, 0.1, 0.3, 0.9]), np.array([1, 0, 0, 1.0]), np.array([1, 2, 3, 0.0])
    )
    assert values.tolist() == [0.1, 0.3]
    assert total.tolist() == [2.0, 4.0]
    assert outcome.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_distinct_sums_are_the_same_whichever_sort_finds_them(rng, low):
    score, outcome = low + np.round(rng.random(200), 2), rng.integers(2, size=200).astype(float)
    unit = np.broadcast_to(np.float64(1.0), (200,))
    values, total, hits = distinct_sums(score, outcome, unit)
    twice = distinct_sums(score, outcome, np.full(200, 2.0))
    for ours, theirs in zip((values, 2 * total, 2 * hits), twice, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_sums_of_steps_are_those_of_a_search_for_every_value(rng):
    values, part = np.unique(rng.random(60)), rng.random(60)
    for edges in (
        np.array([0.2, 0.2, 0.5, 1.0]),
        np.array([-np.inf, 0.5, 2.0, 3.0]),
        np.array([0.7]),
    ):
        expected = np.bincount(place_scores(values, edges), part, minlength=edges.size)
        np.testing.assert_allclose(sum_steps(part, values, edges), expected, atol=1e-14)
