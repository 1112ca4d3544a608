"""Expected costs and cheapest actions, compared with loops."""

import numpy as np

from calibrant._kernels.costs import cheapest_actions, expected_costs, realized_costs


def _brute_force(proba, cost):
    actions = []
    for row in proba:
        costs = [sum(p * c for p, c in zip(row, column, strict=True)) for column in cost.T]
        actions.append(min(range(len(costs)), key=costs.__getitem__))
    return actions


def test_cheapest_actions_equal_brute_force(rng):
    for _ in range(100):
        n_classes, n_actions = rng.integers(2, 6, size=2)
        proba = rng.dirichlet(np.ones(n_classes), size=20)
        cost = rng.normal(size=(n_classes, n_actions))
        assert cheapest_actions(proba, cost).tolist() == _brute_force(proba, cost)


def test_ties_go_to_the_first_action():
    assert cheapest_actions(np.full((2, 2), 0.5), np.ones((2, 3))).tolist() == [0, 0]


def test_expected_costs_are_means_over_true_classes():
    np.testing.assert_allclose(
        expected_costs(np.array([[0.25, 0.75]]), np.array([[0.0, 4.0], [8.0, 0.0]])), [[6.0, 1.0]]
    )


def test_realized_costs_belong_to_the_true_class():
    cost = np.array([[0.0, 1.0], [5.0, 0.0]])
    np.testing.assert_array_equal(realized_costs(cost, np.array([0, 0]), np.array([0, 1])), [0, 5])
