"""Improvement of a proper score by recalibration, on held-out rows.

All functions return a `Gain`. The attribute ``interval`` of a `Gain` names the quantity that the
interval estimates. `paired_gain` evaluates a fitted calibrator (`compare`, `AutoCalibration`, the
report). `calibration_gain` estimates the improvement by the best possible calibrator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from calibrant._crossfit.scores import AnyCalibrator, PairedScores, paired_scores
from calibrant._kernels.simplex import effective_weights
from calibrant._output.numbers import format_number
from calibrant._output.results import AsText
from calibrant._typing import FloatArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_predictions
from calibrant.inference._results import check_level

INTERVALS = {
    "paired": "the change by this calibrator on new rows (paired over held-out rows)",
    "nadeau-bengio": (
        "the change by a calibrator fitted on as many rows (paired over rows, widened because the "
        "training rows of the folds overlap)"
    ),
    "jackknife": (
        "the calibration error, which is the improvement by the best calibrator (paired over rows, "
        "with a higher upper end to account for the estimation of the calibrator)"
    ),
}
"""The quantity that an interval estimates and its method, by the name of the interval."""

_NAMES = {"log_loss": "log-loss", "brier_score": "Brier score", "decision_cost": "mean cost"}


@dataclass(frozen=True)
class Gain(AsText):
    r"""Improvement of a proper score by calibration, on held-out rows.

    The gain is the mean score before minus the mean score after calibration. A positive gain is an
    improvement. `calibration_gain` returns a `Gain`, and `AutoCalibration` stores a `Gain` as
    ``gain_``.

    Attributes
    ----------
    score : {"log_loss", "brier_score", "decision_cost"}
        Name of the score.
    gain : float
        Mean score before minus mean score after calibration. A positive gain is an improvement.
    low, high : float
        Lower and upper end of the confidence interval.
    level : float
        Nominal coverage of the interval.
    before, after : float
        Mean scores before and after calibration. Lower is better.
    guarantee : str
        "asymptotic", because the level holds only for many rows.
    interval : {"nadeau-bengio", "paired", "jackknife"}
        The quantity that the interval estimates, see Notes.
    standard_error : float
        Standard error of the gain, widened in the same way as the interval.
    excess : float or None
        Increase of the score because the calibrator is estimated. The value is None unless
        ``interval`` is "jackknife".
    p_value : float
        One-sided p-value of the null hypothesis.
    n_samples : float
        Number of rows, or the effective number of rows (Kish) with weights.
    null : str
        The null hypothesis.

    See Also
    --------
    calibration_gain : Estimate the calibration error in a proper score.
    calibrant.compare : Compare calibrators on the same data.

    Notes
    -----
    Let :math:`d_i` be the score of row i without calibration minus its score with a calibrator that
    was fitted without this row. The gain is the mean :math:`\bar d`. The three intervals answer
    different questions:

    - ``"paired"``: How much does this calibrator improve new rows? The calibrator was fitted on
      other rows. The interval is :math:`\bar d \pm t_{n-1} s / \sqrt n`, where s is the standard
      deviation of the :math:`d_i`.
    - ``"nadeau-bengio"``: How much does this method improve new rows, if it is fitted on as many
      rows as in the training part of a fold? The scores are out-of-fold. The interval is the paired
      interval times
      :math:`\sqrt{1 + J\, n_\text{test} / n_\text{fit}}` (1.5 for five folds), because the training
      rows of the J folds overlap. `compare`, `AutoCalibration` and the report use this interval.
    - ``"jackknife"``: How large is the calibration error, which is the improvement by the best
      calibrator? See `calibration_gain`.

    The first two intervals extend at least 1/n to both sides. For costs, the minimum is the range
    of the costs divided by n. For example, the :math:`d_i` do not vary if all calibrators are the
    identity. A row that is not in the sample could still change the mean by this amount.

    If a few confident errors (one row in a hundred) determine the log-loss, intervals are too
    short. For 100 to 500 rows, 12% to 25% of the intervals miss the true gain. In nearly all of
    these cases, the upper end is too low, so false reports of an improvement remain rare.

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error, doi:10.1023/A:1024068626366.
    """

    score: str
    gain: float
    low: float
    high: float
    level: float
    before: float
    after: float
    guarantee: str = "asymptotic"
    interval: str = "nadeau-bengio"
    standard_error: float | None = None
    excess: float | None = None
    p_value: float | None = None
    n_samples: float | None = None
    null: str = "recalibration does not lower the expected score"

    @property
    def statistic(self) -> float:
        """The gain in standard errors, or 0.0 if the standard error is 0."""
        return self.gain / self.standard_error if self.standard_error else 0.0

    @property
    def conclusion(self) -> str:
        """Conclusion from the interval.

        "good" if the interval is above 0, "bad" if the interval is below 0, and "mixed" otherwise.
        """
        if self.low > 0:
            return "good"
        return "bad" if self.high < 0 else "mixed"

    @property
    def numbers(self) -> str:
        """Text with the scores before and after calibration, the gain and its interval."""
        before, after = format_number(self.before), format_number(self.after)
        change, low, high = "a reduction", self.low, self.high
        if self.gain < 0:
            change, low, high = "an increase", -self.high, -self.low
        return (
            f"{self._score_name} {before} before and {after} after, {change} of "
            f"{format_number(abs(self.gain))} ({self.level:.0%} CI {format_number(low)} to "
            f"{format_number(high)})"
        )

    @property
    def _score_name(self) -> str:
        return _NAMES.get(self.score, self.score)

    def sentence(self, method: str | None = None) -> str:
        """State the finding and the numbers. ``method`` names the calibrator."""
        name, suffix = self._score_name, "" if method is None else f" by {method}"
        findings = {
            "good": f"Calibration{suffix} helps",
            "bad": f"Calibration{suffix} increases the {name}, so keep the original probabilities",
            "mixed": f"No significant effect of calibration{suffix} was detected",
        }
        return f"{findings[self.conclusion]}: {self.numbers}."

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the statistic as plain values."""
        return {**asdict(self), "statistic": self.statistic}

    def __str__(self) -> str:
        return (
            f"{self.numbers[0].upper()}{self.numbers[1:]}. The interval estimates "
            f"{INTERVALS[self.interval]}. The level of the interval is {self.guarantee}."
        )


