"""Consistency bands of reliability diagrams."""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray, Rng
from calibrant._validation import check_count
from calibrant.binning import BinTable
from calibrant.inference._bands import binomial_band, resampled_band
from calibrant.inference._curve_band import band_of_claim
from calibrant.notions import Claims

_BAND_GROUPS = 100
"""Number of groups of scores for a simultaneous band."""


def band_ends(
    band: str | None, claims: Claims, table: BinTable, level: float, n_resamples: int, rng: Rng
) -> tuple[FloatArray, FloatArray] | None:
    """Return the lower and upper ends of the band, or None if ``band`` is None."""
    if band == "binomial":
        return binomial_band(table, level)
    if band == "resampling":
        check_count(n_resamples, "n_resamples")
        return resampled_band(claims, table, level, n_resamples, rng)
    if band == "simultaneous":
        return _curve_ends(claims, table, level)
    return None


def _curve_ends(claims: Claims, table: BinTable, level: float) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the calibration curve of each claim at the mean scores of its bins."""
    low, high = (np.full(table.weight.shape, np.nan) for _ in range(2))
    for claim in claims:
        used = np.flatnonzero(table.weight[claim.index] > 0)
        if claim.ends is not None or claim.is_weighted:
            raise ValueError(
                "band='simultaneous' needs rows in memory with equal weights. Pass band='binomial'."
            )
        if used.size:
            curve = band_of_claim(claim, level, _BAND_GROUPS, "")
            mean = table.score[claim.index, used] / table.weight[claim.index, used]
            low[claim.index, used], high[claim.index, used] = curve(mean)
    return low, high
