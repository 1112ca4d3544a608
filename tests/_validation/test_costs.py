"""Costs and shares: what is accepted, and the message of what is not."""

import numpy as np
import pytest

from calibrant._validation import add_abstention, check_costs, check_share


def test_costs_become_float_arrays():
    costs = check_costs([[0, 1], [5, 0]], 2)
    assert costs.dtype == np.float64
    assert costs.tolist() == [[0.0, 1.0], [5.0, 0.0]]


@pytest.mark.parametrize(
    ("cost", "n_classes", "message"),
    [
        ([1, 2], 2, r"cost must have shape \(2, A\), got \(2,\)"),
        (np.ones((3, 2)), 2, r"got \(3, 2\). Pass cost.T"),
        (np.ones((1, 2)), None, r"cost must have shape \(K, A\)"),
        (np.ones((2, 0)), 2, "one column per action"),
        ([[0, np.inf], [1, 0]], 2, r"cost\[0, 1\] is inf, but costs must be finite"),
    ],
)
def test_bad_costs_are_rejected(cost, n_classes, message):
    with pytest.raises(ValueError, match=message):
        check_costs(cost, n_classes)


def test_costs_must_be_numbers():
    with pytest.raises(TypeError, match="cost must contain numbers"):
        check_costs([["a", "b"], ["c", "d"]])


def test_an_abstention_is_the_last_action():
    cost = np.array([[0.0, 1.0], [5.0, 0.0]])
    assert add_abstention(cost, None) is cost
    assert add_abstention(cost, 2)[:, -1].tolist() == [2, 2]
    assert add_abstention(cost, [1, 3])[:, -1].tolist() == [1, 3]


@pytest.mark.parametrize("bad", [[1, 2, 3], "1", np.inf, [[1, 2]]])
def test_bad_abstentions_are_rejected(bad):
    with pytest.raises(ValueError, match="abstain must be"):
        add_abstention(np.eye(2), bad)


@pytest.mark.parametrize("bad", [0, 1, 2.0, -1, "0.5", None, True, np.nan])
def test_a_share_is_strictly_between_0_and_1(bad):
    assert check_share(0.5, "risk") == 0.5
    with pytest.raises(ValueError, match=r"risk must be a number between 0 and 1"):
        check_share(bad, "risk")
