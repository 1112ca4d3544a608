"""Summarize calibration scores by their spread, range and histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from calibrant._data.sample import Rows
from calibrant._kernels.blocks import map_blocks, sum_blocks
from calibrant._kernels.simplex import softmax, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.multiclass._gp.bound import ScaledRows

# Maximum slope of the latent function, in log-odds per standard deviation of the scores. If the
# identity has a larger slope, the maximum is the slope of the identity. A steeper function is
# practically a step function.
_STEEPEST = 30.0
# Number of cells of the histogram, several hundred per inducing input by default.
_CELLS = 4096
# Share of inducing inputs that are spread uniformly. Uniform inputs cover the ends of the range
# even if most scores are equal.
_UNIFORM_SHARE = 0.3
# Minimum of `ScoreSummary.amplitude`, in log-odds. This minimum corresponds to a factor of 20 in
# the odds.
_LEAST_AMPLITUDE = 3.0


@dataclass(frozen=True, eq=False)
class ScoreSummary:
    """Summary of the standardized scores x."""

    rows: ScaledRows
    low: float
    high: float
    line: float
    """Slope gamma of the maximum-likelihood latent function ``gamma x``, which is the inverse
    temperature in units of x."""
    histogram: FloatArray
    """Total weight of the scores in each cell. Cells have equal width. Scores of probable classes
    and of the true class have a larger weight."""

    @property
    def total(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.rows.weight.sum())

    @property
    def amplitude(self) -> float:
        """Expected difference between a calibrated latent function and the scores, in log-odds."""
        return max(_LEAST_AMPLITUDE, self.rows.scale / 3)

    def spread_inputs(self, n_inputs: int) -> FloatArray:
        """Return inducing inputs at quantiles of the histogram.

        The weights of cells are capped and some inputs are spread uniformly, so inputs are distinct
        even if scores are tied.
        """
        share = np.minimum(self.histogram / self.histogram.sum(), 1.0 / n_inputs)
        mass = np.concatenate([[0.0], np.cumsum(share + _UNIFORM_SHARE / len(share))])
        targets = (np.arange(n_inputs) + 0.5) / n_inputs * mass[-1]
        return np.interp(targets, mass, np.linspace(self.low, self.high, len(mass)))


def standardize(u: Rows, y: IntArray, weight: FloatArray) -> ScaledRows:
    """Scale rows to kernel inputs with mean 0 and standard deviation 1."""

    def moments(rows: slice) -> FloatArray:
        block = u[rows]
        powers = np.column_stack([np.ones(len(block)), block.mean(axis=1), (block**2).mean(axis=1)])
        return weight[rows] @ powers

    total, first, second = sum_blocks(moments, *u.shape)
    center = float(first / total)
    scale = float(np.sqrt(max(second / total - center**2, 0.0)))
    is_constant = scale <= 1e-6 * max(1.0, abs(center))
    return ScaledRows(u, y, weight, center, 1.0 if is_constant else scale)


def summarize_scores(rows: ScaledRows) -> ScoreSummary:
    """Compute the range and the histogram of the scores, and the best linear latent function."""
    low, high = _range(rows)
    line = _line(rows)
    return ScoreSummary(rows, low, high, line, _histogram(rows, line, low, high))


def _range(rows: ScaledRows) -> tuple[float, float]:
    def ends(block: slice) -> tuple[float, float]:
        x = rows.inputs(block)
        return float(x.min()), float(x.max())

    lows, highs = zip(*map_blocks(ends, *rows.u.shape), strict=True)
    return min(lows), max(highs)


def _line(rows: ScaledRows) -> float:
    def slope(gamma: float) -> float:
        def part(block: slice) -> float:
            x = rows.inputs(block)
            gap = true_class(x, rows.y[block]) - (softmax(gamma * x) * x).sum(axis=1)
            return float(rows.weight[block] @ gap)

        return float(sum_blocks(part, *rows.u.shape))

    limit = max(_STEEPEST, rows.scale)
    if slope(limit) >= 0:
        return limit
    if slope(-limit) <= 0:
        return -limit
    return float(scipy.optimize.brentq(slope, -limit, limit, xtol=1e-3, rtol=1e-3))


def _histogram(rows: ScaledRows, line: float, low: float, high: float) -> FloatArray:
    width = (high - low) / _CELLS or 1.0

    def counts(block: slice) -> FloatArray:
        x = rows.inputs(block)
        weight = softmax(line * x) + 1.0 / x.shape[1]
        weight[np.arange(len(x)), rows.y[block]] += 1.0
        weight *= rows.weight[block][:, None]
        cell = np.minimum((x - low) / width, _CELLS - 1).astype(np.intp)
        return np.bincount(cell.ravel(), weight.ravel(), minlength=_CELLS)

    return sum_blocks(counts, *rows.u.shape)
