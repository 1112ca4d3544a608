"""Gaps to a smooth curve: ICI, E50 and E90 of clinical prediction models."""

from __future__ import annotations

import numpy as np

from calibrant._blocks import ROUND_OFF
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

SPAN = 0.75
"""Share of the rows that a point of the curve is fitted on: R's default, used by the paper."""

_POINTS = 101
"""Scores at which the curve is fitted; between them it is linear."""


def integrated_calibration_index(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    span: float = SPAN,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Integrated calibration index (ICI): the mean gap between score and smoothed outcome.

    .. math:: \frac1n \sum_i |f_i - \hat o(f_i)| ,

    :math:`\hat o` a local quadratic regression of the outcome on the score (loess: each point from
    the share ``span`` of the rows that is nearest, with tricube weights), cut to [0, 1]. For a
    notion of several claims, their mean with the weights of `expected_calibration_error`.

    Notes
    -----
    Caveat: a curve fitted to chance has gaps, so that ICI is above 0 for a calibrated model (about
    0.03 at 500 rows), and it depends on the span; compare models on the same rows only. R's loess
    interpolates its curve in another way, so that figures agree to about two digits. The curve is
    fitted at 101 scores, O(101 n) per claim.

    References
    ----------
    Austin & Steyerberg (2019), The integrated calibration index (ICI) and related metrics,
    doi:10.1002/sim.8281; Cleveland & Devlin (1988), doi:10.1080/01621459.1988.10478639.

    Examples
    --------
    >>> from calibrant.datasets import power_family
    >>> data = power_family(10_000, 2.0, rng=3)  # true error 1/6
    >>> round(integrated_calibration_index(data.labels, data.proba, notion="class-1"), 2)
    0.17
    """
    _check_share(span, "span")
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)

    def mean_gap(claim: Claim) -> float:
        return float(np.average(local_gaps(claim, span), weights=claim.weight))

    return claims.mean(mean_gap)


def local_gap_quantile(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    quantile: float = 0.5,
    notion: str | Notion = "confidence",
    span: float = SPAN,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    """Quantile of the gaps of `integrated_calibration_index`: E50 the median, E90 with
    ``quantile=0.9``, and the largest with 1.

    The smallest gap that at least this share of the rows do not exceed. Notes, caveat and reference
    as there; the larger the quantile the more of it is chance, at the ends of the scores above all.

    Examples
    --------
    >>> from calibrant.datasets import power_family
    >>> data = power_family(10_000, 2.0, rng=3)  # true gaps s - s^2, at most 1/4
    >>> options = {"notion": "class-1", "quantile": 0.9}
    >>> round(local_gap_quantile(data.labels, data.proba, **options), 2)
    0.25
    """
    _check_share(span, "span")
    _check_share(quantile, "quantile")
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)

    def quantile_gap(claim: Claim) -> float:
        gaps = local_gaps(claim, span)
        order = np.argsort(gaps)
        reached = np.cumsum(claim.weight[order]) >= quantile * claim.weight.sum() - ROUND_OFF
        return float(gaps[order][reached.argmax()])

    return claims.mean(quantile_gap)


def local_gaps(claim: Claim, span: float = SPAN) -> FloatArray:
    """The distance of every score of a claim from the smoothed outcome there."""
    return np.abs(claim.score - local_rate(claim, claim.score, span))


def local_rate(claim: Claim, at: FloatArray, span: float = SPAN) -> FloatArray:
    """The smoothed outcome of a claim at the scores ``at``, linear between the points of a grid."""
    present = claim.weight > 0
    score, outcome, weight = claim.score[present], claim.outcome[present], claim.weight[present]
    places = np.unique(np.quantile(score, np.linspace(0, 1, _POINTS), method="nearest"))
    fitted = np.array([_fit_point(score, outcome, weight, x, span) for x in places])
    return np.interp(at, places, np.clip(fitted, 0.0, 1.0))


def _fit_point(
    score: FloatArray, outcome: FloatArray, weight: FloatArray, x: float, span: float
) -> float:
    """Local quadratic regression at one score; of least norm where it is not determined."""
    distance = np.abs(score - x)
    order = np.argsort(distance)
    inside = np.searchsorted(np.cumsum(weight[order]), span * weight.sum() - ROUND_OFF)
    reach = distance[order[min(inside, len(order) - 1)]]
    if reach == 0:  # ties fill the span
        return float(np.average(outcome[distance == 0], weights=weight[distance == 0]))
    # A little beyond the farthest row, so that two rows determine a line.
    tricube = np.clip(1 - (distance / (1.0001 * reach)) ** 3, 0, None) ** 3
    near = tricube > 0
    step = (score[near] - x) / reach
    design = np.column_stack([np.ones_like(step), step, step**2])
    root = np.sqrt(weight[near] * tricube[near])
    return float(np.linalg.lstsq(design * root[:, None], outcome[near] * root, rcond=1e-8)[0][0])


def _check_share(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1; got {value!r}")