@dataclass(frozen=True, eq=False)
class LossMoments:
    """Moments of the losses of several predictions for the same rows.

    ``cross`` contains the cross products of the deviations of ``loss_0 - loss_j`` from their means.
    So neither large losses nor large differences cause a loss of digits (Chan, Golub & LeVeque
    1979).
    """

    total: float
    mean: FloatArray
    cross: FloatArray
    squares: float
    """Sum of the squared weights."""

    @classmethod
    def of_rows(cls, losses: FloatArray, weight: FloatArray) -> LossMoments:
        """Compute the moments of the losses (M, n) of weighted rows."""
        total = float(weight.sum())
        if not total:
            return cls(0.0, np.zeros(len(losses)), np.zeros((len(losses), len(losses))), 0.0)
        gains = losses[0] - losses
        gains = gains - (gains @ weight / total)[:, None]
        cross = (gains * weight) @ gains.T
        return cls(total, losses @ weight / total, cross, float(weight @ weight))

    @property
    def n_effective(self) -> float:
        """Effective number of rows (Kish's formula)."""
        return self.total**2 / self.squares if self.squares else 0.0

    @property
    def variances(self) -> FloatArray:
        """Variance of ``loss_0 - loss_j`` per row, unbiased for the effective number of rows."""
        freedom = max(self.n_effective - 1.0, 1.0)
        return np.diag(self.cross) / self.total * (self.n_effective / freedom)

    def __add__(self, other: LossMoments) -> LossMoments:
        total = self.total + other.total
        if not total:
            return self
        shift = other.mean - self.mean
        gain = shift[0] - shift
        share = other.total / total
        cross = self.cross + other.cross + np.outer(gain, gain) * (self.total * share)
        return LossMoments(total, self.mean + shift * share, cross, self.squares + other.squares)

    def gain(
        self,
        before: int = 0,
        after: int = 1,
        ratios: Sequence[float] | FloatArray = (),
        *,
        score: str,
        level: float = 0.95,
        scale: float = 1.0,
    ) -> Gain:
        """Estimate the gain of the predictions ``after`` over the predictions ``before``.

        ``scale`` is the change of the score of a single row that the interval allows for. For
        out-of-fold predictions, ``ratios`` are the ratios of held-out to training weight, one per
        fold. Pass no ratios for a separate test set.
        """
        cross = self.cross
        square = cross[before, before] + cross[after, after] - 2 * cross[before, after]
        rows, means = self.n_effective, (float(self.mean[before]), float(self.mean[after]))
        variance = max(square, 0.0) / self.total
        error = float(np.sqrt(variance / (rows - 1))) if rows > 1 else 0.0
        gain, is_folded = means[0] - means[1], len(ratios) > 0
        error *= _overlap(ratios)
        return gain_of(
            rows, means, gain, error, score=score, level=level, is_folded=is_folded, scale=scale
        )


