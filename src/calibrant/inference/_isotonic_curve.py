"""The isotonic calibration curve (CORP) of a claim, with a consistency band."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calibrant._typing import FloatArray, Rng
from calibrant.binning import distinct_sums, quantile_ends
from calibrant.notions import Claim

_MOST_CELLS = 1000
"""Maximum number of distinct scores of a curve. If there are more, scores are merged into quantile
cells, because the band fits a curve per resample. A drawing does not show the difference."""


class IsotonicCurve(NamedTuple):
    """Increasing scores with the isotonic estimate of the frequency, and its consistency band."""

    score: FloatArray
    frequency: FloatArray
    low: FloatArray
    high: FloatArray


def isotonic_curve(claim: Claim, level: float, n_resamples: int, rng: Rng) -> IsotonicCurve:
    """Fit the calibration curve by isotonic regression.

    The ends of the band are pointwise quantiles of curves that are fitted to outcomes drawn from
    the scores. At each score, the band contains the curve of a calibrated model with probability
    ``level``. The cost is O(n log n + n_resamples * min(n, 1000)).

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
    classifiers, PNAS 118, doi:10.1073/pnas.2016191118.
    """
    score, rows, hits = _cells(*distinct_sums(claim.score, claim.hits, claim.weight))
    generator = np.random.default_rng(rng)
    # Binomial counts need whole numbers. Weights were scaled to the effective number of rows
    # before.
    counts = np.maximum(np.round(rows), 1.0).astype(np.int64)
    drawn = generator.binomial(counts, np.clip(score, 0.0, 1.0), (n_resamples, len(score)))
    curves = np.stack([isotonic_regression(draw / counts, weights=rows).x for draw in drawn])
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return IsotonicCurve(score, isotonic_regression(hits / rows, weights=rows).x, low, high)


def _cells(
    score: FloatArray, rows: FloatArray, hits: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Merge distinct scores into at most `_MOST_CELLS` quantile cells."""
    if len(score) <= _MOST_CELLS:
        return score, rows, hits
    last = np.unique(quantile_ends(np.cumsum(rows) / rows.sum(), _MOST_CELLS))
    starts = np.append(0, last[last >= 0][:-1] + 1)
    sums = [np.add.reduceat(column, starts) for column in (score * rows, rows, hits)]
    return sums[0] / sums[1], sums[1], sums[2]
