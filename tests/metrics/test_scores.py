from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from calibrant.metrics import accuracy, brier_score, log_loss


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.ones(4), 100)
    return rng.integers(4, size=100), proba, rng.integers(0, 3, size=100)


def test_log_loss_agrees_with_scikit_learn(data):
    y, proba, weight = data
    assert log_loss(y, proba) == pytest.approx(sk.log_loss(y, proba, labels=range(4)), abs=1e-12)
    weighted = sk.log_loss(y, proba, labels=range(4), sample_weight=weight)
    assert log_loss(y, proba, sample_weight=weight) == pytest.approx(weighted, abs=1e-12)


def test_a_truth_that_was_called_impossible_costs_the_floor():
    assert log_loss([0], [[0.0, 1.0]]) == pytest.approx(-np.log(1e-12))
    assert log_loss([0], [[0.0, 1.0]], eps=1e-3) == pytest.approx(-np.log(1e-3))
    assert log_loss([1], [[0.0, 1.0]]) == 0.0


def test_brier_score_is_the_sum_over_classes(data):
    y, proba, weight = data
    square = ((proba - np.eye(4)[y]) ** 2).sum(1)
    assert brier_score(y, proba) == pytest.approx(square.mean(), abs=1e-13)
    assert brier_score(y, proba, sample_weight=weight) == pytest.approx(
        np.average(square, weights=weight), abs=1e-13
    )


def test_brier_scores_of_a_notion(data):
    y, proba, _ = data
    top = ((proba.max(1) - (proba.argmax(1) == y)) ** 2).mean()
    assert brier_score(y, proba, notion="confidence") == pytest.approx(top, abs=1e-13)
    assert brier_score(y, proba, notion="class-wise") == pytest.approx(
        brier_score(y, proba) / 4, abs=1e-13
    )
    two = (y > 0).astype(int), proba[:, 1:].sum(1)
    assert brier_score(*two, notion="class-1") == pytest.approx(
        sk.brier_score_loss(*two), abs=1e-13
    )


def test_accuracy_gives_ties_to_the_lowest_column(data):
    y, proba, weight = data
    assert accuracy(y, proba, sample_weight=weight) == pytest.approx(
        np.average(proba.argmax(1) == y, weights=weight)
    )
    assert accuracy([0, 1], [[0.5, 0.5], [0.5, 0.5]]) == 0.5


def test_inputs_are_left_alone(data):
    y, proba, _ = data
    before = proba.copy()
    brier_score(y, proba)
    log_loss(y, proba)
    np.testing.assert_array_equal(proba, before)


def test_the_order_of_the_array_in_memory_does_not_matter(rng):
    proba = rng.dirichlet(np.ones(4), 50)
    labels = rng.integers(4, size=50)
    for metric in (brier_score, log_loss, accuracy):
        assert metric(labels, np.asfortranarray(proba)) == pytest.approx(
            metric(labels, proba), rel=1e-12
        )
