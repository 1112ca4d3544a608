"""Mean cost of decisions that are based on probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._kernels.costs import cheapest_actions, realized_costs
from calibrant._kernels.simplex import as_proba
from calibrant._typing import AnyArray, FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import add_abstention, check_costs, check_predictions


def decision_cost(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    cost: Any = None,
    *,
    abstain: Any = None,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the mean cost of the decisions that minimize the expected cost.

    Lower is better. The result has the unit of the costs.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    cost : array-like of shape (K, A), optional
        Cost of each action (column) for each true class (row). By default, an action predicts a
        class. A correct prediction costs 0, and an incorrect prediction costs 1. The index of a
        pandas frame is matched to the classes.
    abstain : float or array-like of shape (K,), optional
        Cost of an abstention, which is added as the last action. Pass one cost, or one cost per
        true class.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.

    Returns
    -------
    float
        The mean cost.

    See Also
    --------
    calibrant.decisions.DecisionRule : Make decisions with minimum expected cost.
    calibrant.inference.decision_gain : Cost reduction by calibration, with an interval.

    Notes
    -----
    With the costs :math:`c_{ka}` of action a if k is the true class, the mean cost is

    .. math:: \frac{1}{n} \sum_i c_{y_i a_i}, \quad a_i = \arg\min_a \sum_k p_{ik} c_{ka} .

    The mean cost is a proper score, because the true probabilities p minimize its expectation. If
    actions tie, the first action is chosen.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.2, 0.8]]
    >>> decision_cost([0, 1], proba, [[0, 1], [5, 0]])  # missing class 1 costs 5
    0.5
    >>> decision_cost([0, 1], proba, [[0, 1], [5, 0]], abstain=0.5)
    0.25
    """
    rows = check_predictions(y_true, y_prob, sample_weight, classes, inputs=inputs)
    costs = full_costs(cost, rows.classes, abstain)
    actions = cheapest_actions(as_proba(rows.scores, inputs), costs)
    values = realized_costs(costs, actions, rows.y)
    return float(rows.weight @ values / rows.weight.sum())


def full_costs(cost: Any, classes: AnyArray, abstain: Any = None) -> FloatArray:
    """Return checked costs with the abstention as the last action.

    If ``costs`` is None, errors cost 1.
    """
    errors = 1.0 - np.eye(len(classes))
    costs = errors if cost is None else check_costs(cost, len(classes), classes=classes)
    return add_abstention(costs, abstain)
