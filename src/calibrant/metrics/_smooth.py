"""Smooth calibration error: residuals smoothed by a reflected Gaussian, the bandwidth chosen by the
error itself.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy

from calibrant._kernels.blocks import sum_blocks
from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

# The residuals are put on a grid of this many steps; bandwidths below two steps cannot be resolved.
_STEPS = 2**14
_SMALLEST = 2 / _STEPS
# To how much the bandwidth is found: far below what the grid resolves.
_ROOT = 1e-13
# The first bandwidth that is tried.
_START = 0.05
# Cosines are left out where exp(-x^2 / 2) is below round-off; grid steps for each that is left, to
# see every zero of their sum; values of cosines above which the grid is faster.
_SPECTRUM, _OVERSAMPLING, _MANY_COSINES = 8.7, 8, 2**16


def smooth_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    bandwidth: float | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Smooth calibration error (SmoothECE): a binning-free error with a bandwidth that nobody has
    to choose.

    With the Gaussian kernel :math:`K_\sigma` reflected at 0 and 1,

    .. math:: \text{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i (f_i - o_i) K_\sigma(t, f_i) \Big|
        \, dt ,

    and the error is that at the bandwidth :math:`\sigma^*` at which :math:`\text{smECE}_\sigma =
    \sigma`. There is exactly one, because :math:`\text{smECE}_\sigma` does not increase with
    :math:`\sigma`.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
        Class-wise notions accept rows that do not sum to one.
    notion : str
        What is checked, see `calibrant.notions`; several claims are averaged with the weights of
        `expected_calibration_error`.
    bandwidth : float, optional
        Use this :math:`\sigma` instead.
    inputs : {"proba", "logits"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
    classes : labels of the columns, optional

    Returns
    -------
    float

    Notes
    -----
    O(n + M log M) per claim, M = 16,384 grid steps, which cost less than 1e-6; a bandwidth is
    tried by the few cosines that it leaves. The reflected Gaussian is a product in the cosine
    basis, so that mass at 0 and 1 is counted whole: for 500 rows with f = 1, o = 1 and 500 with
    f = 0.5, o = 0 the error is 0.25. (Convolutions that reflect the grid without its ends count
    that mass half.) Bandwidths below two grid steps (1.2e-4) are not tried: smaller errors are
    those at that bandwidth.

    References
    ----------
    Błasiok & Nakkiran (2023), Smooth ECE: principled reliability diagrams via kernel smoothing,
    arXiv:2309.12236.

    Examples
    --------
    >>> y, f = [1] * 500 + [0] * 500, [1.0] * 500 + [0.5] * 500
    >>> round(smooth_calibration_error(y, f, notion="class-1"), 6)
    0.25
    """
    chosen = as_notion(notion)
    if bandwidth is not None and not bandwidth >= _SMALLEST:
        raise ValueError(
            f"bandwidth must be at least {_SMALLEST:.1e}, the resolution of the grid; got "
            f"{bandwidth!r}"
        )
    claims, _ = claims_of(chosen, y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: _claim_error(claim, bandwidth))


def _claim_error(claim: Claim, bandwidth: float | None) -> float:
    cosines = _cosine_coefficients(claim)
    if bandwidth is not None:
        return _smoothed(cosines, bandwidth)
    return _fixed_point(cosines)


def _cosine_coefficients(claim: Claim) -> FloatArray:
    """``mean_i (f_i - o_i) cos(pi k f_i)`` for k = 0, 1, ..., with the residuals shared by the two
    nearest grid points.
    """
    lower, upper = sum_blocks(partial(_grid_masses, claim), len(claim.score), 1)
    mass = np.append(lower - upper, 0.0)
    mass[1:] += upper
    mass /= claim.weight.sum()
    mass[1:-1] /= 2  # the transform counts inner points twice and the ends once
    return scipy.fft.dct(mass, type=1)


