r"""Functions from log scores ``u`` of shape (m, K) to logits ``s`` of shape (m, K).

All of these functions are linear in their parameters. A second-order solver for the log-loss of
:math:`p = \mathrm{softmax}(s)` needs only two operations. ``apply`` turns parameters into logits.
The transpose ``pullback`` of this operation turns a gradient with respect to logits into a gradient
with respect to parameters. ``curvature`` and ``blocks`` are sums over rows of

.. math:: w_i\, (\mathrm{diag}(p_i) - p_i p_i^\top) \otimes x_i x_i^\top

and are computed by matrix products. ``curvature`` is the whole Hessian, for few parameters.
``blocks`` are the diagonal blocks of the Hessian, which precondition conjugate gradients for many
parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, lapack

from calibrant._kernels.simplex import TINY
from calibrant._typing import FloatArray

Blocks = tuple[FloatArray, ...]
"""Sums over rows that define a preconditioner."""

BLOCK_CLASSES = 160
"""Up to this many classes, the preconditioner has one block per class. 160 blocks of 161 x 161
numbers take 33 MB."""

Solve = Callable[[FloatArray], FloatArray]
"""Function that multiplies an array of parameters by an approximate inverse Hessian."""


class ScoreMap(Protocol):
    """The interface of a score function for the solvers. Parameters are arrays of ``shape``."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def identity(self) -> FloatArray: ...
    def features(self, u: FloatArray) -> FloatArray:
        """Return features that the other methods accept in place of ``u``.

        The features are computed once and reused.
        """
        ...

    def apply(self, theta: FloatArray, u: FloatArray) -> FloatArray: ...
    def pullback(self, gradient: FloatArray, u: FloatArray) -> FloatArray: ...
    def curvature(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> FloatArray: ...
    def blocks(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> Blocks: ...
    def block_solve(self, blocks: Blocks, diagonal: FloatArray) -> Solve: ...
    def gauge(self) -> tuple[int, FloatArray]:
        """Return the axis along which adding a constant changes no probability, and a mask.

        The mask is 1 for the lines of parameters to which a constant may be added.
        """
        ...


@dataclass(frozen=True)
class DiagonalMap:
    """``s_k = d_k u_k + b_k`` with parameters ``[d; b]`` of shape (2, K)."""

    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        return (2, self.n_classes)

    def identity(self) -> FloatArray:
        return np.stack([np.ones(self.n_classes), np.zeros(self.n_classes)])

    def features(self, u: FloatArray) -> FloatArray:
        return u

    def apply(self, theta: FloatArray, u: FloatArray) -> FloatArray:
        out = u * theta[0]
        out += theta[1]
        return out

    def pullback(self, gradient: FloatArray, u: FloatArray) -> FloatArray:
        return np.stack([_column_sums(gradient * u), _column_sums(gradient)])

    def curvature(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> FloatArray:
        """Sum of the Hessian over rows, (2K, 2K)."""
        z = np.hstack([p * u, p])
        total = -(z * weight[:, None]).T @ z
        square, cross, plain = self._moments(p, u, weight)
        k = np.arange(self.n_classes)
        total[k, k] += square
        total[k, k + self.n_classes] += cross
        total[k + self.n_classes, k] += cross
        total[k + self.n_classes, k + self.n_classes] += plain
        return total

    def blocks(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> Blocks:
        """Sum the 2 x 2 blocks of the classes over rows, and return d d, d b and b b, (K,) each."""
        return self._moments(p * (1.0 - p), u, weight)

    @staticmethod
    def _moments(
        a: FloatArray, u: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        aw = a * weight[:, None]
        awu = aw * u
        return _column_sums(awu * u), _column_sums(awu), _column_sums(aw)

    def block_solve(self, blocks: Blocks, diagonal: FloatArray) -> Solve:
        a, b, c = blocks[0] + diagonal[0], blocks[1], blocks[2] + diagonal[1]
        # A class whose probability is always close to zero has no curvature. A small ridge keeps
        # the blocks invertible. The determinant may round to a negative number, so it has a lower
        # bound.
        floor = 1e-10 * (a.mean() + c.mean()) + TINY
        a, c = a + floor, c + floor
        determinant = a * c - b * b
        determinant = np.maximum(determinant, 1e-12 * a * c)

        def solve(v: FloatArray) -> FloatArray:
            return np.stack([c * v[0] - b * v[1], a * v[1] - b * v[0]]) / determinant

        return solve

    def gauge(self) -> tuple[int, FloatArray]:
        """Adding a constant to all intercepts changes no probability."""
        return 1, np.array([[0.0], [1.0]])


@dataclass(frozen=True)
class AffineMap:
    """``s = W u + b`` with parameters ``[W | b]`` of shape (K, K + 1), one row per class."""

    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n_classes, self.n_classes + 1)

    def identity(self) -> FloatArray:
        return np.eye(self.n_classes, self.n_classes + 1)

    def features(self, u: FloatArray) -> FloatArray:
        """Append a column of ones to ``u``, so intercepts are part of the matrix product."""
        if u.shape[1] > self.n_classes:
            return u
        x = np.empty((len(u), self.n_classes + 1), dtype=u.dtype)
        x[:, :-1] = u
        x[:, -1] = 1.0
        return x

    def apply(self, theta: FloatArray, u: FloatArray) -> FloatArray:
        if u.shape[1] > self.n_classes:
            return u @ theta.T
        out = u @ theta[:, :-1].T
        out += theta[:, -1]
        return out

    def pullback(self, gradient: FloatArray, u: FloatArray) -> FloatArray:
        if u.shape[1] > self.n_classes:
            return gradient.T @ u
        out = np.empty(self.shape, dtype=gradient.dtype)
        np.matmul(gradient.T, u, out=out[:, :-1])
        out[:, -1] = _column_sums(gradient)
        return out

    def curvature(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> FloatArray:
        """Sum of the Hessian over rows, (K (K + 1), K (K + 1))."""
        n_rows, width = len(u), self.n_classes + 1
        x = self.features(u)
        z = (p[:, :, None] * x[:, None, :]).reshape(n_rows, -1)
        zw = z * weight[:, None]
        # The first matrix product is the term -p p' of the softmax. The second is the term diag(p),
        # which only the diagonal blocks have.
        total = -(zw.T @ z)
        diagonal = (x.T @ zw).reshape(width, self.n_classes, width)
        for k in range(self.n_classes):
            part = slice(k * width, (k + 1) * width)
            total[part, part] += diagonal[:, k, :]
        return total

    def blocks(self, p: FloatArray, u: FloatArray, weight: FloatArray) -> Blocks:
        """Sum over rows of the diagonal block of each class, (K, K + 1, K + 1).

        K blocks need K^3 numbers. For more than ``BLOCK_CLASSES`` classes, the block of class k is
        approximated by the sum of all blocks times the share a_k / sum(a). This approximation needs
        only the sum of all blocks, (K + 1, K + 1), and a, (K,).
        """
        x = self.features(u)
        a = (p * (1.0 - p) * weight[:, None]).astype(u.dtype)
        if self.n_classes > BLOCK_CLASSES:
            return (x * a.sum(axis=1, keepdims=True)).T @ x, a.sum(axis=0)
        return (np.stack([(x * a[:, [k]]).T @ x for k in range(self.n_classes)]),)

    def block_solve(self, blocks: Blocks, diagonal: FloatArray) -> Solve:
        return (
            _shared_solve(*blocks, diagonal)
            if len(blocks) == 2
            else self._separate_solve(blocks[0], diagonal)
        )

    def _separate_solve(self, blocks: FloatArray, diagonal: FloatArray) -> Solve:
        """Return a function that multiplies by the inverse of each block.

        The inverses are computed once, so each product is one batched multiplication.
        """
        width = self.n_classes + 1
        inverse = np.empty((self.n_classes, width, width))
        for k in range(self.n_classes):
            factor, _ = _cholesky(blocks[k].astype(np.float64), diagonal[k], 1e-10)
            # LAPACK fills only the lower triangle. The code after the loop copies the lower
            # triangle to the upper triangle.
            inverse[k], _ = lapack.dpotri(factor, lower=True)
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).transpose(0, 2, 1)

        def solve(v: FloatArray) -> FloatArray:
            return np.einsum("kij,kj->ki", inverse, v)

        return solve

    def gauge(self) -> tuple[int, FloatArray]:
        """Adding a constant to a column, or to all intercepts, changes no probability."""
        return 0, np.ones((1, self.n_classes + 1))


def _column_sums(array: FloatArray) -> FloatArray:
    """``array.sum(axis=0)`` as a matrix product, which is several times faster for short rows."""
    return np.ones(len(array), dtype=array.dtype) @ array


def _shared_solve(gram: FloatArray, share: FloatArray, diagonal: FloatArray) -> Solve:
    """Return a function that multiplies by inverses of ``share_k / sum(share) gram + median I``.

    All classes share one eigendecomposition of ``gram``, which is possible because the penalty is a
    multiple of the identity for most parameters of a class. The few parameters with another penalty
    (diagonal weight and intercept) are divided by their own curvature instead.
    """
    scale, basis = np.linalg.eigh(gram.astype(np.float64))
    fraction = (share / share.sum())[:, None]
    median_penalty = np.median(diagonal, axis=1, keepdims=True)
    is_usual = diagonal == median_penalty
    # Round-off may make eigenvalues slightly negative.
    curvature = np.maximum(scale, 0.0) * fraction + median_penalty
    diagonal_curvature = np.diag(gram) * fraction + diagonal
    floor = 1e-10 * curvature.max() + np.finfo(float).tiny

    def solve(v: FloatArray) -> FloatArray:
        product = ((np.where(is_usual, v, 0.0) @ basis) / (curvature + floor)) @ basis.T
        return np.where(is_usual, product, v / (diagonal_curvature + floor))

    return solve


def dense_solve(hessian: FloatArray, diagonal: FloatArray) -> Solve:
    """Return a function that multiplies by the inverse of a dense Hessian plus a diagonal.

    A small ridge keeps flat directions, in which the gradient is zero up to round-off, almost
    unchanged.
    """
    factor = _cholesky(hessian, diagonal.ravel(), 1e-11)
    return lambda v: np.asarray(cho_solve(factor, v.ravel(), check_finite=False)).reshape(v.shape)


def _cholesky(matrix: FloatArray, diagonal: FloatArray, ridge: float) -> tuple[FloatArray, bool]:
    """Cholesky factor of ``matrix + diag(diagonal)`` plus a ridge.

    The ridge is relative to the largest curvature and is increased until the matrix is positive
    definite. Directions that do not change probabilities have zero curvature, which round-off may
    make negative.
    """
    index = np.arange(len(matrix))
    largest = np.abs(matrix[index, index] + diagonal).max() + np.finfo(float).tiny
    while True:
        total = matrix.copy()
        total[index, index] += diagonal + ridge * largest
        try:
            return cho_factor(total, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100.0  # the loop ends at the latest when the ridge dominates every row
