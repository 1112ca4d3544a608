"""Consistency bands, which are ranges of the observed frequencies per bin under calibration."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from calibrant._kernels.blocks import WORK_MEMORY
from calibrant._typing import FloatArray, Rng
from calibrant.binning import BinTable
from calibrant.notions import Claim, Claims


def binomial_band(table: BinTable, level: float) -> tuple[FloatArray, FloatArray]:
    """Return exact quantiles of ``Binomial(rows, mean score) / rows`` per cell, NaN if empty.

    If scores differ within a bin, the count varies less than a binomial count, so the band is
    conservative. Weights are rounded down to whole rows, so callers scale weights to the effective
    number of rows first.
    """
    occupied = table.weight > 0
    rows = np.where(occupied, np.maximum(np.floor(table.weight), 1.0), 1.0)
    rate = np.clip(np.where(occupied, table.mean_score, 0.5), 0.0, 1.0)
    tail = (1.0 - level) / 2.0
    low, high = (
        np.where(occupied, binom.ppf(q, rows, rate) / rows, np.nan) for q in (tail, 1.0 - tail)
    )
    return low, high


def resampled_band(
    claims: Claims, table: BinTable, level: float, n_resamples: int, rng: Rng
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of the frequency per cell if outcomes are drawn from the scores.

    The time is O(n_resamples n) per claim.
    """
    generator = np.random.default_rng(rng)
    low, high = (np.full(table.weight.shape, np.nan) for _ in range(2))
    tail = (1.0 - level) / 2.0
    for claim in claims:
        occupied = table.weight[claim.index] > 0
        if occupied.any():
            drawn = _frequencies(claim, table, n_resamples, generator)[:, occupied]
            # Frequencies are discrete, so quantiles are not interpolated.
            low[claim.index, occupied] = np.quantile(drawn, tail, axis=0, method="lower")
            high[claim.index, occupied] = np.quantile(drawn, 1.0 - tail, axis=0, method="higher")
    return low, high


def _frequencies(
    claim: Claim, table: BinTable, n_resamples: int, generator: np.random.Generator
) -> FloatArray:
    """Return the mean outcome per resample and bin, NaN for empty bins."""
    place = table.bins.assign(claim.score, claim.index)
    # All outcomes of ``step`` resamples are in memory at once.
    step = max(1, WORK_MEMORY // max(1, len(place)))
    sums = np.empty((n_resamples, table.n_bins))
    for start in range(0, n_resamples, step):
        count = min(step, n_resamples - start)
        hits = _draw_hits(claim, count, generator)
        cell = np.arange(count)[:, None] * table.n_bins + place
        drawn = np.bincount(cell.ravel(), hits.ravel(), minlength=count * table.n_bins)
        sums[start : start + count] = drawn.reshape(count, table.n_bins)
    weight = np.bincount(place, claim.weight, table.n_bins)
    return np.divide(sums, weight, out=np.full_like(sums, np.nan), where=weight > 0)


def _draw_hits(claim: Claim, count: int, generator: np.random.Generator) -> FloatArray:
    """Draw the weight of the positive outcomes of each entry, (count, n).

    A row has one outcome, regardless of its weight. A cell of scores has one outcome per row.
    """
    score, size = np.clip(claim.score, 0.0, 1.0), (count, len(claim.score))
    if claim.ends is None or claim.is_weighted:
        return claim.weight * (generator.random(size) < score)
    return generator.binomial(claim.weight.astype(np.int64), score, size).astype(np.float64)
