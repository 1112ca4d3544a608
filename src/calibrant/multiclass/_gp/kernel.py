"""Features of a Gaussian process on the real line with inducing inputs, and their gradients.

With the kernel ``v exp(-(x - x')^2 / (2 l^2))``, inducing inputs ``w_1..w_M`` and the Cholesky
factor ``L L' = K_w`` of their covariance, the *feature* of a scalar ``x`` is the vector ``a(x) =
L^-1 k(w, x)``. A latent function with whitened inducing variables ``e ~ N(0, I)`` has mean ``a(x) .
e`` at ``x``. The inducing inputs do not explain the variance ``v + noise - |a(x)|^2`` at ``x``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from calibrant._typing import FloatArray

# Share of the variance added to the diagonal of K_w, which is singular if inducing inputs coincide.
_JITTER = 1e-8


class Kernel(NamedTuple):
    """Variance and lengthscale of an RBF kernel, and variance of the white noise."""

    variance: float
    lengthscale: float
    noise: float


def rbf(x: FloatArray, center: FloatArray, kernel: Kernel) -> FloatArray:
    """Return ``v exp(-(x_i - c_j)^2 / (2 l^2))`` over the last axes, the kernel without noise."""
    out = x[..., None] - center[..., None, :]
    out *= out
    out *= -0.5 / kernel.lengthscale**2
    np.exp(out, out=out)
    out *= kernel.variance
    return out


class InducingInputs:
    """Kernel and inducing inputs with their Cholesky factor.

    The white noise is independent for all evaluations of the latent function, including the
    evaluations at the inducing inputs. So the noise is part of the diagonal of ``K_w``, but not of
    ``k(w, x)``.
    """

    def __init__(self, kernel: Kernel, inputs: FloatArray) -> None:
        self.kernel = kernel
        self.inputs = inputs
        prior = rbf(inputs, inputs, kernel)
        prior[np.diag_indices(len(inputs))] += kernel.noise + _JITTER * kernel.variance
        self.root = cholesky(prior, lower=True)
        self._inverse = solve_triangular(self.root, np.eye(len(inputs)), lower=True)

    def features(self, x: FloatArray) -> FloatArray:
        """Return ``a(x)`` with shape ``x.shape + (M,)``."""
        return rbf(x, self.inputs, self.kernel) @ self._inverse.T

    def slopes(self, x: FloatArray) -> FloatArray:
        """Return ``da/dx`` with shape ``x.shape + (M,)``."""
        scaled = (self.inputs - x[..., None]) / self.kernel.lengthscale**2
        return (rbf(x, self.inputs, self.kernel) * scaled) @ self._inverse.T

    def weights(self, mean: FloatArray) -> FloatArray:
        """Return the coefficients ``alpha`` with ``a(x) . mean = sum_j alpha_j k(x, w_j)``."""
        return self._inverse.T @ mean

    def whitened(self, values: FloatArray) -> FloatArray:
        """Return the whitened mean of a function with given values at the inducing inputs."""
        return self._inverse @ values

    def unexplained(self, features: FloatArray) -> FloatArray:
        """Return ``v + noise - |a(x)|^2``, but at least the noise."""
        explained = np.einsum("...m,...m->...", features, features)
        return np.maximum(self.kernel.variance - explained, 0.0) + self.kernel.noise

    def pulled(
        self, x: FloatArray, features: FloatArray, slope: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return sums over scores, from which `gradient` derives ``sum(slope * features)``.

        ``x`` has shape (n,).
        """
        weighted = (slope @ self._inverse) * (features @ self.root.T)
        powers = np.stack([np.ones_like(x), x, x * x])
        return powers @ weighted, features.T @ slope

    def gradient(self, moments: FloatArray, cross: FloatArray) -> FloatArray:
        """Return the derivative by log variance, log lengthscale, log noise and inducing inputs."""
        shift, square = self._centered(moments)
        scale = self.kernel.lengthscale**2
        slope = self._prior_gradient(self._root_pulled(cross))
        slope[0] += moments[0].sum()
        slope[1] += square.sum() / scale
        slope[3:] += shift / scale
        return slope

    def slope_gradient(self, x: FloatArray, weight: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the derivative of ``sum_i weight_i a'(x_i) . mean`` for all parameters."""
        lengthscale = self.kernel.lengthscale
        distance = (x[:, None] - self.inputs) / lengthscale
        weighted = rbf(x, self.inputs, self.kernel) * np.outer(weight, self.weights(mean))
        steep = -weighted * distance / lengthscale
        slope = self._prior_gradient(self._root_pulled(np.outer(weight @ self.slopes(x), mean)))
        slope[0] += steep.sum()
        slope[1] += (steep * (distance**2 - 2)).sum()
        slope[3:] += (weighted * (1 - distance**2)).sum(axis=0) / lengthscale**2
        return slope

    def _centered(self, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weighted sums of ``x - w`` and ``(x - w)^2``, from the sums of 1, x and x^2."""
        shift = moments[1] - self.inputs * moments[0]
        return shift, moments[2] - self.inputs * (moments[1] + shift)

    def _root_pulled(self, cross: FloatArray) -> FloatArray:
        """Return the derivative with respect to ``K_w`` through its Cholesky factor."""
        root_slope = -np.tril(self._inverse.T @ cross.T)
        inner = np.tril(self.root.T @ root_slope)
        inner[np.diag_indices_from(inner)] *= 0.5
        return self._inverse.T @ (0.5 * (inner + inner.T)) @ self._inverse

    def _prior_gradient(self, slope: FloatArray) -> FloatArray:
        kernel, inputs = self.kernel, self.inputs
        weighted = slope * rbf(inputs, inputs, kernel)
        distance = (inputs[:, None] - inputs) / kernel.lengthscale
        trace = np.trace(slope)
        return np.concatenate(
            [
                [weighted.sum() + _JITTER * kernel.variance * trace],
                [(weighted * distance * distance).sum()],
                [kernel.noise * trace],
                2 * (weighted * distance).sum(axis=0) / kernel.lengthscale,
            ]
        )
