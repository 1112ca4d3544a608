from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import brier_score, ranked_probability_score

P = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])


def test_the_score_of_two_rows_is_that_of_hand_calculation():
    # Running sums (0.6, 0.9) against (0, 1), and (0.1, 0.3) against (0, 0).
    expected = ((0.36 + 0.01) / 2 + (0.01 + 0.09) / 2) / 2
    assert ranked_probability_score([1, 2], P) == pytest.approx(expected, abs=1e-15)


def test_a_near_miss_costs_less_than_a_far_one():
    assert ranked_probability_score([1], [[1, 0, 0]]) < ranked_probability_score([2], [[1, 0, 0]])


def test_with_two_classes_it_is_the_brier_score_of_a_binary_problem(rng):
    p, y = rng.random(50), rng.integers(0, 2, 50)
    assert ranked_probability_score(y, p) == pytest.approx(brier_score(y, p, notion="class-1"))


def test_weights_are_copies():
    copied = ranked_probability_score([1, 1, 2], P[[0, 0, 1]])
    assert ranked_probability_score([1, 2], P, sample_weight=[2, 1]) == pytest.approx(copied)


def test_the_order_is_that_of_the_classes_given():
    names = ["low", "middle", "high"]
    given = ranked_probability_score(["middle", "high"], P, classes=names)
    assert given == ranked_probability_score([1, 2], P)
