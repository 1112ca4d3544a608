"""Losses on the scale from 0 to 1, and labels of abstentions."""

import numpy as np
import pytest

from calibrant.decisions._losses import (
    abstention_label,
    is_text,
    scaled_losses,
    with_abstentions,
)


def test_errors_are_losses_of_one():
    losses, risk = scaled_losses("error", 0.1, np.array([0, 1]), np.array([0, 0]), np.arange(2))
    assert (losses.tolist(), risk) == ([0.0, 1.0], 0.1)


def test_costs_are_divided_by_the_largest():
    cost = [[0, 10], [4, 0]]
    losses, risk = scaled_losses(cost, 2.0, np.array([0, 0, 1]), np.array([0, 1, 0]), np.arange(2))
    assert (losses.tolist(), risk) == ([0.0, 0.4, 1.0], 0.2)


def test_labels_of_abstentions():
    assert abstention_label(None, np.array([0, 1])) == -1
    assert abstention_label(None, np.array(["a", "b"])) == ""
    assert abstention_label("none", np.array(["a", "b"])) == "none"
    assert is_text(np.array(["a"], dtype=object))
    with pytest.raises(ValueError, match="abstain='unknown'"):
        abstention_label("a", np.array(["a", "b"]))
    with pytest.raises(ValueError, match=r"abstain must be a single label, got \[1, 2\]"):
        abstention_label([1, 2], np.array([0, 1]))


@pytest.mark.parametrize("risk", ["0.1", None, np.nan, True])
def test_the_risk_of_a_cost_matrix_must_be_a_number(risk):
    with pytest.raises(ValueError, match="risk must be between 0 and the largest cost"):
        scaled_losses([[0, 10], [4, 0]], risk, np.array([0, 1]), np.array([0, 0]), np.arange(2))


def test_labels_keep_their_type_next_to_an_abstention_of_another_type():
    is_answered = np.array([True, False])
    assert with_abstentions(np.array([1, 2]), is_answered, "unknown").tolist() == [1, "unknown"]
    assert with_abstentions(np.array(["a", "b"]), is_answered, -1).tolist() == ["a", -1]
    assert with_abstentions(np.array([1, 2]), is_answered, -1).dtype.kind == "i"