def _grid_masses(claim: Claim, rows: slice) -> tuple[FloatArray, FloatArray]:
    """Sums of the residuals of a block by the grid point below, and of their part for the point
    above, (M,) each.
    """
    score = claim.score[rows]
    place = score * _STEPS
    lower = np.minimum(place.astype(np.intp), _STEPS - 1)
    residual = score - claim.outcome[rows]
    residual *= claim.weight[rows]
    place -= lower
    place *= residual
    return np.bincount(lower, residual, _STEPS), np.bincount(lower, place, _STEPS)


def _smoothed(cosines: FloatArray, bandwidth: float) -> float:
    """Integral of the absolute smoothed residual: of the cosines that are left, between the zeros
    of their sum; by the grid where there are many.
    """
    size = min(_STEPS + 1, int(_SPECTRUM / (np.pi * bandwidth)) + 2)
    order = np.arange(size)
    smoothed = cosines[:size] * np.exp(-0.5 * (np.pi * bandwidth * order) ** 2)
    n_steps = 1 << (_OVERSAMPLING * size - 1).bit_length()
    if n_steps >= _STEPS:
        return _grid_integral(smoothed)
    density = scipy.fft.dct(smoothed, type=1, n=n_steps + 1)
    is_positive = density >= 0.0
    cell = np.flatnonzero(is_positive[1:] != is_positive[:-1])
    if cell.size * size > _MANY_COSINES:
        return _grid_integral(smoothed)
    share = density[cell] / (density[cell] - density[cell + 1])
    return _integral_between(smoothed, cell / n_steps, share / n_steps, 1 / n_steps)


def _grid_integral(smoothed: FloatArray) -> float:
    density = np.abs(scipy.fft.dct(smoothed, type=1, n=_STEPS + 1))
    return float((density.sum() - (density[0] + density[-1]) / 2) / _STEPS)


def _integral_between(
    smoothed: FloatArray, cell: FloatArray, first: FloatArray, width: float
) -> float:
    """Integral of ``|c_0 + 2 sum_k c_k cos(pi k t)|`` over [0, 1], with one zero in each cell that
    begins at ``cell`` and is so wide, about ``first`` from its beginning.
    """
    zeros = cell + first
    turn = np.pi * np.arange(1, smoothed.size)
    twice = 2.0 * smoothed[1:]
    for _ in range(2):  # Newton's steps: from the line through two grid points to round-off
        angle = np.multiply.outer(zeros, turn)
        slope = -np.sin(angle) @ (turn * twice)
        value = smoothed[0] + np.cos(angle) @ twice
        step = np.divide(value, slope, out=np.zeros_like(value), where=slope != 0.0)
        zeros = np.clip(zeros - step, cell, cell + width)  # zeros of round-off would run away
    whole = smoothed[0] * zeros + np.sin(np.multiply.outer(zeros, turn)) @ (twice / turn)
    exact = np.abs(np.diff(whole, prepend=0.0, append=smoothed[0])).sum()
    # The trapezoids of the grid, which is the definition, differ from it at the zeros alone.
    share = zeros * _STEPS % 1.0
    return float(exact + (np.abs(slope) @ (share * (1.0 - share) - 1.0 / 6.0)) / _STEPS**2)


def _fixed_point(cosines: FloatArray) -> float:
    """The error at the bandwidth that equals it, or at the smallest one where that is larger.

    The error does not increase with the bandwidth, so that the fixed point lies between any
    bandwidth and its error.
    """
    ends = sorted((_START, _smoothed(cosines, _START)))
    low, high = max(ends[0], _SMALLEST), max(ends[1], _SMALLEST)
    if low == _SMALLEST:
        at_smallest = _smoothed(cosines, _SMALLEST)
        if at_smallest <= _SMALLEST:
            return at_smallest
    if low == high:
        return low

    def excess(width: float) -> float:
        return _smoothed(cosines, width) - width

    return float(scipy.optimize.brentq(excess, low * (1 - 1e-9), high * (1 + 1e-9), xtol=_ROOT))
