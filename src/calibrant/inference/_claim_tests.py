"""Mean, Spiegelhalter, Hosmer-Lemeshow, KS and Kuiper tests of binary calibration.

All tests are conditional on the scores. The tests assume independent rows that the model was not
fitted on. A claim is a binary problem, such as one class or rank. With several claims, the smallest
p-value is multiplied by the number of claims (Bonferroni). The statistic of the result belongs to
the claim with the smallest p-value.

A row has one label, regardless of its weight. Statistics are divided by the standard deviation of
the weighted sum, so only ratios of weights matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from calibrant._kernels.simplex import effective_weights
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_count
from calibrant.binning import bin_table
from calibrant.inference._draws import poisson_binomial
from calibrant.inference._results import CalibrationTestResult, monte_carlo_p_value
from calibrant.inference._rows import squared_weights
from calibrant.inference._small_counts import FEW_COUNTS, NullDraws
from calibrant.metrics.ks import ks_path
from calibrant.notions import Claim, ClaimBlock, Claims, Notion, as_notion, claims_of

_LEAST_DRAWS, _DRAWS_PER_CLAIM = 2_000, 100
"""Minimum number of draws of the null distribution, in total and per claim. With 100 draws per
claim, the smallest possible p-value after Bonferroni's correction is at most 0.01. """

_FEW_EXPECTED = 5.0
"""Minimum expected number of outcomes of either kind per group (Cochran's rule). With fewer
outcomes, the chi-squared distribution is inaccurate."""


class _Outcome(NamedTuple):
    """Statistic, p-value and guarantee of the test of one claim.

    ``draw`` simulates outcomes and returns their statistics. ``draw`` is set only if
    counts are too small for the limit distribution.
    """

    statistic: float
    p_value: float
    guarantee: str = "asymptotic"
    draw: Callable[[int], FloatArray] | None = None


def mean_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "top-label",
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Test whether the mean predicted probability equals the observed frequency (exact).

    By default, there is one test per predicted class, which compares the mean confidence and the
    accuracy of its predictions. Other tests weight errors by rows, so they can miss errors of rare
    classes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "top-label"
        Type of calibration, see `calibrant.notions`. "top-label" tests each predicted class,
        "class-wise" tests the frequency of each class, and "confidence" tests all rows together.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. Only ratios of weights matter.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.

    See Also
    --------
    consistency_test : Test of any calibration error by resampling labels.
    ks_test : Test of cumulative outcomes, which also detects errors that cancel in the mean.

    Notes
    -----
    The statistic is :math:`|\sum_i (o_i - f_i)| / \sqrt{\sum_i f_i (1 - f_i)}` with scores f and
    outcomes o, of the class with the smallest p-value. Under calibration, the number of positive
    outcomes has a Poisson-binomial distribution. The p-value is twice the smaller tail probability,
    so the level holds for every number of rows. Sums of weighted or chunked rows are compared with
    their normal limit, or with draws as in `ks_test`. The cost is O(n log^2 n).

    References
    ----------
    Hong (2013), On computing the distribution function for the Poisson binomial distribution,
    doi:10.1016/j.csda.2012.10.006.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> mean_test(data.test_labels, data.test_proba).p_value < 0.001
    True
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return _run("mean test", claims, as_notion(notion), _mean)


def spiegelhalter_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Test whether the Brier score equals its expected value under calibration (Spiegelhalter).

    Parameters
    ----------
    y_true, y_prob, notion, inputs, sample_weight, classes
        As in `mean_test`. By default, the confidence is tested.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.

    See Also
    --------
    mean_test : Exact test of mean predicted probability against observed frequency.
    calibration_line : Calibration slope and intercept with intervals.

    Notes
    -----
    The statistic is :math:`|Z|` with

    .. math:: Z = \frac{\sum_i (o_i - f_i)(1 - 2 f_i)}{\sqrt{\sum_i (1 - 2 f_i)^2 f_i (1 - f_i)}} ,

    which is standard normal under calibration. The p-value is two-sided. The cost is O(n).

    The test detects scores that are too extreme or not extreme enough. The test misses all errors
    at 1/2, and errors below and above 1/2 if they cancel.

    The normal limit is inaccurate for few rows and for scores near 0 and 1. The accuracy of the
    limit depends on the variance of the number of outcomes, :math:`\sum_i f_i (1 - f_i)`, with rows
    weighted by
    :math:`(1 - 2 f_i)^2`. If this variance is below 20, the p-value is computed from at least 1,999
    draws of the outcomes and is exact (Monte Carlo).

    References
    ----------
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical trials,
    doi:10.1002/sim.4780050506.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> spiegelhalter_test(data.test_labels, data.test_proba).p_value < 0.001
    True
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return _run("Spiegelhalter's test", claims, as_notion(notion), _spiegelhalter)


