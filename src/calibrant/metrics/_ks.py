"""Binning-free calibration error: the Kolmogorov-Smirnov distance of cumulative scores and
outcomes.
"""

from __future__ import annotations

import numpy as np

from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_predictions
from calibrant.notions import Claim, Claims, ClassNotion, Notion, as_notion


def ks_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
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
    chosen = as_notion(notion)
    sum_to_one = not isinstance(chosen, ClassNotion)
    proba, y, weight, _ = check_predictions(
        y_true, y_prob, sample_weight, classes, sum_to_one=sum_to_one
    )
    return claims_ks(chosen.claims(proba, y, weight))


def claims_ks(claims: Claims) -> float:
    """KS error of claims: the mean over them with the weights v_c."""
    # A claim's KS distance times its rows; the rows of a quantity add up to all rows.
    total = sum(_largest_excursion(claim) for claim in claims)
    return float(total / (claims.weight.sum() * claims.n_quantities))


def _largest_excursion(claim: Claim) -> float:
    if not claim.score.size:
        return 0.0
    order = np.argsort(claim.score)
    score = claim.score[order]
    walk = np.cumsum((score - claim.outcome[order]) * claim.weight[order])
    ends = np.append(score[1:] != score[:-1], True)
    return float(np.abs(walk[ends]).max())
