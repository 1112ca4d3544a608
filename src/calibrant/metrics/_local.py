"""Gaps between scores and a smooth calibration curve: ICI, E50 and E90."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from calibrant._kernels.blocks import CACHE_BLOCK, ROUND_OFF, row_blocks
from calibrant._typing import FloatArray, Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

SPAN = 0.75
"""Default share of the rows used for each point of the curve, as in R and in the paper."""

_POINTS = 101
"""Number of scores at which the curve is fitted. Between these scores, the curve is linear."""


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
    r"""Compute the integrated calibration index (ICI), the mean gap from a smooth curve.

    The gap is the absolute difference between score and smoothed outcome. Lower is better. The ICI
    of a calibrated model is above 0 (about 0.03 at 500 rows), because the smooth curve follows
    sampling noise. Compare models on the same rows only.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`. Errors of several claims are averaged with the
        weights of `expected_calibration_error`.
    span : float, default 0.75
        Share of the rows that is used for each point of the curve.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.

    Returns
    -------
    float
        The mean gap, between 0 and 1.

    See Also
    --------
    local_gap_quantile : Quantiles of the gaps, such as E50, E90 and the maximum.
    expected_calibration_error : Binned calibration error.

    Notes
    -----
    .. math:: \frac1n \sum_i |f_i - \hat o(f_i)|

    with :math:`\hat o` a local quadratic regression of the outcome on the score, clipped to [0, 1]
    (loess). Each point uses the share ``span`` of the rows with the nearest scores, with tricube
    weights. The loess function of R interpolates its curve in another way, so values agree to about
    two digits. The curve is fitted at 101 scores, which costs O(n log n + 101 n) per claim.

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
    return claims.mean(lambda claim: _mean_gap(claim, span))


def _mean_gap(claim: Claim, span: float) -> float:
    return float(np.average(local_gaps(claim, span), weights=claim.weight))


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
    r"""Compute a quantile of the gaps from a smooth calibration curve, such as E50 or E90.

    Lower is better. Large quantiles contain more sampling noise, especially at the lowest and
    highest scores.

    Parameters
    ----------
    y_true, y_prob, notion, span, sample_weight, classes, inputs
        As in `integrated_calibration_index`.
    quantile : float, default 0.5
        Level of the quantile. 0.5 is E50 (the median), 0.9 is E90, and 1 is the maximum gap.

    Returns
    -------
    float
        The smallest gap g for which at least the share ``quantile`` of the rows has a gap of at
        most g.

    See Also
    --------
    integrated_calibration_index : Mean of the gaps.

    Notes
    -----
    The gaps are :math:`|f_i - \hat o(f_i)|` with the smooth curve of
    `integrated_calibration_index`.

    References
    ----------
    Austin & Steyerberg (2019), doi:10.1002/sim.8281.

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
    return claims.mean(lambda claim: _gap_quantile(claim, span, quantile))


def _gap_quantile(claim: Claim, span: float, quantile: float) -> float:
    gaps = local_gaps(claim, span)
    order = np.argsort(gaps)
    reached = np.cumsum(claim.weight[order]) >= quantile * claim.weight.sum() - ROUND_OFF
    return float(gaps[order][reached.argmax()])


def local_gaps(claim: Claim, span: float = SPAN) -> FloatArray:
    """Return the distance of every score of a claim from the smoothed outcome."""
    return np.abs(claim.score - local_rate(claim, claim.score, span))


def local_rate(claim: Claim, at: FloatArray, span: float = SPAN) -> FloatArray:
    """Return the smoothed outcome of a claim at the scores ``at``, interpolated on a grid."""
    order = np.argsort(claim.score)
    order = order[claim.weight[order] > 0]
    rows = _Ordered(claim.score[order], claim.outcome[order], claim.weight[order])
    places = np.unique(np.quantile(rows.score, np.linspace(0, 1, _POINTS), method="nearest"))
    before = np.concatenate([[0.0], np.cumsum(rows.weight)])
    fitted = np.array([_fit_point(rows, x, _reach(rows.score, before, x, span)) for x in places])
    return np.interp(at, places, np.clip(fitted, 0.0, 1.0))


class _Ordered(NamedTuple):
    """Rows with positive weight, sorted by score, (n,) each."""

    score: FloatArray
    outcome: FloatArray
    weight: FloatArray

    def between(self, low: float, high: float) -> _Ordered:
        """Return rows with scores from ``low`` to ``high``."""
        first = np.searchsorted(self.score, low, side="left")
        last = np.searchsorted(self.score, high, side="right")
        return _Ordered(*(column[first:last] for column in self))


def _reach(score: FloatArray, before: FloatArray, x: float, span: float) -> float:
    """Return the distance from ``x`` within which the share ``span`` of the weight lies.

    ``before`` is the cumulative weight before each row and after the last row.
    """
    target = span * before[-1] - ROUND_OFF

    def is_enough(distance: float) -> bool:
        # Compare differences s - x with the distance, which is also a difference. Comparing s with
        # x - distance would round differently and could miss ties.
        first = bisect_left(score, -distance, key=lambda s: s - x)
        last = bisect_right(score, distance, key=lambda s: s - x)
        return bool(before[last] - before[first] >= target)

    place, n_rows = int(np.searchsorted(score, x)), len(score)
    below = bisect_left(range(place), True, key=lambda k: is_enough(x - score[place - 1 - k]))
    above = bisect_left(range(n_rows - place), True, key=lambda k: is_enough(score[place + k] - x))
    left = x - score[place - 1 - below] if below < place else np.inf
    right = score[place + above] - x if above < n_rows - place else np.inf
    nearest = min(left, right)
    return float(max(x - score[0], score[-1] - x) if np.isinf(nearest) else nearest)


def _fit_point(rows: _Ordered, x: float, reach: float) -> float:
    """Fit a local quadratic regression at one score.

    If several solutions are optimal, the solution with minimum norm is used.
    """
    if reach == 0:  # all neighbors have the score x
        ties = rows.between(x, x)
        return float(np.average(ties.outcome, weights=ties.weight))
    # Use slightly more than the distance of the farthest row, whose weight would otherwise be 0.
    # A line needs two rows with positive weight.
    neighbors = rows.between(x - 1.0001 * reach, x + 1.0001 * reach)
    system = np.empty((0, 4))
    for block in row_blocks(len(neighbors.score), 1):
        rows_of_block = _Ordered(*(column[block] for column in neighbors))
        system = np.vstack([system, _local_system(rows_of_block, x, reach)])
        if len(neighbors.score) > CACHE_BLOCK:
            # The triangular factor has the same least-squares solution as the rows, in less memory.
            system = np.asarray(np.linalg.qr(system, mode="r"))
    return float(np.linalg.lstsq(system[:, :3], system[:, 3], rcond=1e-8)[0][0])


def _local_system(rows: _Ordered, x: float, reach: float) -> FloatArray:
    """Return the rows of the weighted regression on 1, t and t^2, (m, 4)."""
    step = (rows.score - x) / reach
    tricube = np.clip(1 - np.abs(step / 1.0001) ** 3, 0, None) ** 3  # same margin as `_fit_point`
    root = np.sqrt(rows.weight * tricube)
    return np.column_stack([root, step * root, step**2 * root, rows.outcome * root])


def _check_share(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}. Pass {name}=0.5.")
