"""What recalibration is worth: the gain in a proper score on rows that the map has not seen.

One result, `Gain`, whose interval says what it is an interval of. `paired_gain` is for a map as it
is fitted (`compare`, `AutoCalibration`, the report), `calibration_gain` for the best map that there
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from calibrant._crossfit.scores import AnyCalibrator, PairedScores, paired_scores
from calibrant._kernels.simplex import effective_weights
from calibrant._output.results import AsText
from calibrant._typing import FloatArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import LOGITS_HINT, check_predictions
from calibrant.inference._results import check_level

INTERVALS = {
    "paired": "the gain of this map on new rows: paired over rows that no fit has seen",
    "nadeau-bengio": (
        "the gain of a map fitted on as many rows: paired over rows, and widened because the maps "
        "of the folds share rows"
    ),
    "jackknife": (
        "the calibration error, the gain of the best map: paired over rows, and longer upwards by "
        "what estimating the map costs"
    ),
}
"""What an interval of a gain is one of, and how it is made, by its name."""

_NAMES = {"log_loss": "log-loss", "brier_score": "Brier score"}


@dataclass(frozen=True)
class Gain(AsText):
    r"""How much a proper score falls by calibration, on rows that the map has not seen.

    With :math:`d_i` the score of row i as it is minus the score as calibrated by a map that has not
    seen it, the gain is their mean. There are three intervals, named by ``interval``, as there are
    three things to know:

    - ``"paired"``, of one map and rows that it was not fitted on, what this map gains:
      :math:`\bar d \pm t_{n-1} s / \sqrt n` with s the standard deviation of the d.
    - ``"nadeau-bengio"``, of cross-fitting, what a map fitted on as many rows as a fold leaves
      gains: the same times :math:`\sqrt{1 + J\, n_\text{judge} / n_\text{fit}}` (1.5 for five
      folds), for the maps being fitted on data that overlap, and on the rows that judge the other
      maps. Of `compare`, `AutoCalibration` and the report: is this method worth using?
    - ``"jackknife"``, the calibration error, what the best map gains: see `calibration_gain`. How
      miscalibrated are these scores?

    The first two reach at least 1/n to both sides: where maps came out as the identity nothing
    varies, and still a row that did not come up could have changed the mean by as much.

    Attributes
    ----------
    score : {"log_loss", "brier_score"}
    gain : float
        Mean of score before minus score after, positive where recalibration helps.
    low, high : float
        The interval.
    level : float
    before, after : float
        Mean scores.
    guarantee : str
    interval : {"nadeau-bengio", "paired", "jackknife"}
        What the interval is one of.
    standard_error : float
        Of the gain, widened as the interval is.
    excess : float or None
        What estimating the map from all rows costs; of a jackknife interval only.
    p_value : float
        One-sided, of the null hypothesis.
    n_samples : float
        Number of rows; with weights, the effective number (Kish).
    null : str

    Notes
    -----
    Where a few confident errors decide the log-loss, one row in a hundred, intervals of 100 and 500
    rows miss in an eighth to a quarter of the cases, nearly always because the upper end is too
    low: "helps" stays as rare as it should be.

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
        """The gain in standard errors; 0.0 where it does not vary."""
        return self.gain / self.standard_error if self.standard_error else 0.0

    @property
    def judgement(self) -> str:
        """What the interval says about calibration: "good", "bad", or "mixed" where it holds 0."""
        if self.low > 0:
            return "good"
        return "bad" if self.high < 0 else "mixed"

    @property
    def numbers(self) -> str:
        """The scores and the gain in words."""
        return (
            f"{_NAMES.get(self.score, self.score)} {self.before:z.4f} before and {self.after:z.4f} "
            f"after, a gain of {self.gain:z.4f} ({self.level:.0%} interval {self.low:z.4f} to "
            f"{self.high:z.4f})"
        )

    def sentence(self, method: str | None = None) -> str:
        """The judgement in words, with the numbers; ``method`` is what the map is called."""
        named = "" if method is None else f" by {method}"
        said = {
            "good": f"Calibration{named} helps",
            "bad": f"Calibration{named} harms, leave the probabilities as they are",
            "mixed": f"Whether calibration{named} helps is not certain with these rows",
        }
        return f"{said[self.judgement]}: {self.numbers}."

    def to_dict(self) -> dict[str, Any]:
        """The fields and the statistic as plain values."""
        return {**asdict(self), "statistic": self.statistic}

    def __str__(self) -> str:
        return (
            f"{self.score} {self.before:.5g} -> {self.after:.5g}, gain {self.gain:.4g}, "
            f"{self.level:.0%} interval [{self.low:.4g}, {self.high:.4g}] of "
            f"{INTERVALS[self.interval]} ({self.guarantee})"
        )


