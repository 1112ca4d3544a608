"""Calibration slope and intercept: the logistic line of outcomes on log-odds."""

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
"""Intercepts beyond this turn every score that is not 0 or 1 into 0 or 1."""


def calibration_slope(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Calibration slope: :math:`b` of the maximum-likelihood fit
    :math:`P(o = 1) = \sigma(a + b\,\text{logit} f)`.

    1 for a calibrated model; below 1 scores are too extreme, above 1 not extreme enough. For a
    notion of several claims the mean of theirs, with the weights of `expected_calibration_error`.

    Notes
    -----
    Caveat: a slope of 1 does not say that a model is calibrated, only that no straight line in
    log-odds mends it. NaN where the data do not determine it: all scores or all outcomes the same,
    or outcomes that a threshold of the score separates. Scores are floored at 1e-12 from 0 and 1.
    `calibrant.inference.calibration_line` has the interval. O(n) per claim.

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
    r"""Calibration in the large: :math:`a` of the maximum-likelihood fit
    :math:`P(o = 1) = \sigma(a + \text{logit} f)`, the slope held at 1.

    0 where as much happens as is said on average (in log-odds); above 0 scores are too low, below 0
    too high. Infinite where all outcomes are the same. For several claims, notes and references as
    in `calibration_slope`.

    Notes
    -----
    Caveat: errors that cancel leave it at 0. It is not the intercept beside a fitted slope, which
    depends on where the scores lie.

    Examples
    --------
    >>> round(calibration_intercept([1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], notion="class-1"), 4)
    -1.0986
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: shift_at(claim, 0.0))


class Line(NamedTuple):
    """Slope and intercept of outcomes on log-odds; NaN where the data do not determine them."""

    slope: float
    intercept: float


def log_odds(score: FloatArray) -> FloatArray:
    """``log(f / (1 - f))``, floored at both ends."""
    odds, rest = np.maximum(score, EPS), np.maximum(1.0 - score, EPS)
    return np.asarray(np.log(odds) - np.log(rest, out=rest))


def fit_line(claim: Claim) -> Line:
    """The line of a claim by maximum likelihood."""
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
    r"""The shift a of the log-odds at which the outcomes lie z standard errors above the scores,

    .. math:: \sum_i w_i (o_i - \sigma(a + \text{logit} f_i)) = z \sqrt{\sum_i w_i^2
        \sigma_i (1 - \sigma_i)} .

    z = 0 is the maximum-likelihood fit; two values of z are the ends of an interval. ``squares``
    are the squared weights, which z = 0 does not need.
    """
    odds = log_odds(claim.score)
    own_squares = claim.weight if squares is None else squares

    def sums(shift: float, rows: slice) -> tuple[float, float]:
        own, weight = odds[rows], claim.weight[rows]
        rate, rest = expit(own + shift), expit(-own - shift)  # 1 - rate would lose its digits
        beyond = weight @ np.where(claim.outcome[rows], rest, -rate)
        return float(beyond), float(own_squares[rows] @ (rate * rest))

    def excess(shift: float) -> float:
        beyond, variance = sum_blocks(partial(sums, shift), len(odds), 1)
        return float(beyond - z * np.sqrt(variance))

    # The excess falls with the shift; what no finite shift explains is infinite.
    if excess(-WIDEST) <= 0:
        return -np.inf
    if excess(WIDEST) >= 0:
        return np.inf
    return float(scipy.optimize.brentq(excess, -WIDEST, WIDEST, xtol=1e-13, rtol=1e-13))
