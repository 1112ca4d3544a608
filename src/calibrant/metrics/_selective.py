"""Risk-coverage metrics: errors among the most confident predictions."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_option
from calibrant.metrics._risk_path import RiskPath, path_of
from calibrant.metrics.sureness import ScoreLike


def aurc(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    convention: str = "mean",
    excess: bool = False,
    score: ScoreLike = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the area under the risk-coverage curve (AURC).

    The curve shows the error rate among the most confident predictions (risk) against the share of
    these predictions among all rows (coverage). Use the area to compare models or scores for
    abstention. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    convention : {"mean", "trapezoid"}, default "mean"
        "mean" averages the error rates over all ranks, and "trapezoid" uses the trapezoidal rule.
        Other libraries differ in this choice.
    excess : bool, default False
        Whether to subtract the area of a perfect score, which puts all errors last (E-AURC). The
        difference depends less on the accuracy.
    score : {"confidence", "margin", "log-margin"} or callable, default "confidence"
        Score that orders the rows. With the two highest probabilities p1 and p2, "confidence" is
        p1, "margin" is p1 - p2 and "log-margin" is log(p1 / p2). A function receives probabilities
        (n, K) and returns higher scores for more reliable predictions.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. Only ratios of weights matter, and n is the effective number of rows.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The area, between 0 and 1.

    See Also
    --------
    augrc : Area with less weight on errors of the most confident rows.
    calibrant.inference.risk_coverage : The curve with simultaneous confidence bounds.
    calibrant.plots.RiskCoverageDisplay : Plot of the curve.

    Notes
    -----
    With :math:`E_m` errors among the m most confident rows, the mean is

    .. math:: \frac1n \sum_{m=1}^n \frac{E_m}{m} .

    The trapezoidal rule integrates :math:`E_m / m` over coverages m / n from 1 / n to 1 and divides
    by the length 1 - 1 / n. Within a block of ties, :math:`E_m` is linear in m, which is the mean
    over all orders of the block. A perfect score has :math:`E_m = \max(0, m - n + k)` with k errors
    in total. The cost is O(n log n).

    The metric is an estimate and gives no guarantee about new rows.

    References
    ----------
    Geifman, Uziel & El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural
    classifiers, arXiv:1805.08206.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]  # the least confident prediction is wrong
    >>> round(aurc([0, 0, 1], proba), 4), round(aurc([0, 0, 1], proba, convention="trapezoid"), 4)
    (0.1111, 0.0833)
    """
    check_option(convention, "convention", ("mean", "trapezoid"))
    path = path_of(y_true, y_prob, score, sample_weight, classes, inputs)
    area = _area(path, convention)
    return area - _area(path.best(), convention) if excess else area


def _area(path: RiskPath, convention: str) -> float:
    total, mean = path.total, _mean_risk(path)
    if convention == "mean" or total <= 1:  # a single row has no length to integrate over
        return mean
    first, last = float(path.errors_at(1.0)), path.n_errors / total
    return (total * mean - (first + last) / 2) / (total - 1)


def _mean_risk(path: RiskPath) -> float:
    r"""Compute the mean of :math:`E_m / m` over all ranks.

    A block of c rows and e errors begins after M rows and E errors. With r = e / c, the sum over
    the block is
    :math:`\sum_{j=1}^{c} \frac{E + r j}{M + j} = e + (E - r M)(H_{M+c} - H_M)`, where H are
    harmonic numbers. The digamma function extends harmonic numbers to weights that are not
    integers.
    """
    rows, errors = (np.append(0.0, column[:-1]) for column in (path.rows, path.errors))
    count, wrong = path.rows - rows, path.errors - errors
    # Most blocks are single rows, for which the difference is known without round-off.
    harmonic = 1.0 / (rows + 1.0)
    several = count != 1.0
    harmonic[several] = digamma(path.rows[several] + 1.0) - digamma(rows[several] + 1.0)
    sums = wrong + (errors - wrong / count * rows) * harmonic
    return float(sums.sum() / path.total)


