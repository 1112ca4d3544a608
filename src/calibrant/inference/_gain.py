"""What recalibration is worth: the gain in a proper score on rows that the map has not seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from calibrant._crossfit.scores import Calibrator, PairedScores, paired_scores
from calibrant._typing import FloatArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant.inference._results import check_level


@dataclass(frozen=True)
class CalibrationGain:
    """Gain of a calibrator in a proper score, cross-fitted, with a paired confidence interval.

    Attributes
    ----------
    score : {"log_loss", "brier_score"}
    gain : float
        Mean of score before minus score after, positive where recalibration helps.
    low, high : float
        Interval of the calibration error, the gain of the true map.
    level : float
    standard_error : float
        Of the gain of the fitted maps.
    excess : float
        What estimating the map from all rows costs.
    before, after : float
        Mean scores.
    p_value : float
        One-sided, of the null hypothesis.
    null : str
    guarantee : str
    n_samples : float
        Sum of the weights.
    """

    score: str
    gain: float
    low: float
    high: float
    level: float
    standard_error: float
    excess: float
    before: float
    after: float
    p_value: float
    n_samples: float
    null: str = "recalibration does not lower the expected score"
    guarantee: str = "asymptotic"

    @property
    def statistic(self) -> float:
        """The gain in standard errors; 0.0 where it does not vary."""
        return self.gain / self.standard_error if self.standard_error > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields and the statistic as plain values."""
        return {**asdict(self), "statistic": self.statistic}

    def __str__(self) -> str:
        return (
            f"{self.score} {self.before:.5g} -> {self.after:.5g}, gain {self.gain:.4g}, "
            f"{self.level:.0%} interval [{self.low:.4g}, {self.high:.4g}] ({self.guarantee})"
        )


def calibration_gain(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    calibrator: Calibrator | None = None,
    *,
    score: str = "log_loss",
    inputs: str = "proba",
    cv: int = 5,
    level: float = 0.95,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    rng: Rng = None,
) -> CalibrationGain:
    r"""How much a calibrator lowers a proper score, with a paired confidence interval.

    With :math:`g_{-i}` the map fitted on the folds that do not hold row i, and S the score of a
    row, the gain is the mean of :math:`d_i = S(p_i, y_i) - S(g_{-i}(p_i), y_i)`. It estimates, from
    below, the calibration error in the sense of the score, :math:`E[S(p, y) - S(P(y \mid p), y)]`:
    no map gains more than the true one, and a fitted map less. The interval is one of that error.
    With :math:`s = \text{sd}(d) / \sqrt n`, J folds and X the excess, which is what estimating the
    map costs, it goes from :math:`\bar d - t s` to

    .. math:: \bar d + t s + \frac{J}{J - 1} X + t^2 \min\Big(X, \frac{s^2}{4 \bar d}\Big) .

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : scores of shape (n, K), or (n,) for class 1 of a binary problem
    calibrator : calibrator, optional
        Anything with ``fit(X, y, sample_weight)`` and ``predict_proba(X)``; a clone is fitted for
        each fold. By default `StructuredScaling`.
    score : {"log_loss", "brier_score"}
    inputs : {"proba", "logits"}
        What ``y_prob`` holds; the calibrator gets it as it is and must be told the same.
    cv : int
        Folds, at random.
    level : float
        Coverage of the interval.
    sample_weight : weights of shape (n,), optional
        Numbers of copies, in the standard error too.
    classes : labels of the columns, optional
    rng : int, Generator or None
        Decides the folds.

    Returns
    -------
    CalibrationGain

    Notes
    -----
    Asymptotic; and it assumes that the family of the calibrator holds the true map, else the
    interval is one of the part of the error that the family can mend. The last two terms vanish
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
    pairs = paired_scores(
        y_true,
        y_prob,
        calibrator,
        score=score,
        inputs=inputs,
        cv=cv,
        sample_weight=sample_weight,
        classes=classes,
        rng=rng,
    )
    return _gain(pairs, score, level)


def _gain(pairs: PairedScores, score: str, level: float) -> CalibrationGain:
    total = float(pairs.weight.sum())
    differences = pairs.before - pairs.after
    gain, excess = pairs.mean(differences), max(0.0, pairs.mean(pairs.excess))
    error = _standard_error(differences, pairs.weight, gain)
    freedom = max(total - 1, 1.0)
    quantile = float(stdtrit(freedom, (1 + level) / 2))
    growth = min(excess, error**2 / (4 * gain)) if gain > 0 else excess
    return CalibrationGain(
        score=score,
        gain=gain,
        low=gain - quantile * error,
        high=gain
        + quantile * error
        + excess * pairs.n_folds / (pairs.n_folds - 1)
        + quantile**2 * growth,
        level=level,
        standard_error=error,
        excess=excess,
        before=pairs.mean(pairs.before),
        after=pairs.mean(pairs.after),
        p_value=float(stdtr(freedom, -gain / error)) if error > 0 else float(gain <= 0),
        n_samples=total,
    )


def _standard_error(values: FloatArray, weight: FloatArray, mean: float) -> float:
    """Standard error of a weighted mean; weights are numbers of copies."""
    total = weight.sum()
    if total <= 1:
        return 0.0
    return float(np.sqrt(weight @ (values - mean) ** 2 / (total - 1) / total))
