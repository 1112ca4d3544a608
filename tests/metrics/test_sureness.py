"""Scores of rows by name and by function."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics.sureness import SCORES, check_score, sureness

PROBA = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.4, 0.3, 0.3]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("confidence", [0.7, 1.0, 0.4]),
        ("margin", [0.5, 1.0, 0.1]),
        ("log-margin", [np.log(3.5), -np.log(1e-12), np.log(4 / 3)]),
    ],
)
def test_scores_by_name(name, expected):
    np.testing.assert_allclose(sureness(name, PROBA), expected)
    assert check_score(name) is SCORES[name]


def test_a_function_is_a_score():
    np.testing.assert_array_equal(sureness(lambda proba: proba[:, 0], PROBA), PROBA[:, 0])


def test_bad_scores_are_rejected():
    with pytest.raises(ValueError, match="score must be one of 'confidence'"):
        sureness("entropy", PROBA)
    with pytest.raises(ValueError, match="one number per row"):
        sureness(lambda proba: proba, PROBA)
    with pytest.raises(ValueError, match="scores must be finite"):
        sureness(lambda proba: np.full(3, np.inf), PROBA)


def test_all_scores_of_two_classes_have_the_same_order(rng):
    proba = rng.dirichlet([1.0, 1.0], 50)
    orders = [np.argsort(sureness(name, proba)) for name in SCORES]
    assert (orders[0] == orders[1]).all()
    assert (orders[0] == orders[2]).all()