def hosmer_lemeshow_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 10,
    is_training: bool = False,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Compare observed and expected outcomes in groups of equal size (Hosmer-Lemeshow test).

    Parameters
    ----------
    y_true, y_prob, notion, inputs, sample_weight, classes
        As in `mean_test`. By default, the confidence is tested.
    n_bins : int, default 10
        Number of groups (quantile bins). Tied scores stay in one group.
    is_training : bool, default False
        Whether the model is a logistic regression that was fitted on these rows.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.
        ``guarantee`` is "heuristic" if fewer than five positive or fewer than five negative
        outcomes are expected in a group.

    See Also
    --------
    calibration_line : Calibration slope and intercept, which measure the size of the error.
    consistency_test : Exact test of a binned calibration error.

    Notes
    -----
    .. math:: H = \sum_b \frac{(O_b - E_b)^2}{E_b (1 - E_b / n_b)}

    over groups of ordered scores with :math:`O_b` observed and :math:`E_b` expected outcomes. H is
    compared with the chi-squared distribution. The degrees of freedom are the number of groups,
    minus two on training rows. The cost is O(n log n).

    The p-value depends on the number of groups and on the treatment of ties. The test has little
    power with few rows. With many rows, the test rejects nearly every model, because it detects
    negligible errors.

    References
    ----------
    Hosmer & Lemeshow (1980), Goodness of fit tests for the multiple logistic regression model,
    doi:10.1080/03610928008827941; Hosmer et al. (1997),
    doi:10.1002/(SICI)1097-0258(19970515)16:9<965::AID-SIM509>3.0.CO;2-O.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> hosmer_lemeshow_test(data.test_labels, data.test_proba).p_value < 0.001
    True
    """
    check_count(n_bins, "n_bins", minimum=3 if is_training else 1)
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    statistic = partial(_hosmer_lemeshow, n_bins=n_bins, n_fitted=2 if is_training else 0)
    return _run("Hosmer-Lemeshow test", claims, as_notion(notion), statistic)


def ks_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Compare cumulative outcomes with cumulative scores (Kolmogorov-Smirnov test).

    Parameters
    ----------
    y_true, y_prob, notion, inputs, sample_weight, classes
        As in `mean_test`. By default, the confidence is tested.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.

    See Also
    --------
    kuiper_test : Variant that detects errors in any range of scores.
    calibrant.metrics.ks_error : Calibration error with the same cumulative sums.

    Notes
    -----
    .. math:: D = \max_s \frac{|S(s)|}{\sqrt{\sum_i f_i (1 - f_i)}}, \quad
        S(s) = \sum_{i: f_i \le s} (o_i - f_i) .

    Under calibration, S is a martingale, and D converges to the maximum absolute value of a
    Brownian motion. The test is most powerful if errors have the same sign over a range of scores,
    because alternating errors cancel. The cost is O(n log n).

    If :math:`\sum_i f_i (1 - f_i)` is below 20, the limit is inaccurate. The p-value is then
    computed from at least 1,999 draws of the outcomes and is exact (Monte Carlo). Otherwise, the
    p-value is computed from the limit. This p-value is conservative, because the maximum of a sum
    of few steps is smaller than the maximum of a Brownian motion.

    References
    ----------
    Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions (ECCE-MAD),
    arXiv:2205.09680; Gupta et al. (2021), arXiv:2006.12800.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> ks_test(data.test_labels, data.test_proba).p_value < 0.001
    True
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return _run("KS test", claims, as_notion(notion), _ks)


def kuiper_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Test for miscalibration in any range of scores (Kuiper's test).

    Parameters
    ----------
    y_true, y_prob, notion, inputs, sample_weight, classes
        As in `mean_test`. By default, the confidence is tested.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.

    See Also
    --------
    ks_test : Test of cumulative sums that begin at the lowest score.

    Notes
    -----
    .. math:: R = \frac{\max_s S(s) - \min_s S(s)}{\sqrt{\sum_i f_i (1 - f_i)}}

    with S of `ks_test`, including S = 0 at the start. Under calibration, R converges to the range
    of a Brownian motion. With small counts, the p-value is computed from draws, as in `ks_test`.
    The cost is O(n log n).

    References
    ----------
    Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions (ECCE-R),
    arXiv:2205.09680; Feller (1951), distribution of the range, doi:10.1214/aoms/1177729589.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> kuiper_test(data.test_labels, data.test_proba).p_value < 0.001
    True
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return _run("Kuiper's test", claims, as_notion(notion), _kuiper)


def _run(
    test: str, claims: Claims, notion: Notion, function: Callable[[Claim], _Outcome]
) -> CalibrationTestResult:
    """Test each claim that has rows and combine the p-values by Bonferroni's correction."""
    outcomes = [function(claim) for claim in claims if claim.weight.any()]
    n_draws = max(_LEAST_DRAWS, _DRAWS_PER_CLAIM * len(outcomes)) - 1
    outcomes = [_redrawn(outcome, len(outcomes), n_draws) for outcome in outcomes]
    worst = min(outcomes, key=lambda outcome: outcome.p_value)
    several = f", {len(outcomes)} claims (Bonferroni)" if len(outcomes) > 1 else ""
    return CalibrationTestResult(
        test=f"{test}, {notion.name}{several}",
        statistic=worst.statistic,
        p_value=min(1.0, len(outcomes) * worst.p_value),
        null=f"the predictions are calibrated ({notion.name})",
        guarantee=worst.guarantee,
        n_samples=claims.n_rows,
        n_resamples=n_draws if worst.guarantee == "exact" else None,
    )


