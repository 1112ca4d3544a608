"""Gaps to a smooth curve: ICI, E50 and E90 of clinical prediction models."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from calibrant._kernels.blocks import CACHE_BLOCK, ROUND_OFF, row_blocks
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
    fitted at 101 scores, O(n log n + 101 n) per claim.

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
    order = np.argsort(claim.score)
    order = order[claim.weight[order] > 0]
    rows = _Ordered(claim.score[order], claim.outcome[order], claim.weight[order])
    places = np.unique(np.quantile(rows.score, np.linspace(0, 1, _POINTS), method="nearest"))
    before = np.concatenate([[0.0], np.cumsum(rows.weight)])
    fitted = np.array([_fit_point(rows, x, _reach(rows.score, before, x, span)) for x in places])
    return np.interp(at, places, np.clip(fitted, 0.0, 1.0))


class _Ordered(NamedTuple):
    """Rows of positive weight in the order of their scores, (n,) each."""

    score: FloatArray
    outcome: FloatArray
    weight: FloatArray

    def between(self, low: float, high: float) -> _Ordered:
        """Rows with scores from ``low`` to ``high``."""
        first = np.searchsorted(self.score, low, side="left")
        last = np.searchsorted(self.score, high, side="right")
        return _Ordered(*(column[first:last] for column in self))


def _reach(score: FloatArray, before: FloatArray, x: float, span: float) -> float:
    """The distance from ``x`` within which the share ``span`` of the weight lies; ``before`` is the
    weight before each row and after the last.
    """
    needed = span * before[-1] - ROUND_OFF

    def is_enough(distance: float) -> bool:
        # Distances are compared as they are computed: x - distance would round another way.
        first = bisect_left(score, -distance, key=lambda s: s - x)
        last = bisect_right(score, distance, key=lambda s: s - x)
        return bool(before[last] - before[first] >= needed)

    here, n_rows = int(np.searchsorted(score, x)), len(score)
    below = bisect_left(range(here), True, key=lambda k: is_enough(x - score[here - 1 - k]))
    above = bisect_left(range(n_rows - here), True, key=lambda k: is_enough(score[here + k] - x))
    left = x - score[here - 1 - below] if below < here else np.inf
    right = score[here + above] - x if above < n_rows - here else np.inf
    nearest = min(left, right)
    return float(max(x - score[0], score[-1] - x) if np.isinf(nearest) else nearest)


def _fit_point(rows: _Ordered, x: float, reach: float) -> float:
    """Local quadratic regression at one score; of least norm where it is not determined."""
    if reach == 0:  # ties fill the span
        ties = rows.between(x, x)
        return float(np.average(ties.outcome, weights=ties.weight))
    # A little beyond the farthest row, so that two rows determine a line.
    near = rows.between(x - 1.0001 * reach, x + 1.0001 * reach)
    system = np.empty((0, 4))
    for block in row_blocks(len(near.score), 1):
        rows_of_block = _Ordered(*(column[block] for column in near))
        system = np.vstack([system, _local_system(rows_of_block, x, reach)])
        if len(near.score) > CACHE_BLOCK:
            # The triangle of a factorisation has the same least squares as its rows.
            system = np.asarray(np.linalg.qr(system, mode="r"))
    return float(np.linalg.lstsq(system[:, :3], system[:, 3], rcond=1e-8)[0][0])


def _local_system(rows: _Ordered, x: float, reach: float) -> FloatArray:
    """Rows of the weighted regression on 1, t and t^2, t the distance over the reach, (m, 4)."""
    step = (rows.score - x) / reach
    tricube = np.clip(1 - np.abs(step / 1.0001) ** 3, 0, None) ** 3
    root = np.sqrt(rows.weight * tricube)
    return np.column_stack([root, step * root, step**2 * root, rows.outcome * root])


def _check_share(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1; got {value!r}")
