"""Binning-free calibration error: the Kolmogorov-Smirnov distance of cumulative scores and
outcomes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.binning import distinct_sums
from calibrant.notions import Claim, Claims, Notion, as_notion, claims_of


def ks_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Kolmogorov-Smirnov calibration error.

    The largest distance between the cumulative score and the cumulative outcome,

    .. math:: \max_s \frac1n \Big| \sum_{i:\, f_i \le s} (f_i - o_i) \Big| ,

    taken at the ends of groups of tied scores. For a notion of several claims, their mean with the
    weights of `expected_calibration_error`.

    ``notion="rank-2"`` and ``"within-top-2"`` are the top-2 and within-top-2 errors of the paper.

    Notes
    -----
    O(n log n) time and O(n) memory per claim: scores must be ordered, a memory map is read but its
    top scores are held.

    References
    ----------
    Gupta et al. (2021), Calibration of neural networks using splines, eq. 9 to 11,
    arXiv:2006.12800.

    Examples
    --------
    >>> ks_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], notion="class-1")
    0.05...
    """
    return claims_ks(
        claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)[0]
    )


def claims_ks(claims: Claims) -> float:
    """KS error of claims: the mean over them with the weights v_c."""
    return claims.mean(_claim_error)


def _claim_error(claim: Claim) -> float:
    """The error of `ks_path`, without the rest of it."""
    values, total, hits = distinct_sums(claim.score, claim.outcome, claim.weight)
    excess = np.cumsum(values * total - hits)
    return float(max(excess.max(), -excess.min()) / total.sum())


class KsPath(NamedTuple):
    """Cumulative scores and outcomes of a claim at its distinct scores, each (m,), increasing.

    ``share`` of the rows up to each ``score``; ``excess`` is the cumulative score minus the
    cumulative ``outcome``, both divided by the number of rows.
    """

    share: FloatArray
    score: FloatArray
    outcome: FloatArray
    excess: FloatArray

    @property
    def worst(self) -> int:
        """Where the distance is largest."""
        return int(np.abs(self.excess).argmax())

    @property
    def error(self) -> float:
        """The KS error."""
        return float(np.abs(self.excess[self.worst]))

    def excess_at(self, share: FloatArray) -> FloatArray:
        """The excess at shares of the rows between 0 and 1, linear between distinct scores."""
        return np.interp(share, np.append(0.0, self.share), np.append(0.0, self.excess))


def ks_path(claim: Claim) -> KsPath:
    """The graph whose largest distance from zero is the KS error; a claim without rows has none.

    Rows with the same score are one step: what lies within it would depend on their order. Rows of
    weight zero are no steps. O(n log n).
    """
    values, total, hits = distinct_sums(claim.score, claim.outcome, claim.weight)
    rows = total.sum()
    share, outcome, excess = (
        np.cumsum(part) / rows for part in (total, hits, values * total - hits)
    )
    return KsPath(share, values, outcome, excess)
