"""The mean cost of decisions: formula, default and weights."""

import numpy as np
import pytest

from calibrant.metrics import accuracy, decision_cost


@pytest.fixture
def rows(rng):
    proba = rng.dirichlet(np.ones(3), size=200)
    return rng.integers(3, size=200), proba


def test_the_default_is_the_error_rate(rows):
    assert decision_cost(*rows) == pytest.approx(1 - accuracy(*rows))


def test_it_is_the_mean_cost_of_the_cheapest_actions(rows, rng):
    labels, proba = rows
    cost = rng.random((3, 4))
    actions = (proba @ cost).argmin(axis=1)
    assert decision_cost(labels, proba, cost) == pytest.approx(cost[labels, actions].mean())


def test_an_abstention_is_one_more_action(rows):
    labels, proba = rows
    cost = 5 * (1 - np.eye(3))
    answered = 5 * (1 - proba.max(axis=1)) <= 1
    wrong = proba.argmax(axis=1) != labels
    expected = np.where(answered, 5.0 * wrong, 1.0).mean()
    assert decision_cost(labels, proba, cost, abstain=1) == pytest.approx(expected)


def test_weights_count_rows(rows, rng):
    labels, proba = rows
    copies = rng.integers(0, 3, size=200)
    repeated = np.repeat(np.arange(200), copies)
    cost = rng.random((3, 2))
    assert decision_cost(labels, proba, cost, sample_weight=copies) == pytest.approx(
        decision_cost(labels[repeated], proba[repeated], cost)
    )


def test_a_threshold_of_two_classes_is_the_ratio_of_costs(rng):
    p, t = rng.random(300), 0.2
    labels = (rng.random(300) < p).astype(int)
    chosen = (p > t).astype(int)
    expected = np.where(chosen == 1, (labels == 0) * t, (labels == 1) * (1 - t)).mean()
    assert decision_cost(labels, p, [[0, t], [1 - t, 0]]) == pytest.approx(expected)


def test_costs_need_a_row_per_class(rows):
    with pytest.raises(ValueError, match=r"cost must have shape \(3, A\)"):
        decision_cost(*rows, np.eye(2))


def test_the_index_of_a_frame_of_costs_is_matched_to_the_classes(rows):
    pandas = pytest.importorskip("pandas")
    labels, proba = rows
    cost, names = np.array([[0, 1.0], [5, 0], [2, 3]]), np.array(["a", "b", "c"])
    frame = pandas.DataFrame(cost, names).loc[["c", "a", "b"]]
    options = {"classes": names}
    expected = decision_cost(names[labels], proba, cost, **options)
    assert decision_cost(names[labels], proba, frame, **options) == expected
