r"""The penalised log-loss of a score map, as sums over row blocks.

.. math:: \frac1n \sum_i w_i \big( \log \sum_k e^{s_{ik}} - s_{i y_i} \big) + \text{penalty},
    \qquad n = \sum_i w_i .
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calibrant._blocks import BLOCK_ELEMENTS, KEEP_ELEMENTS, Rows, map_blocks, sum_blocks
from calibrant._optim.maps import Blocks, ScoreMap, Solve, dense_solve
from calibrant._optim.penalties import QuadraticPenalty
from calibrant._simplex import MODERATE, row_max, row_sum, true_class
from calibrant._typing import FloatArray, IntArray

FEW_PARAMETERS = 500
"""Up to this many parameters the whole Hessian is made and factorised."""


BLOCK_ROWS, LEAST_BLOCK_ROWS = 6, 512
"""Rows that the blocks of a preconditioner are made of: so many for each of their columns, and so
many more. It need not be exact, and costs K times as much as a product."""

MATRIX_PARAMETERS, MATRIX_ROWS = 100, 2_000
"""From so many parameters of a matrix and so many rows on, products with the Hessian and blocks on
its diagonal cost less than the whole."""


def _is_dense(score_map: ScoreMap, n_rows: int) -> bool:
    """Whether the whole Hessian is worth making."""
    size = score_map.shape[0] * score_map.shape[1]
    is_matrix = score_map.shape[0] > 2
    if is_matrix and size > MATRIX_PARAMETERS and n_rows >= MATRIX_ROWS:
        return False
    return size <= FEW_PARAMETERS


class Objective:
    """Value, gradient and curvature of the mean penalised log-loss at given parameters.

    Memory beside the data: a block, arrays of the size of the parameters, and, for data of at most
    ``KEEP_ELEMENTS`` elements, the probabilities of the last point and a single-precision copy of
    the data, which the products of many- parameter problems use: their errors of 1e-7 only slow
    conjugate gradients down, which correct themselves.
    """

    def __init__(
        self,
        score_map: ScoreMap,
        penalty: QuadraticPenalty,
        u: Rows,
        y: IntArray,
        weight: FloatArray,
    ) -> None:
        self.map = score_map
        self.penalty = penalty
        self.u = u
        self.y = y
        self.total = float(weight.sum())
        self.weight = np.asarray(weight) / self.total
        self.n_rows, self.n_classes = u.shape
        self.is_small = _is_dense(score_map, self.n_rows)
        self._is_large = self.n_rows >= MATRIX_ROWS
        self.keeps = self.n_rows * self.n_classes <= KEEP_ELEMENTS
        self._dtype = np.float64 if self.is_small else np.float32
        self._kept: dict[int, tuple[FloatArray, FloatArray]] = {}
        curvature = penalty.curvature
        self._gauge_normal = np.where(
            curvature.any(axis=score_map.gauge()[0], keepdims=True), curvature, 1.0
        )
        self._kept_at: FloatArray | None = None
        is_matrix = score_map.shape[0] > 2
        # A matrix product needs rows; without one, enough of them to outweigh a gradient.
        self._elements = max(BLOCK_ELEMENTS, (256 if is_matrix else 8) * self.n_classes)
        # A matrix product costs K operations an element, the rest of a pass about sixteen.
        self._work = 1 + (self.n_classes // 16 if is_matrix else 0)

    def _sum(self, function: Callable[[slice], Any]) -> Any:
        return sum_blocks(
            function, self.n_rows, self.n_classes, elements=self._elements, work=self._work
        )

    def value_and_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Objective and its gradient, of the shape of the parameters."""
        self._kept.clear()
        self._kept_at = theta
        loss, gradient = self._sum(partial(self._loss_block, theta))
        return float(loss) + self.penalty.value(theta), gradient + self.penalty.gradient(theta)

    def _loss_block(self, theta: FloatArray, rows: slice) -> tuple[float, FloatArray]:
        u, y, weight = self.u[rows], self.y[rows], self.weight[rows]
        s = self.map.apply(theta, u)
        index = np.arange(len(y))
        if not (self._is_large and s.min() >= -MODERATE and s.max() <= MODERATE):
            s -= row_max(s)[:, None]
        true = true_class(s, y)
        p = np.exp(s, out=s)
        norm = row_sum(p)
        p /= norm[:, None]
        if self.keeps:
            self._kept[rows.start] = (np.asarray(u, dtype=self._dtype), p.astype(self._dtype))
        loss = weight @ (np.log(norm) - true)
        p[index, y] -= 1.0
        p *= weight[:, None]
        return float(loss), self.map.pullback(p, u)

    def _proba_block(self, theta: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Scores and probabilities of a block at ``theta``."""
        if self.keeps and theta is self._kept_at:
            return self._kept[rows.start]
        u = self.u[rows]
        s = self.map.apply(theta, u)
        s -= row_max(s)[:, None]
        p = np.exp(s, out=s)
        p /= row_sum(p)[:, None]
        return u, p

    def hessian_product(self, theta: FloatArray, direction: FloatArray) -> FloatArray:
        """Hessian at ``theta`` times ``direction``; at the point of the last `value_and_gradient`
        it reuses its work.
        """
        product = self._sum(partial(self._product_block, theta, direction))
        return product + self.penalty.hessian_diagonal * direction

    def _product_block(self, theta: FloatArray, direction: FloatArray, rows: slice) -> FloatArray:
        u, p = self._proba_block(theta, rows)
        t = self.map.apply(direction.astype(u.dtype), u)
        t -= np.einsum("ij,ij->i", p, t)[:, None]
        t *= p
        t *= self.weight[rows, None].astype(u.dtype)
        return self.map.pullback(t, u).astype(np.float64)

    def in_gauge(self, direction: FloatArray) -> FloatArray:
        """The part of a direction that keeps the penalty's choice among parameters of equal
        probabilities.

        Adding a constant to a line of parameters changes no probability; among these the penalty
        prefers ``sum curvature * (theta - centre) = 0`` on the line. Conjugate gradients that stay
        there need half the products.
        """
        axis, mask = self.map.gauge()
        normal = self._gauge_normal
        excess = (normal * direction).sum(axis=axis, keepdims=True) / (normal**2).sum(
            axis=axis, keepdims=True
        )
        return direction - mask * normal * excess

    def gauged(self, theta: FloatArray) -> FloatArray:
        """Parameters of the same probabilities that the penalty prefers."""
        axis, mask = self.map.gauge()
        normal = self._gauge_normal
        centre = np.where(
            self.penalty.curvature.any(axis=axis, keepdims=True), self.penalty.centre, theta
        )
        excess = (normal * (theta - centre)).sum(axis=axis, keepdims=True) / normal.sum(
            axis=axis, keepdims=True
        )
        return theta - mask * excess

    def settled(self, theta: FloatArray, start: FloatArray) -> FloatArray:
        """Parameters of the same probabilities that the penalty prefers, or, where nothing is
        penalised, that have not drifted from the start: round-off moves them.
        """
        axis, mask = self.map.gauge()
        theta = self.gauged(theta)
        drift = (theta - start).mean(axis=axis, keepdims=True)
        is_free = ~self.penalty.curvature.any(axis=axis, keepdims=True)
        return theta - mask * np.where(is_free, drift, 0.0)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """The whole Hessian of the log-loss, without the penalty, (P, P)."""

        def of_rows(rows: slice) -> FloatArray:
            u, p = self._proba_block(theta, rows)
            return self.map.curvature(p, u, np.asarray(self.weight[rows]))

        return self._sum(of_rows)

    def solver(self, theta: FloatArray) -> Solve:
        """Products with the inverse Hessian: exact for few parameters, of the blocks on its
        diagonal for many.
        """
        diagonal = self.penalty.hessian_diagonal
        if self.is_small:
            return dense_solve(self.hessian(theta), diagonal)

        return self.map.block_solve(self._blocks(theta), diagonal)

    def _blocks(self, theta: FloatArray) -> Blocks:
        """The sums that a preconditioner is made of, from evenly spaced rows that are enough."""
        step = max(1, self.n_rows // (BLOCK_ROWS * self.map.shape[1] + LEAST_BLOCK_ROWS))

        def of_rows(rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
            u, p = self._proba_block(theta, rows)
            # Copies: a view of a few rows would keep its whole block.
            return p[::step].copy(), u[::step].copy(), np.array(self.weight[rows][::step])

        if step == 1:
            return self._sum(lambda rows: self.map.blocks(*of_rows(rows)))
        some = map_blocks(of_rows, self.n_rows, self.n_classes, elements=self._elements)
        p, u, weight = (np.concatenate(parts) for parts in zip(*some, strict=True))
        # Weights are shares of one; those of the rows that are left out go to the others.
        return self.map.blocks(p, u, weight / weight.sum() if weight.any() else weight)