def paired_gain(
    before: FloatArray,
    after: FloatArray,
    weight: FloatArray,
    ratios: Sequence[float] | FloatArray = (),
    *,
    score: str,
    level: float = 0.95,
    scale: float = 1.0,
) -> Gain:
    """Estimate the gain of the losses ``after`` over the losses ``before`` of the same rows."""
    moments = LossMoments.of_rows(np.stack([before, after]), weight)
    return moments.gain(ratios=ratios, score=score, level=level, scale=scale)


def gain_of(
    total: float,
    means: tuple[float, float],
    gain: float,
    error: float,
    *,
    score: str,
    level: float = 0.95,
    is_folded: bool,
    scale: float = 1.0,
) -> Gain:
    """Build the gain from the number of rows, the mean scores and the standard error."""
    # The half-width is at least scale/n, because a new row could change the mean by this amount
    # even if the differences do not vary.
    reach = max(_quantile(total, level) * error, scale / total)
    return Gain(
        score=score,
        gain=gain,
        low=gain - reach,
        high=gain + reach,
        level=level,
        before=means[0],
        after=means[1],
        interval="nadeau-bengio" if is_folded else "paired",
        standard_error=error,
        p_value=_p_value(gain, error, total),
        n_samples=total,
    )


def _overlap(ratios: Sequence[float] | FloatArray) -> float:
    """Return the factor of Nadeau and Bengio for the standard error, or 1 without folds."""
    return float(np.sqrt(1.0 + len(ratios) * np.mean(ratios))) if len(ratios) else 1.0


def calibration_gain(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    calibrator: AnyCalibrator | None = None,
    *,
    score: str = "log_loss",
    inputs: str = "proba",
    cv: Any = 5,
    level: float = 0.95,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    rng: Rng = None,
    groups: LabelsLike | None = None,
) -> Gain:
    r"""Estimate the calibration error in a proper score, with a confidence interval.

    The estimate is the reduction of the log-loss or Brier score by a cross-fitted calibrator. A
    larger reduction means more miscalibration. A gain of 0 means that the calibrator does not
    improve the score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted scores. A 1D array contains the scores of class 1 of a binary problem.
    calibrator : calibrator, optional
        A clone is fitted for each fold, with ``inputs`` set. For multiclass problems, a binary
        calibrator is extended one-vs-rest. Any scikit-learn classifier with ``predict_proba`` is
        accepted. The default is `StructuredScaling`.
    score : {"log_loss", "brier_score"}, default "log_loss"
        The proper score.
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
        The gain with a ``"jackknife"`` interval. The intervals of `compare` and `AutoCalibration`
        estimate another quantity, the gain of a fitted calibrator.

    See Also
    --------
    score_decomposition : Split a score into calibration and refinement.
    debiased_interval : Confidence interval of the L2 calibration error.
    calibrant.compare : Compare calibrators on the same data.

    Notes
    -----
    Let :math:`g_{-i}` be the calibrator fitted on the folds without row i, and S the score of a
    row. The gain is the mean of :math:`d_i = S(p_i, y_i) - S(g_{-i}(p_i), y_i)`. The calibration
    error in terms of the score is :math:`E[S(p, y) - S(P(y \mid p), y)]`, the gain of the true
    calibration function. The mean gain of a fitted calibrator is lower than this error. The
    interval estimates this error. The interval extends from :math:`\bar d - t s` to

    .. math:: \bar d + t s + \frac{J}{J - 1} X + t^2 \min\Big(X, \frac{s^2}{4 \bar d}\Big)

    with J folds and the excess X, the increase of the score because the calibrator is estimated.
    :math:`s` is the standard error :math:`\text{sd}(d) / \sqrt n`. If :math:`z^2` (about four)
    additional rows with labels drawn from p increase the standard error, :math:`s` includes these
    rows.

    X is a grouped jackknife: (J - 1)/J times the sum of the mean divergences (relative entropy,
    squared distance) of the J calibrators from their mean. For a regular family of q parameters, X
    is about q/2n in log-loss. The last two terms vanish like 1/n and matter for small gains. The
    first of these terms accounts for fitted calibrators, which gain less than the true function.
    The second term accounts for :math:`s`, which grows with the square root of the gain. If
    sampling noise makes the gain too small, s is also too small.

    The interval is asymptotic. The interval assumes an unpenalized family of calibrators that
    contains the true calibration function. Otherwise, the interval refers to the part of the error
    that the family can correct. The excess does not include the effect of a penalty.

    Folds are not stratified by label, because stratification would give the calibrators the label
    frequencies of their test rows. The cost is J fits and J predictions of all rows.

    References
    ----------
    Berta, Holzmüller, Jordan & Bach (2025), Rethinking early stopping: refine, then calibrate,
    arXiv:2501.19195 (the proper calibration error by recalibration); Bröcker (2009), Reliability,
    sufficiency, and the decomposition of proper scores, doi:10.1002/qj.456.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(2000, 3, noise=0.5, rng=0)
    >>> result = calibration_gain(data.labels, data.proba, score="brier_score", rng=0)
    >>> 0 < result.low < 0.5**2 / 6 < result.high  # the true calibration error of this family
    True
    """
    check_level(level)
    data = check_predictions(
        y_true, y_prob, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT
    )
    data = data._replace(weight=effective_weights(data.weight))
    pairs = paired_scores(
        data, calibrator, score=score, inputs=inputs, cv=cv, rng=rng, groups=groups
    )
    return _error_gain(pairs, score, level)


