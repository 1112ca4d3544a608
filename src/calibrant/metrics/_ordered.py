"""Ranked probability score, the proper score of ordered classes."""

from __future__ import annotations

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics._scores import brier_score


def ranked_probability_score(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the ranked probability score (RPS) of ordered classes.

    Probability for a class near the true class costs less than probability for a distant class.
    Lower is better. The score is proper and lies between 0 and 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns. The columns must be in the order of the classes.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.

    Returns
    -------
    float
        The mean score.

    See Also
    --------
    brier_score : Proper score for classes without an order.
    calibrant.notions : Pass ``notion="cumulative"`` to other metrics for ordered classes.

    Notes
    -----
    .. math:: \frac{1}{n (K-1)} \sum_i \sum_{k=0}^{K-2} \big(P_{ik} - 1[y_i \le k]\big)^2, \quad
        P_{ik} = \sum_{l \le k} p_{il} .

    The score equals ``brier_score(notion="cumulative")``. For binary problems, the score is the
    usual binary Brier score. Without the division by K - 1, as in some definitions, scores are K -
    1 times as large. The cost is O(n K).

    References
    ----------
    Epstein (1969), doi:10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2; Murphy (1971), A note on
    the ranked probability score, doi:10.1175/1520-0450(1971)010<0155:ANOTRP>2.0.CO;2.

    Examples
    --------
    >>> ranked_probability_score([0], [[0.0, 1.0, 0.0]]), ranked_probability_score([0], [[0, 0, 1]])
    (0.5, 1.0)
    """
    return brier_score(
        y_true,
        y_prob,
        notion="cumulative",
        sample_weight=sample_weight,
        classes=classes,
        inputs=inputs,
    )