@dataclass(frozen=True, eq=False)
class LossMoments:
    """Moments of the losses of several forecasts of the same rows, which can be added up.

    ``cross`` holds the cross products of the deviations of ``loss_0 - loss_j`` from their means, so
    that neither large losses nor large differences lose digits (Chan, Golub & LeVeque 1979).
    """

    total: float
    mean: FloatArray
    cross: FloatArray
    squares: float
    """Sum of the squared weights."""

    @classmethod
    def of_rows(cls, losses: FloatArray, weight: FloatArray) -> LossMoments:
        """The moments of losses (M, n) of rows with weights."""
        total = float(weight.sum())
        if not total:
            return cls(0.0, np.zeros(len(losses)), np.zeros((len(losses), len(losses))), 0.0)
        gains = losses[0] - losses
        gains = gains - (gains @ weight / total)[:, None]
        cross = (gains * weight) @ gains.T
        return cls(total, losses @ weight / total, cross, float(weight @ weight))

    @property
    def n_effective(self) -> float:
        """The effective number of rows (Kish)."""
        return self.total**2 / self.squares if self.squares else 0.0

    @property
    def variances(self) -> FloatArray:
        """Variances of ``loss_0 - loss_j`` of a row, from as many rows as are effective."""
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
    ) -> Gain:
        """What forecast ``after`` gains over forecast ``before``.

        ``ratios`` are those of held-out to fitted weight, one per fold, for rows that were
        predicted out of fold; none for rows of a separate test set.
        """
        own = self.cross
        square = own[before, before] + own[after, after] - 2 * own[before, after]
        rows, means = self.n_effective, (float(self.mean[before]), float(self.mean[after]))
        variance = max(square, 0.0) / self.total
        error = float(np.sqrt(variance / (rows - 1))) if rows > 1 else 0.0
        gain, is_folded = means[0] - means[1], len(ratios) > 0
        error *= _overlap(ratios)
        return gain_of(rows, means, gain, error, score=score, level=level, is_folded=is_folded)


def paired_gain(
    before: FloatArray,
    after: FloatArray,
    weight: FloatArray,
    ratios: Sequence[float] | FloatArray = (),
    *,
    score: str,
    level: float = 0.95,
) -> Gain:
    """What losses ``after`` gain over losses ``before`` of the same rows."""
    moments = LossMoments.of_rows(np.stack([before, after]), weight)
    return moments.gain(ratios=ratios, score=score, level=level)


