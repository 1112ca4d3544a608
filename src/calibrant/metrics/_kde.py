"""Calibration error by kernel density estimation."""

from __future__ import annotations

import numpy as np
import scipy

from calibrant._kernels.blocks import sum_blocks
from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

# This is the grid of the reference implementation. The grid extends beyond [0, 1] for scores that
# are mirrored at 0 and 1.
_LOW, _HIGH, _POINTS = -0.6, 1.6, 2**14
_STEP = (_HIGH - _LOW) / (_POINTS - 1)
# A triweight kernel of standard deviation h ends at 3 h. The grid does not resolve smaller
# bandwidths.
_SMALLEST = 2 * _STEP
# Densities below this share of the maximum are round-off errors of the convolution.
_NO_DENSITY = 1e-12


def kde_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    bandwidth: float | None = None,
    norm: float = 1,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the calibration error by kernel density estimation (KDE-ECE).

    The error integrates the gap between score and estimated frequency of the outcome, without bins.
    Lower is better. The error depends on the bandwidth. Sampling noise makes the error of a
    calibrated model positive.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem. For
        class-wise types of calibration, rows need not sum to one.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`. Errors of several claims are averaged with the
        weights of `expected_calibration_error`.
    bandwidth : float, optional
        Standard deviation of the triweight kernel, at most 0.2. The default is :math:`\hat\sigma
        (2n)^{-1/5}`, as in the code of the authors. :math:`\hat\sigma` is the standard deviation of
        the scores with outcome 1. If these scores are all equal, the standard deviation of all
        scores is used.
    norm : float >= 1, default 1
        Power p of the gaps.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The calibration error.

    See Also
    --------
    smooth_calibration_error : Error without bins, with an automatic bandwidth.
    expected_calibration_error : Binned calibration error.

    Notes
    -----
    Let :math:`\hat q` be the density of the scores and :math:`\hat q_1` the density of the scores
    with outcome 1. With :math:`\hat\pi(t) = \min(1, \bar o\, \hat q_1(t) / \hat q(t))` the
    estimated frequency of the outcome at score t, the error is

    .. math:: \Big( \int_0^1 |t - \hat\pi(t)|^p\, \hat q(t)\, dt \Big)^{1/p} .

    Scores are mirrored at the nearer end of [0, 1], so no mass is lost at the ends. The cost is O(n
    + M log M) per claim with M = 16,384 grid points. Bandwidths below two grid steps (2.7e-4) are
    raised to two grid steps.

    References
    ----------
    Zhang, Kailkhura & Han (2020), Mix-n-Match, arXiv:2003.07329; Gupta et al. (2021), Table 7,
    arXiv:2006.12800.

    Examples
    --------
    >>> from calibrant.datasets import power_family
    >>> data = power_family(10_000, 2.0, rng=3)  # true error 1/6
    >>> round(kde_calibration_error(data.labels, data.proba, notion="class-1"), 2)
    0.17
    """
    _check_options(bandwidth, norm)
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: _claim_power(claim, bandwidth, norm)) ** (1 / norm)


def _check_options(bandwidth: float | None, norm: float) -> None:
    if not 1 <= norm < np.inf:
        raise ValueError(
            f"norm must be a finite number of at least 1, got {norm!r}. Pass norm=1 or norm=2."
        )
    if bandwidth is not None and not 0 < bandwidth <= 0.2:
        raise ValueError(
            f"bandwidth must be positive and at most 0.2, because the kernel must fit on the grid, "
            f"got {bandwidth!r}. Pass bandwidth=None to choose it from the data."
        )


def _claim_power(claim: Claim, bandwidth: float | None, norm: float) -> float:
    """Integrate the ``norm``-th power of the gap of one claim."""
    width = max(_default_bandwidth(claim) if bandwidth is None else bandwidth, _SMALLEST)
    grid = np.linspace(_LOW, _HIGH, _POINTS)
    inside = (grid > 0) & (grid < 1)
    masses = sum_blocks(lambda rows: _masses(claim, rows), len(claim.score), 1)
    density, hits = (_density(mass, width)[inside] for mass in masses)
    is_dense = density > _NO_DENSITY * density.max()
    rate = np.minimum(np.divide(hits, density, out=np.zeros_like(hits), where=is_dense), 1)
    gap = np.abs(grid[inside] - rate)
    return float(
        scipy.integrate.trapezoid(gap**norm * density) / scipy.integrate.trapezoid(density)
    )


def _default_bandwidth(claim: Claim) -> float:
    spread = _deviation(claim, of_hits=True) or _deviation(claim, of_hits=False)
    return float(spread * (2 * claim.weight.sum()) ** -0.2)


def _deviation(claim: Claim, *, of_hits: bool) -> float:
    """Return the standard deviation of the scores, or 0.0 for equal scores and for no scores."""

    def moments(rows: slice) -> tuple[float, float]:
        weight = claim.weight[rows] * claim.outcome[rows] if of_hits else claim.weight[rows]
        return float(weight.sum()), float(weight @ claim.score[rows])

    def squares(rows: slice) -> float:
        weight = claim.weight[rows] * claim.outcome[rows] if of_hits else claim.weight[rows]
        return float(weight @ (claim.score[rows] - mean) ** 2)

    total, first = sum_blocks(moments, len(claim.score), 1)
    if not total > 0:
        return 0.0
    mean = first / total
    return float(np.sqrt(sum_blocks(squares, len(claim.score), 1) / total))


def _masses(claim: Claim, rows: slice) -> tuple[FloatArray, FloatArray]:
    """Compute the weights of all rows and of positive outcomes on the grid.

    Each score is counted together with its mirror image at the nearer end of [0, 1].
    """
    score, weight = claim.score[rows], claim.weight[rows]
    hit, mirror = weight * claim.outcome[rows], np.where(score < 0.5, -score, 2 - score)
    return (
        _on_grid(score, weight) + _on_grid(mirror, weight),
        _on_grid(score, hit) + _on_grid(mirror, hit),
    )


def _density(mass: FloatArray, width: float) -> FloatArray:
    """Compute the sum of the kernels on the grid."""
    reach = int(3 * width / _STEP)
    offset = np.arange(-reach, reach + 1) * (_STEP / (3 * width))
    kernel = 35 / 32 * (1 - offset**2) ** 3 / (3 * width)
    # The Fourier transform returns tiny negative values far from all scores.
    return np.maximum(scipy.signal.fftconvolve(mass, kernel, mode="same"), 0)


def _on_grid(score: FloatArray, weight: FloatArray) -> FloatArray:
    """Distribute each weight linearly over the two nearest grid points."""
    place = (score - _LOW) / _STEP
    lower = place.astype(np.intp)
    upper_share = place - lower
    mass = np.bincount(lower, weight * (1 - upper_share), _POINTS)
    return mass + np.bincount(lower + 1, weight * upper_share, _POINTS)
