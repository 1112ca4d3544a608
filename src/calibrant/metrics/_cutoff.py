"""Cutoff calibration error: the largest error over all intervals of scores."""

from __future__ import annotations

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics.ks import path_parts
from calibrant.notions import Claim, Notion, as_notion, claims_of


def cutoff_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the cutoff calibration error, the largest mean residual over any interval of scores.

    The error bounds the benefit of moving a decision threshold. Assume the rule "act if the score
    is at least t", and benefits between 0 and 1. Changing the threshold then increases the mean
    benefit per row by at most this error. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`. Errors of several claims are averaged with the
        weights of `expected_calibration_error`.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.

    Returns
    -------
    float
        The error, between 0 and 1.

    See Also
    --------
    calibrant.inference.cutoff_interval : Confidence interval of the error.
    calibrant.inference.consistency_test : P-value with ``metric="cutoff_calibration_error"``.
    ks_error : The largest error over intervals that begin at the lowest score.

    Notes
    -----
    With scores f and outcomes o, the error is

    .. math:: \max_I \frac1n \Big| \sum_{i:\, f_i \in I} (o_i - f_i) \Big| ,

    which is Kuiper's statistic. The error is the highest minus the lowest point of a cumulative
    graph, and `ks_error` is the largest distance of this graph from zero. For a calibrated model,
    the error is of order :math:`1 / \sqrt n` because of sampling noise. The cost is O(n log n) time
    and O(n) memory per claim.

    References
    ----------
    Rossellini et al. (2025), arXiv:2502.19851.

    Examples
    --------
    >>> cutoff_calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], notion="class-1")
    0.125
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(claim_cutoff)


def claim_cutoff(claim: Claim) -> float:
    """Compute the cutoff error of one claim, the range of a cumulative graph from zero."""
    ends = [(part.excess.min(), part.excess.max()) for part in path_parts(claim)]
    return float(max(0.0, *(high for _, high in ends)) - min(0.0, *(low for low, _ in ends)))
