"""Smooth calibration error: residuals smoothed by a reflected Gaussian, the bandwidth chosen by the
error itself.
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.notions import Claim, Notion, as_notion, claims_of

# The residuals are put on a grid of this many steps; bandwidths below two steps cannot be resolved.
_STEPS = 2**14
_SMALLEST = 2 / _STEPS
# To how much the bandwidth is found: far below what the grid resolves.
_ROOT = 1e-13


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
    O(n + M log M) per claim and bandwidth, M = 16,384 grid steps; the grid costs less than 1e-6.
    The reflected Gaussian is a product in the cosine basis, so that mass at 0 and 1 is counted
    whole: for 500 rows with f = 1, o = 1 and 500 with f = 0.5, o = 0 the error is 0.25.
    (Convolutions that reflect the grid without its ends count that mass half.) Bandwidths below two
    grid steps (1.2e-4) are not tried: smaller errors are those at that bandwidth.

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
    place = claim.score * _STEPS
    lower = np.minimum(place.astype(np.intp), _STEPS - 1)
    upper_share = place - lower
    residual = claim.weight * (claim.score - claim.outcome) / claim.weight.sum()
    mass: FloatArray = np.bincount(lower, residual * (1 - upper_share), _STEPS + 1)
    mass += np.bincount(lower + 1, residual * upper_share, _STEPS + 1)
    mass[1:-1] /= 2  # the transform counts inner points twice and the ends once
    return dct(mass, type=1)


def _smoothed(cosines: FloatArray, bandwidth: float) -> float:
    """Integral of the absolute smoothed residual."""
    order = np.arange(_STEPS + 1)
    smoothed = cosines * np.exp(-0.5 * (np.pi * bandwidth * order) ** 2)
    density = np.abs(dct(smoothed, type=1))
    return float((density.sum() - (density[0] + density[-1]) / 2) / _STEPS)


def _fixed_point(cosines: FloatArray) -> float:
    """The error at the bandwidth that equals it, or at the smallest one where that is larger."""
    at_smallest = _smoothed(cosines, _SMALLEST)
    if at_smallest <= _SMALLEST:
        return at_smallest
    return float(
        brentq(lambda width: _smoothed(cosines, width) - width, _SMALLEST, 1.0, xtol=_ROOT)
    )