def _redrawn(outcome: _Outcome, n_claims: int, n_draws: int) -> _Outcome:
    """Replace the p-value by a p-value from simulated outcomes if counts are small.

    A corrected p-value of 1 is kept, because draws would not change the decision.
    """
    if outcome.draw is None or outcome.p_value * n_claims >= 1.0:
        return outcome
    p_value = monte_carlo_p_value(outcome.statistic, outcome.draw(n_draws))
    return _Outcome(outcome.statistic, p_value, "exact")


def _has_few(claim: Claim, factor: FloatArray | float = 1.0) -> bool:
    """Return whether the normal limit of a sum of ``factor * outcome`` is inaccurate.

    With equal weights and factors, the limit is inaccurate if the variance of the number of
    outcomes is below 20.
    """
    squares = squared_weights(claim) * factor**2
    variance = claim.score * (1.0 - claim.score)
    total = float(squares @ variance)
    # total^2 / sum(squares^2 * variance) is the variance of the count if all squares are equal. A
    # cell of scores represents all rows that were counted in the cell.
    rows = np.ones(len(squares)) if claim.ends is None else np.maximum(claim.weight, 1.0)
    return total > 0.0 and total**2 < FEW_COUNTS * float(squares**2 @ (variance / rows))


def _spread(claim: Claim, factor: FloatArray | float = 1.0) -> float:
    """Compute the standard deviation of the weighted sum of ``factor * outcome`` under calibration.

    A row has one label, regardless of its weight, so weights enter squared.
    """
    variance = squared_weights(claim) @ (factor**2 * claim.score * (1.0 - claim.score))
    return float(np.sqrt(variance))


def _in_spreads(excess: float, spread: float) -> float:
    """Express an excess in standard deviations.

    The result is infinite if a prediction with probability 0 or 1 was wrong.
    """
    if spread > 0:
        return float(abs(excess) / spread)
    return np.inf if abs(excess) > 0 else 0.0


def _mean(claim: Claim) -> _Outcome:
    excess = float(claim.weight @ (claim.outcome - claim.score))
    spread = _spread(claim)
    z = _in_spreads(excess, spread)
    if claim.is_weighted or claim.ends is not None:

        def draw(n_draws: int) -> FloatArray:
            draws = NullDraws.of_claim(claim, n_draws)
            return np.abs(draws.sums(np.ones(len(draws.score)))) / spread

        return _of_limit(claim, z, float(2 * ndtr(-z)), draw)
    return _Outcome(z, _count_p_value(claim), "finite-sample")


def _count_p_value(claim: Claim) -> float:
    """Return the two-sided p-value of the number of outcomes if all weights are equal.

    The number has a Poisson-binomial distribution, so the p-value is exact.
    """
    present = claim.weight > 0
    law = poisson_binomial(claim.score[present])
    hits = int(claim.outcome[present].sum())
    return min(1.0, 2.0 * float(min(law[: hits + 1].sum(), law[hits:].sum())))


def _spiegelhalter(claim: Claim) -> _Outcome:
    factor = 1.0 - 2.0 * claim.score
    excess = float(claim.weight @ ((claim.outcome - claim.score) * factor))
    spread = _spread(claim, factor)
    z = _in_spreads(excess, spread)

    def draw(n_draws: int) -> FloatArray:
        draws = NullDraws.of_claim(claim, n_draws)
        return np.abs(draws.sums(1.0 - 2.0 * draws.score)) / spread

    return _of_limit(claim, z, float(2 * ndtr(-z)), draw, factor)