def gain_of(
    total: float,
    means: tuple[float, float],
    gain: float,
    error: float,
    *,
    score: str,
    level: float = 0.95,
    is_folded: bool,
) -> Gain:
    """The gain of so many rows by their mean scores before and after, and its standard error."""
    reach = max(_quantile(total, level) * error, 1.0 / total)
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
    """Factor of Nadeau and Bengio on the standard error; 1 if no fits overlap."""
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
    r"""How much a calibrator lowers a proper score, with a paired confidence interval.

    With :math:`g_{-i}` the map fitted on the folds that do not hold row i, and S the score of a
    row, the gain is the mean of :math:`d_i = S(p_i, y_i) - S(g_{-i}(p_i), y_i)`. It estimates, from
    below, the calibration error in the sense of the score, :math:`E[S(p, y) - S(P(y \mid p), y)]`:
    no map gains more than the true one, and a fitted map less. The interval is one of that error.
    With :math:`s = \text{sd}(d) / \sqrt n`, or what it would be with :math:`z^2` (about four) more
    rows whose labels are drawn from p where that is more, J folds and X the excess, which is what
    estimating the map costs, it goes from :math:`\bar d - t s` to

    .. math:: \bar d + t s + \frac{J}{J - 1} X + t^2 \min\Big(X, \frac{s^2}{4 \bar d}\Big) .

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : scores of shape (n, K), or (n,) for class 1 of a binary problem
    calibrator : calibrator, optional
        A clone is fitted for each fold, with ``inputs`` set; a binary calibrator of more than two
        classes is lifted class by class. Any scikit-learn classifier of probabilities will do as
        well. By default `StructuredScaling`.
    score : {"log_loss", "brier_score"}
    inputs : {"proba", "logits", "log_proba"}
        What ``y_prob`` holds.
    cv : int, splitter or iterable of (train, test) rows
        An integer deals rows to folds at random, whatever their order.
    level : float
        Coverage of the interval.
    sample_weight : weights of shape (n,), optional
        How much each row counts. They are scaled to the effective number of rows (Kish).
    classes : labels of the columns, optional
    rng : int, Generator or None
        Decides the folds.
    groups : array of shape (n,), optional
        Rows that belong together, such as those of one patient, are in one fold. The interval still
        counts rows, as if they were independent.

    Returns
    -------
    Gain
        Its interval is the ``"jackknife"`` one; that of `compare` and `AutoCalibration` is of
        another quantity, what a fitted map gains.

    Notes
    -----
    Asymptotic; and it assumes that the family of the calibrator is not penalised and holds the true
    map, else the interval is one of the part of the error that the family can mend: what a penalty
    holds back is not in the excess. The last two terms vanish
    like 1/n. They matter for small gains: the first because fitted maps gain less than the true
    one; the second because :math:`s` grows with the root of the gain, so that a gain that came out
    small by chance comes with too small an :math:`s` (the same interval for the root of the gain,
    squared). X is a grouped jackknife: (J - 1)/J times the sum of the mean divergences (relative
    entropy, squared distance) of the J maps from their mean; q/2n for a regular family of q
    parameters in log-loss.

    Folds are not stratified by label: that would tell the maps the label frequencies of the rows
    that they are judged on. Costs J fits and J predictions of all rows.

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
    """The gain with the interval of the calibration error."""
    total = float(pairs.weight.sum())
    differences = pairs.before - pairs.after
    gain, excess = pairs.mean(differences), max(0.0, pairs.mean(pairs.excess))
    error = _careful_error(pairs, _standard_error(differences, pairs.weight, gain), level)
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


def _careful_error(pairs: PairedScores, error: float, level: float) -> float:
    """The standard error as if z^2 more rows had labels drawn from the scores, where that is more:
    a few rows that are all right say little of what an error costs the maps that they made surer.
    """
    total, more = float(pairs.weight.sum()), float(ndtri((1 + level) / 2)) ** 2
    first, second = map(pairs.mean, pairs.own)
    own = max(0.0, second - first**2) / max(total - 1, 1.0)
    return float(max(error, np.sqrt((total * error**2 + more * own) / (total + more))))


def _quantile(total: float, level: float) -> float:
    """Standard errors to each side of a mean over rows that ``level`` asks for."""
    return float(stdtrit(max(total - 1, 1.0), (1 + level) / 2))


def _p_value(gain: float, error: float, total: float) -> float:
    """One-sided, of no gain."""
    return float(stdtr(max(total - 1, 1.0), -gain / error)) if error > 0 else float(gain <= 0)


def _standard_error(values: FloatArray, weight: FloatArray, mean: float) -> float:
    """Standard error of a mean with weights that sum to the effective number of rows."""
    total = weight.sum()
    if total <= 1:
        return 0.0
    return float(np.sqrt(weight @ (values - mean) ** 2 / (total - 1) / total))
