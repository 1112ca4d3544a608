"""Expected costs of actions, and the action with the lowest expected cost."""

from __future__ import annotations

import numpy as np

from calibrant._kernels.blocks import row_blocks
from calibrant._typing import FloatArray, IntArray


def expected_costs(proba: FloatArray, cost: FloatArray) -> FloatArray:
    """Expected cost of each action (n, A) for probabilities (n, K) and costs (K, A)."""
    return np.asarray(proba @ cost)


def cheapest_actions(proba: FloatArray, cost: FloatArray) -> IntArray:
    """Column with the lowest expected cost for each row. Ties go to the first column."""
    actions = np.empty(len(proba), dtype=np.intp)
    for rows in row_blocks(len(proba), max(cost.shape)):
        actions[rows] = expected_costs(proba[rows], cost).argmin(axis=1)
    return actions


def realized_costs(cost: FloatArray, actions: IntArray, y: IntArray) -> FloatArray:
    """Cost of the action of each row, given its true class."""
    return np.asarray(cost[y, actions])