def _of_limit(
    claim: Claim,
    statistic: float,
    p_value: float,
    draw: Callable[[int], FloatArray],
    factor: FloatArray | float = 1.0,
) -> _Outcome:
    """Return the p-value of the limit distribution. For small counts, attach ``draw``."""
    if not _has_few(claim, factor):
        return _Outcome(statistic, p_value)
    # Chunked data have cells of scores, so outcomes cannot be drawn for rows.
    if claim.ends is not None:
        return _Outcome(statistic, p_value, "heuristic")
    return _Outcome(statistic, p_value, draw=draw)


def _hosmer_lemeshow(claim: Claim, *, n_bins: int, n_fitted: int) -> _Outcome:
    if claim.ends is None:  # multiplying all weights by a constant must not change the groups
        claim = replace(claim, weight=effective_weights(claim.weight))
    rows, expected, observed, squares = _group_sums(claim, n_bins)
    rate, effective = expected / rows, rows**2 / squares
    variance = squares * rate * (1 - rate)
    pairs = zip(observed - expected, np.sqrt(variance), strict=True)
    parts = [_in_spreads(excess, spread) for excess, spread in pairs]
    statistic = float(np.sum(np.square(parts)))
    # On training rows, the limit distribution has two fewer degrees of freedom (Hosmer & Lemeshow
    # 1980).
    n_free = max(1, len(rows) - n_fitted)
    fewest = (effective * np.minimum(rate, 1 - rate)).min()
    guarantee = "heuristic" if fewest < _FEW_EXPECTED else "asymptotic"
    return _Outcome(statistic, float(chdtrc(n_free, statistic)), guarantee)


def _group_sums(claim: Claim, n_bins: int) -> FloatArray:
    """Return weight, score, outcome and squared weight of quantile bins that are not empty."""
    table = bin_table(_claims_from(claim), n_bins=n_bins, strategy="quantile")
    place = table.bins.assign(claim.score, 0)
    squares = np.bincount(place, squared_weights(claim), table.n_bins)
    sums = np.array([table.weight[0], table.score[0], table.outcome[0], squares])
    return sums[:, table.weight[0] > 0]


def _claims_from(claim: Claim) -> Claims:
    """Wrap one claim as `Claims`, the type that can be binned."""

    def select(rows: slice) -> ClaimBlock:
        return ClaimBlock(claim.score[rows, None], None, np.flatnonzero(claim.outcome[rows]))

    return Claims(len(claim.score), 1, 1, claim.weight, select, 1)


def _ks(claim: Claim) -> _Outcome:
    spread = _spread(claim)
    distance = _in_spreads(ks_path(claim).error * claim.weight.sum(), spread)

    def draw(n_draws: int) -> FloatArray:
        low, high = NullDraws.of_claim(claim, n_draws).path_ends()
        return np.maximum(-low, high) / spread

    return _of_limit(claim, distance, distance_tail(distance), draw)


def _kuiper(claim: Claim) -> _Outcome:
    path = np.append(0.0, ks_path(claim).excess)
    spread = _spread(claim)
    width = _in_spreads(float(np.ptp(path)) * claim.weight.sum(), spread)

    def draw(n_draws: int) -> FloatArray:
        low, high = NullDraws.of_claim(claim, n_draws).path_ends()
        return (high - low) / spread

    return _of_limit(claim, width, range_tail(width), draw)


def distance_tail(x: float) -> float:
    """Return the probability that a Brownian motion leaves [-x, x] before time 1.

    >>> round(distance_tail(2.2414), 4)
    0.05
    """
    if x < 0.1:  # the series converges slowly there, and its sum is 1 up to round-off
        return 1.0
    if np.isinf(x):
        return 0.0
    k = np.arange(100)
    # By the reflection principle, each side contributes 2 (P(W > x) - P(W > 3x) + ...). For x >=
    # 0.1, all terms after the first 100 are below round-off.
    return float(np.clip(4 * ((-1.0) ** k @ ndtr(-(2 * k + 1) * x)), 0.0, 1.0))


def range_tail(x: float) -> float:
    """Return the probability that the range of a Brownian motion up to time 1 exceeds x.

    >>> round(range_tail(2.4977), 3)
    0.05
    """
    if x < 0.2:  # the series converges slowly there, and its sum is 1 up to round-off
        return 1.0
    if np.isinf(x):
        return 0.0
    k = np.arange(1, 101)
    return float(np.clip(8 * ((-1.0) ** (k - 1) * k @ ndtr(-k * x)), 0.0, 1.0))
