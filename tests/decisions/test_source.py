"""Rows of a proof: splits, groups and probabilities. See also test_selective.py."""

import numpy as np
import pytest

from calibrant.decisions._source import _one_per_group, _split, probabilities


def test_a_split_separates_rows(rng):
    fit, held = _split(0.25, 100, None, rng)
    assert (len(fit), len(held)) == (75, 25)
    assert not set(fit) & set(held)


def test_a_split_separates_groups(rng):
    groups = np.repeat(np.arange(10), 5)
    fit, held = _split(0.5, 50, groups, rng)
    assert not set(groups[fit]) & set(groups[held])


def test_a_split_leaves_rows_on_both_sides(rng):
    assert [len(part) for part in _split(0.999, 3, None, rng)] == [1, 2]
    with pytest.raises(ValueError, match="Pass more rows"):
        _split(0.5, 1, None, rng)


def test_one_row_per_group(rng):
    groups = np.repeat(np.arange(10), 5)
    rows = _one_per_group(np.arange(50), groups, rng)
    assert groups[rows].tolist() == list(range(10))


def test_classes_that_an_estimator_does_not_know_have_probability_zero():
    class Half:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    assert probabilities(Half(), [0], np.array([0, 1, 2])).tolist() == [[0.5, 0.5, 0.0]]
