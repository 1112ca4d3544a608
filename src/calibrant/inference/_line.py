"""Calibration slope and intercept with intervals, and Cox's joint test."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, expit, ndtri

from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.inference._results import CalibrationTestResult, Interval, check_level
from calibrant.inference._rows import squared_weights
from calibrant.metrics._line import Line, fit_line, log_odds, shift_at
from calibrant.notions import Claim, Claims, Notion, as_notion, claims_of


@dataclass(frozen=True, repr=False)
class CalibrationLine(ShortRepr, AsText):
    """Calibration slope and intercept with intervals, returned by `calibration_line`.

    Attributes
    ----------
    slope : Interval
        Calibration slope, which is 1 for a calibrated model and below 1 if scores are too extreme.
        If the data do not determine the slope, the estimate is NaN and the interval is unbounded.
    intercept : Interval
        Intercept with the slope fixed at 1 (calibration in the large), which is 0 for a calibrated
        model.
    test : CalibrationTestResult
        Cox's likelihood-ratio test of slope 1 and intercept 0. With weights, a score test replaces
        Cox's test.

    See Also
    --------
    calibration_line : Compute slope and intercept.
    """

    slope: Interval
    intercept: Interval
    test: CalibrationTestResult

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.slope}\n{self.intercept}\n{self.test}"


def calibration_line(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    level: float = 0.95,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationLine:
    r"""Estimate calibration slope and intercept with confidence intervals.

    A calibrated model has slope 1 and intercept 0. A slope below 1 means that scores are too
    extreme (overconfident). A slope above 1 means that scores are not extreme enough. A negative
    intercept means that scores are too high on average.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "confidence"
        Type of calibration with a single claim: "confidence", "class-<k>", "rank-<r>",
        "at-most-<k>", ...
    level : float, default 0.95
        Coverage of each interval.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. Only ratios of weights matter.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    CalibrationLine
        Slope, intercept, and a joint test of slope and intercept.

    See Also
    --------
    calibrant.metrics.calibration_slope : Compute the slope without an interval.
    calibrant.metrics.calibration_intercept : Compute the intercept without an interval.
    calibration_band : Confidence band of the whole calibration curve.

    Notes
    -----
    The slope b is estimated by maximum likelihood in the model :math:`P(o = 1) = \sigma(a +
    b\,\text{logit} f)`. The interval of b is :math:`b \pm z\,s` with s from the information of the
    fit (Wald). The intercept is the estimate of a with b = 1. The interval of the intercept
    consists of the shifts a with :math:`|\sum_i (o_i - \sigma_i)| \le z \sqrt{\sum_i \sigma_i (1 -
    \sigma_i)}` (inverted score test). For equal scores, this interval is Wilson's interval. If all
    outcomes are equal, the interval is finite on one side.

    The intervals are asymptotic and conditional on the scores. Rows must be independent, and the
    model must not have been fitted on them. On training rows, the slope of a logistic regression is
    1 by construction. Slope 1 and intercept 0 do not imply calibration. These values only mean that
    no straight line in log-odds improves the scores. The cost is O(n).

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression,
    doi:10.1093/biomet/45.3-4.562; Miller et al. (1993), doi:10.1177/0272989X9301300107; Van Calster
    et al. (2016), doi:10.1016/j.jclinepi.2015.12.005.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> line = calibration_line(data.test_labels, data.test_proba)
    >>> line.slope.high < 1, line.intercept.high < 0  # too extreme, and too high
    (True, True)
    """
    check_level(level)
    kind = as_notion(notion)
    claims, _ = claims_of(kind, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claim = only_claim(kind, claims)
    line = fit_line(claim)
    return CalibrationLine(
        _slope(claim, line, level, kind.name),
        _intercept(claim, level, kind.name),
        _cox_test(claim, line, kind.name),
    )


def only_claim(notion: Notion, claims: Claims) -> Claim:
    """Return the claim of a type of calibration, or raise if there are several claims."""
    if claims.n_claims > 1:
        raise ValueError(
            f"notion {notion.name!r} has {claims.n_claims} claims, but this function needs exactly "
            "one claim. For example, pass notion='confidence', or 'class-<k>', 'rank-<r>' or "
            "'at-most-<k>'."
        )
    return next(iter(claims))


def _slope(claim: Claim, line: Line, level: float, name: str) -> Interval:
    is_finite = np.isfinite(line.slope)
    error = _slope_error(claim, line) if is_finite else np.inf
    reach = float(ndtri((1 + level) / 2) * error)
    return Interval(
        quantity=f"calibration slope, {name}",
        estimate=line.slope,
        low=line.slope - reach if is_finite else -np.inf,
        high=line.slope + reach if is_finite else np.inf,
        level=level,
        standard_error=error,
        guarantee="asymptotic",
        n_samples=float(claim.weight.sum()),
    )


def _slope_error(claim: Claim, line: Line) -> float:
    """Compute the standard error from the information matrix, with the intercept projected out.

    Weights enter the variance of the score squared (sandwich estimator of weighted likelihoods).
    """
    odds = log_odds(claim.score)
    rate = expit(line.intercept + line.slope * odds)
    variance = rate * (1 - rate)
    share = claim.weight * variance
    squares = (odds - share @ odds / share.sum()) ** 2
    return float(np.sqrt((squared_weights(claim) * variance) @ squares) / (share @ squares))


def _intercept(claim: Claim, level: float, name: str) -> Interval:
    z, squares = float(ndtri((1 + level) / 2)), squared_weights(claim)
    estimate = shift_at(claim, 0.0)
    rate = expit(log_odds(claim.score) + estimate)
    information = float(claim.weight @ (rate * (1 - rate)))
    error = float(np.sqrt(squares @ (rate * (1 - rate))))
    return Interval(
        quantity=f"calibration intercept (slope 1), {name}",
        estimate=estimate,
        low=shift_at(claim, z, squares),
        high=shift_at(claim, -z, squares),
        level=level,
        standard_error=error / information if information > 0 else np.inf,
        guarantee="asymptotic",
        n_samples=float(claim.weight.sum()),
    )


def _cox_test(claim: Claim, line: Line, name: str) -> CalibrationTestResult:
    """Compute the likelihood-ratio test, or the score test if there are weights."""
    if claim.is_weighted:
        return _score_test(claim, name)
    odds = log_odds(claim.score)
    best = _largest_log_likelihood(claim, line, odds)
    # Equal scores do not identify the slope, so one degree of freedom remains. If all outcomes are
    # equal, the best likelihood is 1. Then two degrees of freedom give p = exp(-statistic / 2),
    # which is exactly the probability of these outcomes, and no valid p-value is smaller.
    is_flat = np.ptp(odds[claim.weight > 0]) == 0  # all scores are equal
    freedom = 1.0 if is_flat and best < 0.0 else 2.0
    statistic = max(2 * (best - _log_likelihood(claim, odds)), 0.0)
    result = _chi_squared_result("Cox's test", claim, statistic, freedom, name)
    return result if np.isfinite(line.slope) else replace(result, guarantee="heuristic")


def _score_test(claim: Claim, name: str) -> CalibrationTestResult:
    """Compute the score test of slope 1 and intercept 0.

    Under calibration, the covariance of the weighted score is known, so the statistic is
    chi-squared for any weights. A weighted likelihood ratio is not chi-squared.
    """
    design = np.stack([np.ones(len(claim.score)), log_odds(claim.score)])
    score = design @ (claim.weight * (claim.outcome - claim.score))
    variance = squared_weights(claim) * claim.score * (1 - claim.score)
    covariance = (design * variance) @ design.T
    # Equal scores give a covariance of rank one, and one degree of freedom.
    freedom = int(np.linalg.matrix_rank(covariance, hermitian=True))
    statistic = float(score @ np.linalg.pinv(covariance, hermitian=True) @ score)
    result = _chi_squared_result("score test", claim, statistic, float(freedom), name)
    return result if freedom else replace(result, p_value=float(not score.any()))


def _chi_squared_result(
    test: str, claim: Claim, statistic: float, freedom: float, name: str
) -> CalibrationTestResult:
    """Return the result of a test whose statistic is chi-squared in the limit."""
    return CalibrationTestResult(
        test=f"{test} of slope 1 and intercept 0, {name}",
        statistic=statistic,
        p_value=float(chdtrc(freedom, statistic)),
        null=f"the predictions are calibrated ({name})",
        guarantee="asymptotic",
        n_samples=len(claim.score),
        expected=freedom,
    )


def _largest_log_likelihood(claim: Claim, line: Line, odds: FloatArray) -> float:
    """Return the maximum of the log-likelihood, or its supremum if there is no maximum.

    If there is no maximum, a threshold of the score separates the outcomes, upward or downward. In
    the limit, steep lines predict the outcome of every row beyond the threshold with certainty.
    Rows exactly at the threshold keep the frequency of their outcomes. Equal scores also keep the
    frequency of their outcomes.
    """
    if np.isfinite(line.slope):
        return _log_likelihood(claim, line.intercept + line.slope * odds)
    hit, present = claim.outcome.astype(bool), claim.weight > 0
    for sign in (1.0, -1.0):
        ones, zeros = sign * odds[hit & present], sign * odds[~hit & present]
        highest, lowest = np.max(zeros, initial=-np.inf), np.min(ones, initial=np.inf)
        if highest <= lowest:
            is_tied = present & (sign * odds == highest) if highest == lowest else ~present
            return _binomial_log_likelihood(
                float(claim.weight[is_tied & hit].sum()), float(claim.weight[is_tied].sum())
            )
    return np.nan


def _binomial_log_likelihood(hits: float, total: float) -> float:
    """Return the log-likelihood at the observed frequency."""
    if not 0.0 < hits < total:
        return 0.0
    rate = hits / total
    return total * (rate * float(np.log(rate)) + (1.0 - rate) * float(np.log1p(-rate)))


def _log_likelihood(claim: Claim, odds: FloatArray) -> float:
    signed = np.where(claim.outcome, odds, -odds)
    return float(-claim.weight @ np.logaddexp(0.0, -signed))
