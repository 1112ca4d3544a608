"""Calibration slope and intercept with their intervals, and Cox's test of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, expit, ndtri

from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.inference._results import CalibrationTestResult, Interval, check_level
from calibrant.metrics._line import Line, fit_line, log_odds, shift_at
from calibrant.notions import Claim, Claims, Notion, as_notion, claims_of


@dataclass(frozen=True, repr=False)
class CalibrationLine(ShortRepr, AsText):
    """Slope and intercept of a claim with their intervals, and the test that they are 1 and 0.

    Attributes
    ----------
    slope : Interval
        1 for a calibrated model; the estimate is NaN and the interval everything where the data do
        not determine it.
    intercept : Interval
        With the slope held at 1 (calibration in the large); 0 for a calibrated model.
    test : CalibrationTestResult
        Cox's likelihood-ratio test of slope 1 and intercept 0 together.
    """

    slope: Interval
    intercept: Interval
    test: CalibrationTestResult

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
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
    r"""Calibration slope and intercept with confidence intervals.

    The slope b is that of the maximum-likelihood fit :math:`P(o = 1) = \sigma(a + b\,\text{logit}
    f)`, its interval :math:`b \pm z\,s` with s from the information of the fit (Wald). The
    intercept is that of the fit with b = 1, its interval the shifts a at which :math:`|\sum_i (o_i
    - \sigma_i)| \le z \sqrt{\sum_i \sigma_i (1 - \sigma_i)}` (the score test turned round: for
    equal scores Wilson's interval, and finite on one side where all outcomes are the same).

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
    notion : str
        A notion of one claim: "confidence", "class-<k>", "rank-<r>", "at-most-<k>", ...
    level : float
        Of each interval.
    inputs : {"proba", "logits", "log_proba"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
        Numbers of copies.
    classes : labels of the columns, optional

    Returns
    -------
    CalibrationLine

    Notes
    -----
    Asymptotic, and given the scores: rows must be independent, and not those that the model was
    fitted on, where the slope is 1 by construction. Caveat: slope 1 and intercept 0 do not say that
    a model is calibrated, only that no straight line in log-odds mends it. O(n).

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
    chosen = as_notion(notion)
    claims, _ = claims_of(chosen, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claim = _only_claim(chosen, claims)
    line = fit_line(claim)
    return CalibrationLine(
        _slope(claim, line, level, chosen.name),
        _intercept(claim, level, chosen.name),
        _cox_test(claim, line, chosen.name),
    )


def _only_claim(notion: Notion, claims: Claims) -> Claim:
    if claims.n_claims > 1:
        raise ValueError(
            f"notion {notion.name!r} makes {claims.n_claims} claims, and each has a line of its "
            f"own: ask for one, by 'confidence', 'class-<k>', 'rank-<r>' or 'at-most-<k>'"
        )
    return next(iter(claims))


def _slope(claim: Claim, line: Line, level: float, name: str) -> Interval:
    is_known = np.isfinite(line.slope)
    error = _slope_error(claim, line) if is_known else np.inf
    reach = float(ndtri((1 + level) / 2) * error)
    return Interval(
        quantity=f"calibration slope, {name}",
        estimate=line.slope,
        low=line.slope - reach if is_known else -np.inf,
        high=line.slope + reach if is_known else np.inf,
        level=level,
        standard_error=error,
        guarantee="asymptotic",
        n_samples=float(claim.weight.sum()),
    )


def _slope_error(claim: Claim, line: Line) -> float:
    """From the information of slope and intercept, the latter projected out."""
    odds = log_odds(claim.score)
    rate = expit(line.intercept + line.slope * odds)
    share = claim.weight * rate * (1 - rate)
    centre = share @ odds / share.sum()
    return float((share @ (odds - centre) ** 2) ** -0.5)


def _intercept(claim: Claim, level: float, name: str) -> Interval:
    z = float(ndtri((1 + level) / 2))
    estimate = shift_at(claim, 0.0)
    rate = expit(log_odds(claim.score) + estimate)
    information = float(claim.weight @ (rate * (1 - rate)))
    return Interval(
        quantity=f"calibration intercept (slope 1), {name}",
        estimate=estimate,
        low=shift_at(claim, z),
        high=shift_at(claim, -z),
        level=level,
        standard_error=information**-0.5 if information > 0 else np.inf,
        guarantee="asymptotic",
        n_samples=float(claim.weight.sum()),
    )


def _cox_test(claim: Claim, line: Line, name: str) -> CalibrationTestResult:
    """Twice the log-likelihood that the line gains; p-value 1 where there is no line."""
    odds, statistic = log_odds(claim.score), 0.0
    if np.isfinite(line.slope):
        fitted = line.intercept + line.slope * odds
        statistic = 2 * (_log_likelihood(claim, fitted) - _log_likelihood(claim, odds))
    statistic = max(statistic, 0.0)
    return CalibrationTestResult(
        test=f"Cox's test of slope 1 and intercept 0, {name}",
        statistic=statistic,
        p_value=float(chdtrc(2, statistic)),
        null=f"calibrated, {name}",
        guarantee="asymptotic" if np.isfinite(line.slope) else "heuristic",
        n_samples=len(claim.score),
        expected=2.0,
    )


def _log_likelihood(claim: Claim, odds: FloatArray) -> float:
    signed = np.where(claim.outcome, odds, -odds)
    return float(-claim.weight @ np.logaddexp(0.0, -signed))
