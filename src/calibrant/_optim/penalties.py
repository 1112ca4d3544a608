"""Quadratic penalties of parameters: ``sum_j curvature_j (theta_j - center_j)^2``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticPenalty:
    """A ridge penalty toward ``center`` with a weight ``curvature`` for each parameter."""

    curvature: FloatArray
    center: FloatArray

    def value(self, theta: FloatArray) -> float:
        return float((self.curvature * (theta - self.center) ** 2).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        return 2.0 * self.curvature * (theta - self.center)

    @property
    def hessian_diagonal(self) -> FloatArray:
        return 2.0 * self.curvature


def _affine(
    diagonal: float, off_diagonal: float, intercept: float, center: FloatArray, n_classes: int
) -> QuadraticPenalty:
    """A penalty of affine parameters ``[W | b]``, (K, K + 1), with a weight per parameter group."""
    curvature = np.full((n_classes, n_classes + 1), off_diagonal)
    np.fill_diagonal(curvature, diagonal)
    curvature[:, -1] = intercept
    return QuadraticPenalty(curvature, center)


def off_diagonal_and_intercept(lam: float, mu: float, n_classes: int) -> QuadraticPenalty:
    """ODIR: ``lam sum_{k != l} W_kl^2 + mu sum_k b_k^2`` (Kull et al. 2019).

    The penalty uses sums over the parameters, not means. The diagonal is not penalized.
    """
    return _affine(0.0, lam, mu, np.zeros((n_classes, n_classes + 1)), n_classes)


def ridge_to_zero(lam: float, n_classes: int) -> QuadraticPenalty:
    """L2: ``lam (sum_kl W_kl^2 + sum_k b_k^2)``."""
    return _affine(lam, lam, lam, np.zeros((n_classes, n_classes + 1)), n_classes)


def ridge_to_identity(
    diagonal: float, off_diagonal: float, intercept: float, n_classes: int
) -> QuadraticPenalty:
    """A ridge toward the identity, with separate weights.

    ``diagonal sum_k (W_kk - 1)^2 + off_diagonal sum_{k != l} W_kl^2 + intercept sum_k b_k^2``.
    """
    return _affine(diagonal, off_diagonal, intercept, np.eye(n_classes, n_classes + 1), n_classes)


def diagonal_ridge_to_identity(
    diagonal: float, intercept: float, n_classes: int
) -> QuadraticPenalty:
    """``diagonal sum_k (d_k - 1)^2 + intercept sum_k b_k^2`` for parameters ``[d; b]``, (2, K)."""
    curvature = np.repeat([[diagonal], [intercept]], n_classes, axis=1)
    return QuadraticPenalty(curvature, np.stack([np.ones(n_classes), np.zeros(n_classes)]))


def no_penalty(shape: tuple[int, int]) -> QuadraticPenalty:
    """A penalty of zero."""
    return QuadraticPenalty(np.zeros(shape), np.zeros(shape))
