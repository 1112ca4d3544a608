r"""The penalized log-loss of a score function, as sums over row blocks.

.. math:: \frac1n \sum_i w_i \big( \log \sum_k e^{s_{ik}} - s_{i y_i} \big) + \text{penalty},
    \qquad n = \sum_i w_i .
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calibrant._data.sample import RowBlock, Sample
from calibrant._kernels.blocks import CACHE_BLOCK, THREAD_WORK, WORK_MEMORY
from calibrant._kernels.simplex import MODERATE, row_max, row_sum, true_class
from calibrant._optim.maps import Blocks, ScoreMap, Solve, dense_solve
from calibrant._optim.penalties import QuadraticPenalty
from calibrant._typing import FloatArray

FEW_PARAMETERS = 500
"""Up to this many parameters, the whole Hessian is computed and factorized."""

BROUGHT_PARAMETERS = 40
"""Up to this many parameters, summing the Hessian in the pass of the gradient costs less than the
products that it saves. The number applies to data in memory that every pass transforms again."""

BLOCK_ROWS, LEAST_BLOCK_ROWS = 6, 512
"""The blocks of a preconditioner are computed from BLOCK_ROWS rows per column plus LEAST_BLOCK_ROWS
rows. The blocks cost K times as much as a product with the Hessian, and need not be exact."""

MATRIX_PARAMETERS, MATRIX_ROWS = 100, 2_000
"""For a matrix with more parameters, and at least this many rows, products with the Hessian and its
diagonal blocks are cheaper than the whole Hessian."""


def _is_dense(score_map: ScoreMap, n_rows: int, pass_cost: float) -> bool:
    """Return whether to compute the whole Hessian in one pass, instead of one pass per product."""
    size = score_map.shape[0] * score_map.shape[1]
    is_matrix = score_map.shape[0] > 2
    if is_matrix and n_rows >= MATRIX_ROWS and size > MATRIX_PARAMETERS * pass_cost:
        return False
    return size <= FEW_PARAMETERS


class Objective:
    """Value, gradient and curvature of the mean penalized log-loss at given parameters.

    The objective needs memory for a block and for arrays of the size of the parameters. For data of
    at most ``WORK_MEMORY`` elements, the objective also keeps the probabilities of the last point
    and a single-precision copy of the data. Problems with many parameters use the copy for
    products. Errors of 1e-7 in the products only slow down the search, because gradients are
    computed in double precision.
    """

    def __init__(
        self,
        score_map: ScoreMap,
        penalty: QuadraticPenalty,
        sample: Sample,
    ) -> None:
        self.map = score_map
        self.penalty = penalty
        self.sample = sample.normalized()
        self.n_rows, self.n_classes = sample.shape
        self.is_small = _is_dense(score_map, self.n_rows, sample.pass_cost)
        # Equal weights are the usual case. A common weight factors out of the sums, which saves a
        # product.
        self._even = self.sample.even_weight
        self._is_large = self.n_rows >= MATRIX_ROWS
        self.keeps = self.n_rows <= (sample.kept_rows(WORK_MEMORY // self.n_classes) or 0)
        # If every pass reads or transforms the data, the pass for the gradient also sums the
        # Hessian.
        is_cheap = penalty.curvature.size <= BROUGHT_PARAMETERS * sample.pass_cost
        self.brings_hessian = self.is_small and is_cheap and not self.keeps
        self._hessian: FloatArray | None = None
        self._dtype = np.float64 if self.is_small else np.float32
        self._kept: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._features: dict[int, FloatArray] = {}
        self._kept_at: FloatArray | None = None
        curvature = penalty.curvature
        self._gauge_normal = np.where(
            curvature.any(axis=score_map.gauge()[0], keepdims=True), curvature, 1.0
        )
        is_matrix = score_map.shape[0] > 2
        # Matrix products are efficient from about 256 rows per block. Without matrix products, two
        # rows are enough, so blocks of many classes stay small.
        self._elements = max(CACHE_BLOCK, (256 if is_matrix else 2) * self.n_classes)
        if is_matrix and self.brings_hessian:  # the Hessian expands each column to K + 1 columns
            size = 4 * CACHE_BLOCK // (self.n_classes + 1)
            self._elements = max(size, 256 * self.n_classes)
        # A matrix product costs K operations per element, and all other steps of a pass cost about
        # sixteen operations.
        self._work = 1 + (self.n_classes // 16 if is_matrix else 0)
        self._block = self.sample.whole_block(min(self._elements, THREAD_WORK // self._work))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that another process needs, without data or caches."""
        data = {"sample": None, "_block": None, "_hessian": None}
        return {**vars(self), **data, "_kept": {}, "_features": {}}

    def _sum(self, function: Callable[[RowBlock], Any]) -> Any:
        if self._block is not None:
            return function(self._block)
        return self.sample.sum(function, elements=self._elements, work=self._work)

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, which has the shape of the parameters."""
        self._kept.clear()
        self._kept_at = theta
        loss, gradient, *hessian = self._sum(partial(self._loss_block, theta))
        self._hessian = hessian[0] if hessian else None
        return float(loss) + self.penalty.value(theta), gradient + self.penalty.gradient(theta)

    def _loss_block(self, theta: FloatArray, block: RowBlock) -> tuple[Any, ...]:
        u, y, weight, start = block
        s = self.map.apply(theta, u)
        index = np.arange(len(y))
        # Exponentials of moderate logits cannot overflow. For large data, this check takes less
        # time than the row maximum, which it usually replaces.
        if not (self._is_large and s.min() >= -MODERATE and s.max() <= MODERATE):
            s -= row_max(s)[:, None]
        true = true_class(s, y)
        p = np.exp(s, out=s)
        norm = row_sum(p)
        p /= norm[:, None]
        if self.keeps:
            self._keep(u, p, start)
        loss = np.log(norm) - true
        hessian = [self.map.curvature(p, u, np.asarray(weight))] if self.brings_hessian else []
        p[index, y] -= 1.0
        if self._even is not None:
            return self._even * float(loss.sum()), self._even * self.map.pullback(p, u), *hessian
        p *= weight[:, None]
        return float(weight @ loss), self.map.pullback(p, u), *hessian

    def _keep(self, u: FloatArray, p: FloatArray, start: int) -> None:
        """Cache the probabilities at this point, and the features of the rows, for products."""
        x = self._features.get(start)
        if x is None:
            x = self._features[start] = self.map.features(np.asarray(u, dtype=self._dtype))
        self._kept[start] = x, p.astype(self._dtype)

    def _proba_block(self, theta: FloatArray, block: RowBlock) -> tuple[FloatArray, FloatArray]:
        """Scores and probabilities of a block at ``theta``."""
        if self.keeps and theta is self._kept_at:
            return self._kept[block.start]
        u = block.u
        s = self.map.apply(theta, u)
        s -= row_max(s)[:, None]
        p = np.exp(s, out=s)
        p /= row_sum(p)[:, None]
        return u, p

    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Hessian at ``theta`` times ``direction``.

        If ``theta`` is the point of the last `value_and_gradient`, cached probabilities or the
        cached Hessian are used.
        """
        if self._hessian is not None and theta is self._kept_at:
            product = (self._hessian @ direction.ravel()).reshape(direction.shape)
        else:
            product = self._sum(partial(self._product_block, theta, direction))
        return product + self.penalty.hessian_diagonal * direction

    def _product_block(
        self, theta: FloatArray, direction: FloatArray, block: RowBlock
    ) -> FloatArray:
        u, p = self._proba_block(theta, block)
        t = self.map.apply(direction.astype(u.dtype), u)
        t -= np.einsum("ij,ij->i", p, t)[:, None]
        t *= p
        if self._even is not None:
            return self._even * self.map.pullback(t, u).astype(np.float64)
        t *= block.weight[:, None].astype(u.dtype)
        return self.map.pullback(t, u).astype(np.float64)

    def in_gauge(self, direction: FloatArray) -> FloatArray:
        """Project a direction so that steps stay among the parameters that the penalty prefers.

        Adding a constant to a line of parameters changes no probability. Among such parameters, the
        penalty prefers ``sum curvature * (theta - center) = 0`` on the line. Conjugate gradients on
        this subspace need half the products.
        """
        axis, mask = self.map.gauge()
        normal = self._gauge_normal
        excess = (normal * direction).sum(axis=axis, keepdims=True) / (normal**2).sum(
            axis=axis, keepdims=True
        )
        return direction - mask * normal * excess

    def gauged(self, theta: FloatArray) -> FloatArray:
        """Return the parameters with the same probabilities that the penalty prefers."""
        axis, mask = self.map.gauge()
        normal = self._gauge_normal
        center = np.where(
            self.penalty.curvature.any(axis=axis, keepdims=True), self.penalty.center, theta
        )
        excess = (normal * (theta - center)).sum(axis=axis, keepdims=True) / normal.sum(
            axis=axis, keepdims=True
        )
        return theta - mask * excess

    def without_drift(self, theta: FloatArray, start: FloatArray) -> FloatArray:
        """Return the parameters with the same probabilities that the penalty prefers.

        Without a penalty, remove the drift from the start, because round-off moves parameters along
        directions without curvature.
        """
        axis, mask = self.map.gauge()
        theta = self.gauged(theta)
        drift = (theta - start).mean(axis=axis, keepdims=True)
        is_free = ~self.penalty.curvature.any(axis=axis, keepdims=True)
        return theta - mask * np.where(is_free, drift, 0.0)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """The whole Hessian of the log-loss, without the penalty, (P, P)."""
        if self._hessian is not None and theta is self._kept_at:
            return self._hessian
        return self._sum(partial(self._hessian_block, theta))

    def _hessian_block(self, theta: FloatArray, block: RowBlock) -> FloatArray:
        u, p = self._proba_block(theta, block)
        return self.map.curvature(p, u, np.asarray(block.weight))

    def solver(self, theta: FloatArray) -> Solve:
        """Return a function that multiplies by the inverse Hessian or by its inverse blocks."""
        diagonal = self.penalty.hessian_diagonal
        if self.is_small:
            return dense_solve(self.hessian(theta), diagonal)

        return self.map.block_solve(self._blocks(theta), diagonal)

    def _blocks(self, theta: FloatArray) -> Blocks:
        """The sums that define a preconditioner, from evenly spaced rows."""
        step = max(1, self.n_rows // (BLOCK_ROWS * self.map.shape[1] + LEAST_BLOCK_ROWS))

        if step == 1:
            return self._sum(lambda block: self.map.blocks(*self._some_rows(theta, 1, block)[0]))
        rows = self._sum(partial(self._some_rows, theta, step))
        p, u, weight = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        # All weights sum to one, so the weights of a subsample must be rescaled to sum to one.
        return self.map.blocks(p, u, weight / weight.sum() if weight.any() else weight)

    def _some_rows(
        self, theta: FloatArray, step: int, block: RowBlock
    ) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Probabilities, scores and weights of evenly spaced rows of a block.

        The result is a list, because the sum of the lists of all blocks is then a list of all
        blocks.
        """
        u, p = self._proba_block(theta, block)
        rows = slice(-block.start % step, None, step)
        # Copy the rows, because a view would keep the memory of its whole block.
        return [(p[rows].copy(), u[rows].copy(), np.array(block.weight[rows]))]
