"""Simultaneous confidence band of the calibration curve."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_count
from calibrant.guarantees import clopper_pearson
from calibrant.inference._line import only_claim
from calibrant.inference._results import check_level
from calibrant.inference._rows import check_rows
from calibrant.notions import Claim, Notion, as_notion


@dataclass(frozen=True, repr=False)
class CalibrationBand(ShortRepr, AsText):
    """Confidence band of a calibration curve, returned by `calibration_band`.

    Call the band with scores to get lower and upper bounds of the curve at these scores.

    Attributes
    ----------
    start, stop : arrays of shape (m,)
        Lowest and highest score of each group of rows, in increasing order.
    low, high : arrays of shape (m,)
        ``low[g]`` is a lower bound of the curve at scores from ``stop[g]`` on. ``high[g]`` is an
        upper bound at scores up to ``start[g]``.
    level : float
        Probability that the band contains the whole curve.
    notion : str
        Type of calibration.
    n_samples : int
        Number of rows.
    guarantee : str
        "finite-sample", because the level holds for every number of rows.

    See Also
    --------
    calibration_band : Compute the band.
    """

    start: FloatArray
    stop: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    notion: str
    n_samples: int
    guarantee: str = "finite-sample"

    def __call__(self, score: Any) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of the true probability at the given scores."""
        scores = np.asarray(score, dtype=np.float64)
        low = np.append(0.0, self.low)[np.searchsorted(self.stop, scores, side="right")]
        high = np.append(self.high, 1.0)[np.searchsorted(self.start, scores, side="left")]
        return low, high

    @property
    def excludes_calibration(self) -> bool:
        """Whether the diagonal leaves the band.

        In this case, the hypothesis of calibration is rejected at level 1 - ``level``.
        """
        return bool((self.low > self.stop).any() or (self.high < self.start).any())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        width = float(np.mean(self.high - self.low))
        verdict = "excludes" if self.excludes_calibration else "does not exclude"
        return (
            f"The {self.level:.0%} confidence band of the calibration curve ({self.notion}) "
            f"{verdict} calibration. Mean width {width:.3f}, {self.n_samples:,} rows "
            f"({self.guarantee})."
        )


def calibration_band(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    level: float = 0.95,
    n_groups: int = 100,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationBand:
    r"""Compute a simultaneous confidence band of the calibration curve.

    The calibration curve is :math:`s \mapsto P(o = 1 \mid f = s)`, the probability of the outcome o
    at score s. With probability ``level``, the band contains the whole curve, for every number of
    rows. The only assumption is that the curve does not decrease.

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
        Probability that the band contains the whole curve.
    n_groups : int, default 100
        Number of groups m of nearly equal size. Tied scores stay in the same group.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. All positive weights must be equal. Rows with weight 0 are excluded.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    CalibrationBand
        The band, which is a function of the score.

    See Also
    --------
    calibration_line : Calibration slope and intercept with intervals.
    calibrant.plots.ReliabilityDisplay : Diagram of observed frequencies per bin.

    Notes
    -----
    Rows are divided into m groups of increasing scores. Let :math:`l_{jk}` and :math:`u_{jk}` be
    the limits of Clopper and Pearson for the frequency of the outcome in groups j to k, at level
    :math:`1 - 2 (1 - \text{level}) / (m (m + 1))`. The band at s is

    .. math:: \Big[ \max_{j \le k,\, k \text{ below } s} l_{jk} ,\;
        \min_{j \le k,\, j \text{ above } s} u_{jk} \Big] ,

    where "below" means that all scores of the group are at most s, and "above" means that they are
    at least s.

    Because the curve does not decrease, the mean probability of groups j to k is at most the
    probability at any s above them. A lower limit of this mean is therefore a lower limit of the
    curve at s. The argument for the upper limit is analogous. All intervals hold simultaneously by
    Bonferroni's inequality. Outcomes of a group need not have equal probabilities (Hoeffding 1956).
    Rows must be independent, and the model must not have been fitted on them. The cost is O(n log n
    + m^2).

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023), Biometrika 110, arXiv:2203.04065; Yang &
    Barber (2019), Contraction and uniform convergence of isotonic regression, arXiv:1706.01852;
    Hoeffding (1956), doi:10.1214/aoms/1177728178.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> band = calibration_band(data.test_labels, data.test_proba)
    >>> band.excludes_calibration
    True
    """
    check_level(level)
    check_count(n_groups, "n_groups")
    proba, y, weight, names = check_rows(
        y_true, y_prob, sample_weight, classes, inputs, only_equal="A calibration band"
    )
    kind = as_notion(notion).bound(names)
    claim = only_claim(kind, kind.claims(proba, y, weight))
    return band_of_claim(claim, level, n_groups, kind.name)


def band_of_claim(claim: Claim, level: float, n_groups: int, name: str) -> CalibrationBand:
    """Compute the band of a claim whose rows all have weight one."""
    order = np.argsort(claim.score, kind="stable")
    score = claim.score[order]
    last = _group_ends(score, n_groups)
    start, stop = score[np.append(0, last[:-1] + 1)], score[last]
    hits = np.append(0.0, np.cumsum(claim.outcome[order].astype(np.float64))[last])
    low, high = _monotone_bounds(hits, np.append(0.0, last + 1.0), level)
    return CalibrationBand(start, stop, low, high, level, name, len(score))


def _monotone_bounds(
    hits: FloatArray, counts: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return joint bounds of the frequency in each group, from cumulative hits and counts."""
    n_groups = len(hits) - 1
    j, k = np.triu_indices(n_groups)
    alpha = (1 - level) / len(j)
    lows, highs = clopper_pearson(hits[k + 1] - hits[j], counts[k + 1] - counts[j], alpha)
    # Compute the bounds of all ranges j to k. Running extremes then make the bounds monotone.
    low, high = np.zeros(n_groups), np.ones(n_groups)
    np.maximum.at(low, k, lows)
    np.minimum.at(high, j, highs)
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def _group_ends(score: FloatArray, n_groups: int) -> Any:
    """Return the last row of each group of ordered scores. Tied scores stay in one group."""
    n_rows = len(score)
    nominal = np.arange(1, n_groups + 1) * n_rows // n_groups - 1
    # Move each end to the last row with the same score.
    tied = np.searchsorted(score, score[nominal[nominal >= 0]], side="right") - 1
    return np.unique(tied)