def augrc(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    score: ScoreLike = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the area under the generalized risk-coverage curve (AUGRC).

    The generalized risk is the share of all rows that are answered incorrectly. The area is the
    mean generalized risk over all coverages. Lower is better.

    Parameters
    ----------
    y_true, y_prob, score, inputs, sample_weight, classes
        As in `aurc`.

    Returns
    -------
    float
        The area, between 0 and 1. For random scores, the area is half of the error rate.

    See Also
    --------
    aurc : Area under the curve of the error rate among answers.

    Notes
    -----
    With :math:`E_m` errors among the m most confident rows, the area is :math:`\frac1n \sum_m E_m /
    n`. Errors of the most confident rows count less than in `aurc`, whose terms are divided by m.
    Within a block of ties, :math:`E_m` is linear in m. The cost is O(n log n).

    References
    ----------
    Traub et al. (2024), Overcoming common flaws in the evaluation of selective classification
    systems, arXiv:2407.01032.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]  # the least confident prediction is wrong
    >>> round(augrc([0, 0, 1], proba), 4)
    0.1111
    """
    path = path_of(y_true, y_prob, score, sample_weight, classes, inputs)
    rows, errors = (np.append(0.0, column[:-1]) for column in (path.rows, path.errors))
    count, wrong = path.rows - rows, path.errors - errors
    # A block of c rows and e errors begins after E errors. Sum E + e j / c over j = 1, ..., c.
    return float((count * errors + wrong * (count + 1.0) / 2.0).sum() / path.total**2)


def coverage_at_risk(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    risk: float = 0.05,
    score: ScoreLike = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    """Compute the largest share of answered rows whose error rate is at most ``risk``.

    Higher is better. The threshold is chosen on the evaluated rows, so the result is optimistic and
    gives no guarantee about new rows. `calibrant.inference.risk_coverage` computes valid bounds.

    Parameters
    ----------
    y_true, y_prob, score, inputs, sample_weight, classes
        As in `aurc`.
    risk : float, default 0.05
        Maximum error rate among the answered rows.

    Returns
    -------
    float
        The share, between 0 and 1. The share is 0 if no threshold has an error rate of at most
        ``risk``.

    See Also
    --------
    risk_at_coverage : The error rate at a given share of answers.
    calibrant.inference.risk_coverage : The curve with simultaneous confidence bounds.

    Notes
    -----
    A threshold answers all rows with higher scores, so rows with tied scores are answered together.
    The metric is the largest share of answered rows over all thresholds with an error rate of at
    most ``risk``. The cost is O(n log n).

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]  # the least confident prediction is wrong
    >>> round(coverage_at_risk([0, 0, 1], proba, risk=0.05), 4)
    0.6667
    """
    _check_share(risk, "risk", 0.0)
    path = path_of(y_true, y_prob, score, sample_weight, classes, inputs)
    is_allowed = path.errors / path.rows <= risk + ROUND_OFF
    return float(path.rows[is_allowed].max(initial=0.0) / path.total)


def risk_at_coverage(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    coverage: float = 0.8,
    score: ScoreLike = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    """Compute the error rate if the share ``coverage`` of the rows is answered.

    Lower is better. The answered rows have the highest scores.

    Parameters
    ----------
    y_true, y_prob, score, inputs, sample_weight, classes
        As in `aurc`.
    coverage : float, default 0.8
        Share of the rows that are answered, above 0 and at most 1.

    Returns
    -------
    float
        The error rate, between 0 and 1.

    See Also
    --------
    coverage_at_risk : The largest share of answers with a given error rate.
    calibrant.inference.risk_coverage : The curve with simultaneous confidence bounds.

    Notes
    -----
    With :math:`E_m` errors among the m most confident rows, the error rate is :math:`E_m / m`. m is
    the smallest integer that is at least ``coverage`` times n. Within a block of ties, :math:`E_m`
    is linear in m, which is the mean over all orders of the block.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]  # the least confident prediction is wrong
    >>> risk_at_coverage([0, 0, 1], proba, coverage=0.5)
    0.0
    """
    _check_share(coverage, "coverage", 1.0)
    path = path_of(y_true, y_prob, score, sample_weight, classes, inputs)
    rows = min(path.total, float(np.ceil((coverage - ROUND_OFF) * path.total)))
    return float(path.errors_at(rows) / rows)


def _check_share(value: float, name: str, allowed: float) -> None:
    """Raise unless a share lies between 0 and 1 or equals ``allowed``."""
    if not (0 < value < 1 or value == allowed):
        ends = "at least 0 and below 1" if allowed == 0 else "above 0 and at most 1"
        example = 0.05 if allowed == 0 else 0.8
        raise ValueError(
            f"{name} must be {ends}, got {value!r}. For example, pass {name}={example}."
        )
