"""A summary of the calibration scores by sums over row blocks: spread, range and histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from calibrant._data.sample import Rows
from calibrant._kernels.blocks import map_blocks, sum_blocks
from calibrant._kernels.simplex import softmax, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.multiclass._gp.bound import ScaledRows

# Maximum slope of the latent function, in log-odds per standard deviation of the scores (or the
# slope of the scores themselves, if it is larger). A steeper function is practically a step.
_STEEPEST = 30.0
# Cells of the histogram: some hundreds for each of the ten inducing inputs.
_CELLS = 4096
# Share of inducing inputs that is spread uniformly, so the ends of the range get some even if most
# scores are equal.
_UNIFORM_SHARE = 0.3
# Minimum of the expected difference between a calibrated latent function and the scores in
# log-odds: a factor of twenty in the odds.
_LEAST_AMPLITUDE = 3.0


@dataclass(frozen=True, eq=False)
class ScoreSummary:
    """A summary of the standardized scores x."""

    rows: ScaledRows
    low: float
    high: float
    line: float
    """Slope gamma of the latent function ``gamma x`` of largest likelihood: the inverse temperature
    in units of x."""
    histogram: FloatArray
    """Weight of the scores in cells of equal width: that of its class in the row, and once more if
    that is the label."""

    @property
    def total(self) -> float:
        """Sum of the weights of the rows."""
        return float(self.rows.weight.sum())

    @property
    def amplitude(self) -> float:
        """Expected difference between a calibrated latent function and the scores, in log-odds."""
        return max(_LEAST_AMPLITUDE, self.rows.scale / 3)

    def spread_inputs(self, n_inputs: int) -> FloatArray:
        """Inducing inputs at quantiles of the histogram.

        Capped cells and a uniform share keep inputs apart if scores are tied.
        """
        share = np.minimum(self.histogram / self.histogram.sum(), 1.0 / n_inputs)
        mass = np.concatenate([[0.0], np.cumsum(share + _UNIFORM_SHARE / len(share))])
        wanted = (np.arange(n_inputs) + 0.5) / n_inputs * mass[-1]
        return np.interp(wanted, mass, np.linspace(self.low, self.high, len(mass)))


def standardise(u: Rows, y: IntArray, weight: FloatArray) -> ScaledRows:
    """Rows whose inputs to the kernel have mean 0 and standard deviation 1."""

    def moments(rows: slice) -> FloatArray:
        block = u[rows]
        powers = np.column_stack([np.ones(len(block)), block.mean(axis=1), (block**2).mean(axis=1)])
        return weight[rows] @ powers

    total, first, second = sum_blocks(moments, *u.shape)
    center = float(first / total)
    scale = float(np.sqrt(max(second / total - center**2, 0.0)))
    is_constant = scale <= 1e-6 * max(1.0, abs(center))
    return ScaledRows(u, y, weight, center, 1.0 if is_constant else scale)


def summarise_scores(rows: ScaledRows) -> ScoreSummary:
    """Range, best line and histogram of the scores."""
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
