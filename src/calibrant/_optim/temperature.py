"""Find the best inverse temperature of a sample fast.

Other modules use only `find_log_beta`. `calibrant._optim.plain_temperature` is the slower reference
implementation. The sums over rows are in `fast_temperature`, and the search is in `slope_search`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import one_blas_thread
from calibrant._optim.fast_temperature import TemperatureLoss
from calibrant._optim.plain_temperature import name_cause
from calibrant._optim.slope_search import SearchResult, minimize_scalar
from calibrant._optim.solution import Solution
from calibrant._typing import FloatArray

_FEW_SCORES = 2**14
"""Up to this many scores, NumPy calls take as long as the arithmetic. Passes in double precision
with a third derivative are then best, because they need fewer calls."""

ERROR = 5e-11
"""Estimated error of log beta at which a search ends."""

_ROUGH_ERROR = 1e-4
"""Estimated error of log beta at which a search in single precision ends. A search in double
precision continues it."""

# From _WARM_FROM rows on, the search starts at the optimum of every _WARM_STEP-th row. Small chunks
# use more of their rows, at least _WARM_ROWS.
_WARM_FROM, _WARM_STEP, _WARM_ROWS = 5_000, 16, 300
# If rows are sorted, a chunk may contain a single class and have an extreme optimum. Limit the
# influence of such chunks on the mean over chunks.
_CHUNK_LIMIT = 3.0


def find_log_beta(sample: Sample, *, prior_scale: float | None = None) -> Solution:
    """Find the ``t = log beta`` that minimizes the mean log-loss.

    A Gaussian prior of scale s adds ``t^2 / (2 n s^2)``. Adding a constant to a row of scores does
    not change the result. For few scores, the search uses double precision. For many scores, the
    search starts at the optimum of a subsample and uses single precision first. The search then
    usually needs one last pass in double precision.
    """
    size = sample.shape[0] * sample.shape[1]
    with one_blas_thread(size):
        loss = TemperatureLoss(sample, prior_scale)
        if size <= _FEW_SCORES:
            return name_cause(minimize_scalar(partial(loss, n_powers=4), 0.0, ERROR).solution)
        near = _approach(loss, prior_scale)
        start = float(near.solution.parameters[0])
        # A third derivative that was estimated, or computed in single precision, is not accurate
        # enough for the last step.
        before = near.point._replace(slopes=near.point.slopes[:2])
        return name_cause(minimize_scalar(loss, start, ERROR, before=before).solution)


def _approach(loss: TemperatureLoss, prior_scale: float | None) -> SearchResult:
    """Find a point close to the optimum by passes in single precision over all rows."""
    if loss.sample.shape[0] < _WARM_FROM:
        return minimize_scalar(partial(loss, is_rough=True, n_powers=4), 0.0, _ROUGH_ERROR)
    start, bend = subsample_optimum(loss.sample, prior_scale)
    return minimize_scalar(partial(loss, is_rough=True, bend=bend), start, _ROUGH_ERROR)


def subsample_optimum(sample: Sample, prior_scale: float | None = None) -> tuple[float, float]:
    """Return the mean over chunks of the optimal log beta for evenly spaced rows of a chunk.

    The second number is the ratio of the third to the second derivative at this optimum.
    """
    limit = _CHUNK_LIMIT if sample.n_chunks > 1 else np.inf
    total, start, bend = sample.sum_chunks(partial(_start_sums, prior_scale, limit)).tolist()
    return (start / total, bend / total) if total > 0 else (0.0, 0.0)


def _start_sums(prior_scale: float | None, limit: float, chunk: ArraySample) -> FloatArray:
    """Return the weight of a chunk, and its products with two numbers.

    The numbers are the optimum of evenly spaced rows of the chunk, and the ratio of the third to
    the second derivative at this optimum.
    """
    rows = chunk.every(min(_WARM_STEP, max(1, chunk.shape[0] // _WARM_ROWS)))
    if not rows.weight.any():
        return np.zeros(3)
    loss = TemperatureLoss(rows, prior_scale)
    result = minimize_scalar(partial(loss, is_rough=True, n_powers=4), 0.0, _ROUGH_ERROR)
    slopes = result.point.slopes
    bend = slopes[2] / slopes[1] if len(slopes) > 2 and slopes[1] > 0 else 0.0
    # A chunk with a single class, as in sorted data, has no finite optimum.
    t = np.clip(result.solution.parameters[0], -limit, limit)
    return chunk.total * np.array([1.0, t, bend])
