"""A confidence band of the calibration curve that holds for all scores together."""

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
    """Confidence band of a calibration curve; call it with scores to get (low, high).

    Attributes
    ----------
    start, stop : arrays of shape (m,)
        Lowest and highest score of each group of rows, in increasing order.
    low, high : arrays of shape (m,)
        ``low[g]`` bounds the curve from below at ``stop[g]`` and above; ``high[g]`` bounds it from
        above at ``start[g]`` and below.
    level : float
        Probability that the band holds the whole curve.
    notion : str
    n_samples : int
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
        """Bounds of the true probability at any scores."""
        at = np.asarray(score, dtype=np.float64)
        low = np.append(0.0, self.low)[np.searchsorted(self.stop, at, side="right")]
        high = np.append(self.high, 1.0)[np.searchsorted(self.start, at, side="left")]
        return low, high

    @property
    def excludes_calibration(self) -> bool:
        """Whether the diagonal leaves the band: calibration is then rejected at 1 - level."""
        return bool((self.low > self.stop).any() or (self.high < self.start).any())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        width = float(np.mean(self.high - self.low))
        verdict = "excludes" if self.excludes_calibration else "does not exclude"
        return (
            f"{self.level:.0%} band of the calibration curve, {self.notion}: {self.n_samples:,} "
            f"rows, mean width {width:.3f}; it {verdict} calibration ({self.guarantee})"
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
    r"""Simultaneous confidence band of the calibration curve :math:`s \mapsto P(o = 1 \mid f = s)`.

    With probability ``level`` the whole curve lies inside the band, for every number of rows. The
    only assumption on the curve is that it does not decrease.

    Rows are divided into m groups of increasing scores. Let :math:`l_{jk}` and :math:`u_{jk}` be
    the limits of Clopper and Pearson for the frequency of the outcome in the groups j to k, at the
    level :math:`1 - 2 (1 - \text{level}) / (m (m + 1))`. The band at s is

    .. math:: \Big[ \max_{j \le k,\, k \text{ below } s} l_{jk} ,\;
        \min_{j \le k,\, j \text{ above } s} u_{jk} \Big] ,

    where "below" means that all scores of the group are at most s, and "above" at least s.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
    notion : str
        A notion of one claim: "confidence", "class-<k>", "rank-<r>", "at-most-<k>", ...
    level : float
    n_groups : int
        Groups of nearly equal size; equal scores stay together.
    inputs : {"proba", "logits", "log_proba"}
    sample_weight : weights of shape (n,), optional
        Only equal weights are accepted, and rows of weight 0 are left out.
    classes : labels of the columns, optional

    Returns
    -------
    CalibrationBand

    Notes
    -----
    The mean probability of the groups j to k is at most the probability at any s above them,
    because the curve does not decrease; so a lower limit of this mean is one of the curve at s, and
    likewise from above. All intervals hold together by Bonferroni's inequality. Outcomes of a group
    need not have equal probabilities (Hoeffding 1956). Rows must be independent, and not those that
    the model was fitted on. O(n log n + m^2).

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke & Ziegel (2023), Honest calibration assessment for binary
    outcome predictions, Biometrika 110, arXiv:2203.04065; Yang & Barber (2019), Contraction and
    uniform convergence of isotonic regression, arXiv:1706.01852; Hoeffding (1956),
    doi:10.1214/aoms/1177728178.

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
        y_true, y_prob, sample_weight, classes, inputs, only_equal="a calibration band"
    )
    chosen = as_notion(notion).bound(names)
    claim = only_claim(chosen, chosen.claims(proba, y, weight))
    return band_of_claim(claim, level, n_groups, chosen.name)


def band_of_claim(claim: Claim, level: float, n_groups: int, name: str) -> CalibrationBand:
    """The band of a claim whose rows have the weight one."""
    order = np.argsort(claim.score, kind="stable")
    score = claim.score[order]
    last = _group_ends(score, n_groups)
    first = np.append(0, last[:-1] + 1)
    hits = np.append(0.0, np.cumsum(claim.outcome[order].astype(np.float64))[last])
    counts = np.append(0.0, last + 1.0)
    j, k = np.triu_indices(len(last))
    alpha = (1 - level) / len(j)
    lows, highs = clopper_pearson(hits[k + 1] - hits[j], counts[k + 1] - counts[j], alpha)
    low, high = np.zeros(len(last)), np.ones(len(last))
    np.maximum.at(low, k, lows)
    np.minimum.at(high, j, highs)
    return CalibrationBand(
        start=score[first],
        stop=score[last],
        low=np.maximum.accumulate(low),
        high=np.minimum.accumulate(high[::-1])[::-1],
        level=level,
        notion=name,
        n_samples=len(score),
    )


def _group_ends(score: FloatArray, n_groups: int) -> Any:
    """Last row of each group of ordered scores; equal scores stay together."""
    n_rows = len(score)
    wanted = np.arange(1, n_groups + 1) * n_rows // n_groups - 1
    # The last row that is tied with the row at which a group should end.
    tied = np.searchsorted(score, score[wanted[wanted >= 0]], side="right") - 1
    return np.unique(tied)
