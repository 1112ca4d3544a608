"""Smooth calibration error: residuals smoothed by a reflected Gaussian kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy

from calibrant._kernels.blocks import sum_blocks
from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

# Number of grid steps for the residuals. The grid cannot resolve bandwidths below two steps.
_STEPS = 2**14
_SMALLEST = 2 / _STEPS
# Tolerance of the bandwidth, far below the resolution of the grid.
_ROOT = 1e-13
# The bandwidth at which the search starts.
_START = 0.05
# Cosines with a factor exp(-x^2 / 2) below round-off (x > 8.7) are omitted. A grid of 8 steps per
# remaining cosine resolves every zero of their sum. The full grid is faster if more than 2^16
# cosine values are needed.
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
    r"""Compute the smooth calibration error (SmoothECE), without bins.

    The residuals are smoothed by a Gaussian kernel, and the bandwidth is chosen automatically.
    Lower is better.

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
        Use this :math:`\sigma` instead of the automatic choice.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The error, between 0 and 1.

    See Also
    --------
    expected_calibration_error : Binned calibration error.
    kde_calibration_error : Error by kernel density estimation.
    calibrant.inference.consistency_test : P-value with ``metric="smooth_calibration_error"``.

    Notes
    -----
    With the Gaussian kernel :math:`K_\sigma` reflected at 0 and 1,

    .. math:: \text{smECE}_\sigma = \int_0^1 \Big| \frac1n \sum_i (f_i - o_i) K_\sigma(t, f_i) \Big|
        \, dt .

    The error is evaluated at the bandwidth :math:`\sigma^*` with :math:`\text{smECE}_\sigma =
    \sigma`. There is exactly one such bandwidth, because :math:`\text{smECE}_\sigma` does not
    increase with :math:`\sigma`.

    The computation takes O(n + M log M) per claim with M = 16,384 grid steps. The discretization
    error is below 1e-6. Convolution with the reflected Gaussian is a product in the cosine basis,
    so only a few cosines contribute at a given bandwidth. Mass at 0 and 1 is counted in full. For
    example, for 500 rows with f = 1, o = 1 and 500 rows with f = 0.5, o = 0, the error is 0.25.
    Implementations that reflect the grid without its end points count half of this mass. Bandwidths
    below two grid steps (1.2e-4) are not used. Smaller errors are evaluated at a bandwidth of two
    grid steps.

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
    kind = as_notion(notion)
    _check_bandwidth(bandwidth)
    claims, _ = claims_of(kind, y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: _claim_error(claim, bandwidth))


def _check_bandwidth(bandwidth: float | None) -> None:
    if bandwidth is not None and not bandwidth >= _SMALLEST:
        raise ValueError(
            f"bandwidth must be at least {_SMALLEST:.1e}, the resolution of the grid, got "
            f"{bandwidth!r}. Pass bandwidth=None to choose it from the data."
        )


def _claim_error(claim: Claim, bandwidth: float | None) -> float:
    cosines = _cosine_coefficients(claim)
    if bandwidth is not None:
        return _smoothed(cosines, bandwidth)
    return _fixed_point(cosines)


def _cosine_coefficients(claim: Claim) -> FloatArray:
    """Return ``mean_i (f_i - o_i) cos(pi k f_i)`` for k = 0, 1, ...

    Each residual is distributed over the two nearest grid points.
    """
    lower, upper = sum_blocks(partial(_grid_masses, claim), len(claim.score), 1)
    mass = np.append(lower - upper, 0.0)
    mass[1:] += upper
    mass /= claim.weight.sum()
    mass[1:-1] /= 2  # the transform counts inner points twice and the end points once
    return scipy.fft.dct(mass, type=1)


def _grid_masses(claim: Claim, rows: slice) -> tuple[FloatArray, FloatArray]:
    """Sum the residuals of a block per lower grid point, and their parts for the upper point."""
    score = claim.score[rows]
    place = score * _STEPS
    lower = np.minimum(place.astype(np.intp), _STEPS - 1)
    residual = score - claim.outcome[rows]
    residual *= claim.weight[rows]
    place -= lower
    place *= residual
    return np.bincount(lower, residual, _STEPS), np.bincount(lower, place, _STEPS)


def _smoothed(cosines: FloatArray, bandwidth: float) -> float:
    """Integrate the absolute smoothed residual.

    The integral is exact between the zeros of the sum of cosines. If there are many cosines, the
    integral is computed on the full grid.
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
    """Integrate ``|c_0 + 2 sum_k c_k cos(pi k t)|`` over [0, 1].

    Each interval ``[cell, cell + width]`` contains one zero, close to ``cell + first``.
    """
    turn = np.pi * np.arange(1, smoothed.size)
    twice = 2.0 * smoothed[1:]
    zeros, slope = _refine_zeros(smoothed, cell + first, cell, width)
    whole = smoothed[0] * zeros + np.sin(np.multiply.outer(zeros, turn)) @ (twice / turn)
    exact = np.abs(np.diff(whole, prepend=0.0, append=smoothed[0])).sum()
    # The trapezoidal sum on the full grid, which defines the error, differs only near the zeros.
    share = zeros * _STEPS % 1.0
    return float(exact + (np.abs(slope) @ (share * (1.0 - share) - 1.0 / 6.0)) / _STEPS**2)


def _refine_zeros(
    smoothed: FloatArray, zeros: FloatArray, cell: FloatArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """Return zeros of the sum of cosines close to ``zeros``, and the slopes of the sum there."""
    turn = np.pi * np.arange(1, smoothed.size)
    twice = 2.0 * smoothed[1:]
    # The zero of the line through two grid points is a good start, so two Newton steps reach
    # round-off.
    for _ in range(2):
        angle = np.multiply.outer(zeros, turn)
        slope = -np.sin(angle) @ (turn * twice)
        value = smoothed[0] + np.cos(angle) @ twice
        step = np.divide(value, slope, out=np.zeros_like(value), where=slope != 0.0)
        # If the sum is zero up to round-off, a step could leave the interval.
        zeros = np.clip(zeros - step, cell, cell + width)
    return zeros, slope


def _fixed_point(cosines: FloatArray) -> float:
    """Return the error at the bandwidth that equals the error, or at the smallest bandwidth.

    The error does not increase with the bandwidth, so the fixed point lies between any bandwidth
    and its error.
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
