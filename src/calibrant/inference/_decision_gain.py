"""Reduction of the cost of decisions by calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._crossfit.scores import AnyCalibrator, cross_fit
from calibrant._kernels.costs import cheapest_actions, realized_costs
from calibrant._kernels.simplex import as_proba, effective_weights
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_predictions
from calibrant.inference._gain import Gain, paired_gain
from calibrant.inference._results import check_level
from calibrant.metrics._decision_cost import full_costs


def decision_gain(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    cost: Any = None,
    calibrator: AnyCalibrator | None = None,
    *,
    abstain: Any = None,
    inputs: str = "proba",
    cv: Any = 5,
    level: float = 0.95,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    rng: Rng = None,
    groups: LabelsLike | None = None,
) -> Gain:
    r"""Estimate how much calibration reduces the mean cost of decisions, with an interval.

    Decisions minimize the expected cost, before and after calibration. The gain has the unit of the
    costs, and a positive gain is an improvement.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted scores. A 1D array contains the scores of class 1 of a binary problem.
    cost : array-like of shape (K, A), optional
        Cost of each action (column) for each true class (row). By default, an action predicts a
        class. A correct prediction costs 0, and an incorrect prediction costs 1. The index of a
        pandas frame is matched to the classes.
    calibrator : calibrator, optional
        A clone is fitted for each fold, with ``inputs`` set. For multiclass problems, a binary
        calibrator is extended one-vs-rest. Any scikit-learn classifier with ``predict_proba`` is
        accepted. The default is `StructuredScaling`.
    abstain : float or array-like of shape (K,), optional
        Cost of an abstention, which is added as the last action. Pass one cost, or one cost per
        true class.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    cv : int, splitter or iterable of (train, test) rows, default 5
        Number of folds, a splitter, or the folds. With an integer, rows are assigned to folds at
        random, regardless of their order.
    level : float, default 0.95
        Coverage of the interval.
    sample_weight : array-like of shape (n,), optional
        Row weights. Weights are scaled to the effective number of rows (Kish).
    classes : array-like of labels, optional
        Labels of the columns.
    rng : int, Generator or None
        Seed or generator of the folds.
    groups : array-like of shape (n,), optional
        Group of each row, for example the patient. Rows of a group are in the same fold. The
        interval still treats rows as independent.

    Returns
    -------
    Gain
        The gain with a ``"nadeau-bengio"`` interval.

    See Also
    --------
    calibration_gain : Reduction of a proper score.
    calibrant.metrics.decision_cost : Compute the mean cost of decisions.
    calibrant.decisions.DecisionRule : Make decisions with minimum expected cost.

    Notes
    -----
    The gain is the mean over rows of :math:`c(y_i, a(p_i)) - c(y_i, a(g_{-i}(p_i)))`, where a(p) is
    the action of lowest expected cost. The calibrator :math:`g_{-i}` was fitted without the fold of
    row i. The interval is paired over rows and widened, because the training rows of the
    folds overlap. The interval extends at least (largest cost - smallest cost) / n to both sides.

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error, doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> result = decision_gain(
    ...     data.val_labels, data.val_proba, 5 * (1 - np.eye(10)), abstain=1, rng=0
    ... )
    >>> result.score, result.interval, result.low < result.gain < result.high
    ('decision_cost', 'nadeau-bengio', True)
    """
    check_level(level)
    data = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT
    )
    costs = full_costs(cost, data.classes, abstain)
    data = data._replace(weight=effective_weights(data.weight))
    folds, plan, calibrators = cross_fit(
        data, calibrator, inputs=inputs, cv=cv, rng=rng, groups=groups
    )
    calibrated = [
        proba_of(fitted, data.scores, inputs, fold.held_out)
        for fitted, fold in zip(calibrators, folds, strict=True)
    ]
    rows = np.concatenate([fold.held_out for fold in folds])
    scores, y = data.scores[rows], data.y[rows]
    return paired_gain(
        _costs_of(as_proba(scores, inputs), costs, y),
        _costs_of(np.concatenate(calibrated), costs, y),
        np.concatenate([fold.held_out_weight for fold in folds]),
        plan.ratios,
        score="decision_cost",
        level=level,
        scale=float(np.ptp(costs)),
    )


def _costs_of(proba: FloatArray, costs: FloatArray, y: IntArray) -> FloatArray:
    return realized_costs(costs, cheapest_actions(proba, costs), y)