def _error_gain(pairs: PairedScores, score: str, level: float) -> Gain:
    """Return the gain with the interval of the calibration error."""
    total = float(pairs.weight.sum())
    differences = pairs.before - pairs.after
    gain, excess = pairs.mean(differences), max(0.0, pairs.mean(pairs.excess))
    error = _corrected_error(pairs, _standard_error(differences, pairs.weight, gain), level)
    quantile = _quantile(total, level)
    growth = min(excess, error**2 / (4 * gain)) if gain > 0 else excess
    cost = excess * pairs.n_folds / (pairs.n_folds - 1) + quantile**2 * growth
    return Gain(
        score=score,
        gain=gain,
        low=gain - quantile * error,
        high=gain + quantile * error + cost,
        level=level,
        before=pairs.mean(pairs.before),
        after=pairs.mean(pairs.after),
        interval="jackknife",
        standard_error=error,
        excess=excess,
        p_value=_p_value(gain, error, total),
        n_samples=total,
    )


def _corrected_error(pairs: PairedScores, error: float, level: float) -> float:
    """Return the standard error, corrected for samples without large errors.

    If z^2 additional rows with labels drawn from the scores increase the standard error, these rows
    are included. Calibrators that were fitted on a few rows, all of them correct, are too
    confident. Without the additional rows, such data would underestimate the cost of an error.
    """
    total, more = float(pairs.weight.sum()), float(ndtri((1 + level) / 2)) ** 2
    first, second = map(pairs.mean, pairs.moments)
    expected = max(0.0, second - first**2) / max(total - 1, 1.0)
    return float(max(error, np.sqrt((total * error**2 + more * expected) / (total + more))))


def _quantile(total: float, level: float) -> float:
    """Return the half-width of an interval with the given level, in standard errors."""
    return float(stdtrit(max(total - 1, 1.0), (1 + level) / 2))


def _p_value(gain: float, error: float, total: float) -> float:
    """Return the one-sided p-value of the hypothesis that there is no gain."""
    return float(stdtr(max(total - 1, 1.0), -gain / error)) if error > 0 else float(gain <= 0)


def _standard_error(values: FloatArray, weight: FloatArray, mean: float) -> float:
    """Compute the standard error of a mean. Weights sum to the effective number of rows."""
    total = weight.sum()
    if total <= 1:
        return 0.0
    return float(np.sqrt(weight @ (values - mean) ** 2 / (total - 1) / total))
