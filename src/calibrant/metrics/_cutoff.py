"""What moving a decision threshold can gain: the largest error over all intervals of scores."""

from __future__ import annotations

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics._ks import path_parts
from calibrant.notions import Claim, Notion, as_notion, claims_of


def cutoff_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Cutoff calibration error: the largest mean residual of any interval of scores,

    .. math:: \max_I \frac1n \Big| \sum_{i:\, f_i \in I} (o_i - f_i) \Big| ,

    which is the highest minus the lowest point of the graph whose largest distance from zero is
    `ks_error` (Kuiper's statistic). For a notion of several claims, their mean with the weights of
    `expected_calibration_error`.

    Notes
    -----
    In words: with benefits scaled to [0, 1], moving the threshold of a decision "act where the
    score is at least t" to any other place gains at most so much a row. By chance it is of the
    order :math:`1 / \sqrt n`; `calibrant.inference.consistency_test` gives a p-value,
    `calibrant.inference.cutoff_interval` a bound for all rows like these.

    O(n log n) time and O(n) memory per claim.

    References
    ----------
    Rossellini et al. (2025), arXiv:2502.19851.

    Examples
    --------
    >>> cutoff_calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], notion="class-1")
    0.125
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(claim_cutoff)


def claim_cutoff(claim: Claim) -> float:
    """The cutoff error of one claim: highest minus lowest point of the graph, which begins at
    zero.
    """
    ends = [(part.excess.min(), part.excess.max()) for part in path_parts(claim)]
    return float(max(0.0, *(high for _, high in ends)) - min(0.0, *(low for low, _ in ends)))
