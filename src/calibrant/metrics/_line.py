"""Calibration slope and intercept: logistic regression of outcomes on log-odds."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy
from scipy.special import expit

from calibrant._kernels.blocks import sum_blocks
from calibrant._kernels.simplex import EPS
from calibrant._optim.logistic import fit_logistic
from calibrant._optim.solution import Outcome
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

WIDEST = 100.0
"""A larger shift of the log-odds turns every score into 0 or 1."""


def calibration_slope(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the calibration slope, the slope of a logistic regression of outcomes on log-odds.

    The ideal slope is 1. A slope below 1 means that scores are too extreme (overconfident). A slope
    above 1 means that scores are not extreme enough.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`. Slopes of several claims are averaged with the
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
        The slope. The slope is NaN if all scores or all outcomes are equal, or if a threshold of
        the score separates the outcomes.

    See Also
    --------
    calibration_intercept : Intercept with the slope fixed at 1 (calibration in the large).
    calibrant.inference.calibration_line : Slope and intercept with confidence intervals.

    Notes
    -----
    The slope is b of the maximum-likelihood fit :math:`P(o = 1) = \sigma(a + b\,\text{logit} f)`. A
    slope of 1 does not imply calibration. A slope of 1 only means that no straight line in log-odds
    improves the scores. Scores are clipped to [1e-12, 1 - 1e-12]. The cost is O(n) per claim.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression,
    doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2016), A calibration hierarchy for risk
    models was defined, doi:10.1016/j.jclinepi.2015.12.005.

    Examples
    --------
    >>> from scipy.special import expit
    >>> p = expit([-2.0, -2.0, -2.0, -2.0, 2.0, 2.0, 2.0, 2.0])
    >>> round(calibration_slope([0, 0, 0, 1, 0, 1, 1, 1], p, notion="class-1"), 4)
    0.5493
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: fit_line(claim).slope)


def calibration_intercept(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the calibration intercept with the slope fixed at 1 (calibration in the large).

    An intercept of 0 means that mean score and observed frequency agree. If the intercept is
    positive, scores are too low on average. If the intercept is negative, scores are too high.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, classes, inputs
        As in `calibration_slope`.

    Returns
    -------
    float
        The intercept in log-odds. The intercept is infinite if all outcomes are equal.

    See Also
    --------
    calibration_slope : Calibration slope.
    calibrant.inference.calibration_line : Slope and intercept with confidence intervals.

    Notes
    -----
    The intercept is the value of a in the maximum-likelihood fit :math:`P(o = 1) = \sigma(a +
    \text{logit} f)`. Errors that cancel do not change the intercept. The intercept of a fit with a
    free slope is different, because it depends on the location of the scores. The cost is O(n) per
    claim.

    References
    ----------
    Cox (1958), doi:10.1093/biomet/45.3-4.562; Van Calster et al. (2016),
    doi:10.1016/j.jclinepi.2015.12.005.

    Examples
    --------
    >>> round(calibration_intercept([1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], notion="class-1"), 4)
    -1.0986
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: shift_at(claim, 0.0))


class Line(NamedTuple):
    """Slope and intercept of outcomes on log-odds, or NaN if the data do not determine the line."""

    slope: float
    intercept: float


def log_odds(score: FloatArray) -> FloatArray:
    """Return ``log(f / (1 - f))``, with both probabilities at least EPS."""
    odds, complement = np.maximum(score, EPS), np.maximum(1.0 - score, EPS)
    return np.asarray(np.log(odds) - np.log(complement, out=complement))


def fit_line(claim: Claim) -> Line:
    """Fit the line of a claim by maximum likelihood."""
    is_present = claim.weight > 0
    present = slice(None) if is_present.all() else is_present
    odds, weight = log_odds(claim.score[present]), claim.weight[present]
    outcome = claim.outcome[present].astype(np.float64)
    if np.ptp(odds) == 0 or np.ptp(outcome) == 0:
        return Line(np.nan, np.nan)
    solution = fit_logistic(odds[:, None], outcome, weight)
    if solution.outcome is not Outcome.CONVERGED:
        return Line(np.nan, np.nan)
    return Line(float(solution.parameters[0]), float(solution.parameters[1]))


def shift_at(claim: Claim, z: float, squares: FloatArray | None = None) -> float:
    r"""Return the shift of the log-odds that puts outcomes z standard errors above the scores.

    The shift a solves

    .. math:: \sum_i w_i (o_i - \sigma(a + \text{logit} f_i)) = z \sqrt{\sum_i w_i^2
        \sigma_i (1 - \sigma_i)} .

    z = 0 gives the maximum-likelihood fit. Two values of z determine the ends of an interval.
    ``squares`` are the squared weights, which are not needed for z = 0.
    """
    odds = log_odds(claim.score)
    squares = claim.weight if squares is None else squares

    def sums(shift: float, rows: slice) -> tuple[float, float]:
        shifted, weight = odds[rows] + shift, claim.weight[rows]
        rate, complement = expit(shifted), expit(-shifted)  # 1 - rate would lose digits
        residual = weight @ np.where(claim.outcome[rows], complement, -rate)
        return float(residual), float(squares[rows] @ (rate * complement))

    def excess(shift: float) -> float:
        residual, variance = sum_blocks(partial(sums, shift), len(odds), 1)
        return float(residual - z * np.sqrt(variance))

    # The excess decreases with the shift. Without a change of sign, no finite shift is a solution.
    if excess(-WIDEST) <= 0:
        return -np.inf
    if excess(WIDEST) >= 0:
        return np.inf
    return float(scipy.optimize.brentq(excess, -WIDEST, WIDEST, xtol=1e-13, rtol=1e-13))
