"""Net benefit of acting on predicted probabilities that reach a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import ClaimBlock, Claims, Notion, as_notion, claims_of


def net_benefit(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    thresholds: Any,
    *,
    notion: str | Notion = "class-1",
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> FloatArray:
    r"""Compute the net benefit of acting if the predicted probability reaches a threshold.

    Use this metric to compare models for a decision. The threshold expresses the costs. At t = 0.1,
    nine unnecessary actions cost as much as one missed event. Higher is better, and 0 is the net
    benefit of never acting.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    thresholds : float or array-like of shape (m,)
        Thresholds t of at least 0 and below 1.
    notion : str or Notion, default "class-1"
        Binary event, see `calibrant.notions`. "class-<k>" is the class in column k, or with the
        label k. Net benefits of several claims are averaged with the weights of
        `expected_calibration_error`.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    array of shape (m,)
        Net benefit per row at each threshold. The unit is the benefit of one true positive.

    See Also
    --------
    calibrant.plots.DecisionCurveDisplay : Plot of net benefit against the threshold.
    cutoff_calibration_error : Bound on the benefit of moving the threshold.

    Notes
    -----
    .. math:: \frac{\text{TP}}{n} - \frac{\text{FP}}{n} \frac{t}{1 - t}

    TP and FP are the numbers of rows with and without the event whose probability is at least t. A
    row with a probability of exactly 0 never leads to an action, not even at t = 0. The package
    dcurves has the same conventions. Let C be the cost of an unnecessary action and B the benefit
    of a necessary action. With calibrated probabilities, t = C / (C + B) is the best threshold. The
    cost is O(n log m).

    References
    ----------
    Vickers & Elkin (2006), Decision curve analysis, doi:10.1177/0272989X06295361.

    Examples
    --------
    >>> net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], [0.2, 0.5]).tolist()
    [0.4375, 0.0]
    """
    cutoffs = _check_thresholds(thresholds)
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    hits, others = acted_on(claims, cutoffs)
    return hits - others * cutoffs / (1.0 - cutoffs)


def acted_on(claims: Claims, thresholds: FloatArray) -> FloatArray:
    """Return the shares of rows that reach each threshold, with and without the event, (2, m)."""
    order = np.argsort(thresholds)
    ordered, n_steps = thresholds[order], len(thresholds) + 1

    def counts(block: ClaimBlock, weight: FloatArray) -> FloatArray:
        # A score reaches the first `place` thresholds. A score of 0 means an impossible event,
        # so it does not reach a threshold of 0.
        score = block.score.ravel()
        place = np.where(score > 0, np.searchsorted(ordered, score, side="right"), 0)
        place[block.hit] += n_steps
        weights = np.repeat(weight, block.score.shape[1])
        return np.bincount(place, weights, 2 * n_steps).reshape(2, n_steps)[::-1]

    sums = claims.sum_over(counts) / (claims.total * claims.n_quantities)
    shares = np.empty((2, len(thresholds)))
    shares[:, order] = np.cumsum(sums[:, ::-1], axis=1)[:, -2::-1]
    return shares


def _check_thresholds(thresholds: Any) -> FloatArray:
    cutoffs = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if cutoffs.ndim != 1 or not ((cutoffs >= 0) & (cutoffs < 1)).all():
        raise ValueError(
            f"thresholds must be numbers of at least 0 and below 1, got {thresholds!r:.80}. For "
            f"example, pass thresholds=[0.1, 0.2]."
        )
    return cutoffs


def event_rate(claims: Claims) -> float:
    """Return the share of the rows with the event, averaged over the claims."""

    def hits(block: ClaimBlock, weight: FloatArray) -> Any:
        return weight[block.hit // block.score.shape[1]].sum()

    return float(claims.sum_over(hits) / (claims.total * claims.n_quantities))
