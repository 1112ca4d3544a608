"""Variational bound for a latent function that all classes share.

In this module, kernel parameters and inducing inputs are fixed. Row n has scores ``x_nk`` and prior
means ``u_nk``. The latent values ``f_n`` are Gaussian with mean ``phi_n = u_n + A_n m`` and
covariance ``C_n = R_n + A_n S A_n'``. The rows of ``A_n`` are the features of the scores
(`InducingInputs`), and ``q(e) = N(m, S)`` is the posterior of the whitened inducing variables.
``R_n`` is the part of the prior covariance of the row that the inducing variables do not explain.
With ``s_n = softmax(phi_n)`` and ``H_n = diag(s_n) - s_n s_n'``, the objective (Wenger 2020, eq. 6
with the second-order term of eq. 7) is

    F = sum_n weight_n (log s_n,y_n - tr(H_n C_n) / 2) - (|m|^2 + tr S - log det S - M) / 2.

For fixed m, the objective is largest at ``S^-1 = B = I + sum_n weight_n A_n' H_n A_n``. At this S,
the value of the objective is

    F(m) = sum_n weight_n (log s_n,y_n - tr(H_n R_n) / 2) - |m|^2 / 2 - log det B / 2.

References
----------
Wenger, Kjellström & Triebel (2020), Non-parametric calibration for classification, AISTATS,
arXiv:1906.04933. Hensman, Matthews & Ghahramani (2015), Scalable variational Gaussian process
classification, AISTATS, arXiv:1411.2005.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_solve, cholesky

from calibrant._data.sample import Rows
from calibrant._kernels.blocks import KEPT_MEMORY, READ_BLOCK, sum_blocks
from calibrant._kernels.simplex import log_softmax, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.multiclass._gp.ascent import Posterior, ascend
from calibrant.multiclass._gp.kernel import InducingInputs, rbf


class ScaledRows(NamedTuple):
    """Calibration data with prior means u (n, K), labels and positive weights.

    The inputs of the kernel are ``x = (u - center) / scale``.
    """

    u: Rows
    y: IntArray
    weight: FloatArray
    center: float = 0.0
    scale: float = 1.0

    def inputs(self, rows: slice) -> FloatArray:
        """Return the inputs of the kernel for a block of rows."""
        return (self.u[rows] - self.center) / self.scale


class Residual(Protocol):
    """The residual covariance ``R_n`` for a block of rows."""

    diagonal: FloatArray

    def times(self, s: FloatArray) -> FloatArray:
        """Return ``R_n s_n``."""

    def feature_slope(self, s: FloatArray, average: FloatArray) -> FloatArray:
        """Return the derivative of ``-tr(H_n R_n) / 2`` with respect to ``A_n``.

        ``average`` is ``A_n' s_n``.
        """

    def kernel_slope(self, s: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the derivative of ``-sum_n weight_n tr(H_n R_n) / 2`` for fixed features.

        The derivative is with respect to the logarithms of variance, lengthscale and noise.
        """


class DiagonalResidual:
    """``R_n`` without its off-diagonal entries.

    Without these entries, the latent values of a row depend on each other only through the inducing
    variables.
    """

    def __init__(self, x: FloatArray, features: FloatArray, inducing: InducingInputs) -> None:
        self.features = features
        self.kernel = inducing.kernel
        self.diagonal = inducing.unexplained(features)

    def times(self, s: FloatArray) -> FloatArray:
        return self.diagonal * s

    def feature_slope(self, s: FloatArray, average: FloatArray) -> FloatArray:
        return (s * (1 - s))[..., None] * self.features

    def kernel_slope(self, s: FloatArray, weight: FloatArray) -> FloatArray:
        spread = -0.5 * float(weight @ (s * (1 - s)).sum(axis=1))
        return spread * np.array([self.kernel.variance, 0.0, self.kernel.noise])


class FullResidual:
    """``R_n = K_n + noise I - A_n A_n'`` with the K x K kernel matrix of the scores of a row."""

    def __init__(self, x: FloatArray, features: FloatArray, inducing: InducingInputs) -> None:
        self.x = x
        self.features = features
        self.kernel = inducing.kernel
        self.diagonal = inducing.unexplained(features)
        self.smooth = rbf(x, x, inducing.kernel)

    def times(self, s: FloatArray) -> FloatArray:
        average = np.einsum("nk,nkm->nm", s, self.features)
        smooth = _rows_times(self.smooth, s) - _rows_times(self.features, average)
        return smooth + self.kernel.noise * s

    def feature_slope(self, s: FloatArray, average: FloatArray) -> FloatArray:
        return s[..., None] * (self.features - average[:, None, :])

    def kernel_slope(self, s: FloatArray, weight: FloatArray) -> FloatArray:
        distance = (self.x[:, :, None] - self.x[:, None, :]) / self.kernel.lengthscale
        within = weight @ (s * _rows_times(self.smooth, s)).sum(axis=1)
        stretched = weight @ (s * _rows_times(self.smooth * distance**2, s)).sum(axis=1)
        spread = weight @ (s * (1 - s)).sum(axis=1)
        return (
            np.array(
                [
                    within - self.kernel.variance * weight.sum(),
                    stretched,
                    -self.kernel.noise * spread,
                ]
            )
            / 2
        )


ResidualOf = Callable[[FloatArray, FloatArray, InducingInputs], Residual]


class SparseBound:
    """The bound ``F(m)`` and its gradients, computed as sums over row blocks.

    A pass over the data costs O(n K M^2), plus O(n K^2) for "full". ``at(mean)`` returns the value
    and the optimal S, and ``gradient`` returns the derivative with respect to m. ``outer_gradient``
    returns the derivative with respect to kernel parameters and inducing inputs for fixed m and S.
    If m maximizes the bound, this derivative equals the total derivative (envelope theorem).
    """

    def __init__(
        self, rows: ScaledRows, inducing: InducingInputs, residual: ResidualOf = DiagonalResidual
    ) -> None:
        self.rows = rows
        self.inducing = inducing
        self._residual = residual
        self._n_elements = rows.u.shape[1] * max(
            len(inducing.inputs), rows.u.shape[1] if residual is FullResidual else 0
        )
        self._kept: dict[int, _Block] | None = (
            {} if rows.u.shape[0] * self._n_elements <= KEPT_MEMORY else None
        )

    def at(self, mean: FloatArray) -> Posterior:
        """Return the value of the bound at a whitened mean, with the optimal covariance."""
        value, precision = self._sum(lambda block: block.value(mean))
        precision[np.diag_indices_from(precision)] += 1.0
        root = cholesky(precision, lower=True)
        value += -0.5 * float(mean @ mean) - float(np.log(np.diag(root)).sum())
        covariance = cho_solve((root, True), np.eye(len(mean)))
        return Posterior(value, mean, covariance, covariance)

    def gradient(self, posterior: Posterior) -> FloatArray:
        """Return the derivative of ``F(m)``."""
        return self._sum(lambda block: block.mean_slope(posterior)) - posterior.mean

    def maximum(self, start: FloatArray, tolerance: float) -> Posterior:
        """Find the best posterior near a mean by Newton's method, with S as the inverse Hessian.

        S ignores the derivatives of H, which matter if the residual covariance is large. `ascend`
        corrects the resulting error of the steps.
        """
        return ascend(self, start, tolerance=tolerance)

    def outer_gradient(self, posterior: Posterior) -> FloatArray:
        """Return the derivative by log variance, log lengthscale, log noise and inducing inputs."""
        moments, cross, direct = self._sum(lambda block: block.kernel_slope(posterior))
        out = self.inducing.gradient(moments, cross)
        out[:3] += direct
        return out

    def _sum(self, function: Callable[[_Block], Any]) -> Any:
        n_rows = self.rows.u.shape[0]
        return sum_blocks(
            lambda rows: function(self._block(rows)),
            n_rows,
            self._n_elements,
            elements=READ_BLOCK,
        )

    def _block(self, rows: slice) -> _Block:
        if self._kept is None:
            return _Block(self.rows, rows, self.inducing, self._residual)
        if rows.start not in self._kept:
            self._kept[rows.start] = _Block(self.rows, rows, self.inducing, self._residual)
        return self._kept[rows.start]


class _Block:
    """Features and residual covariance of a block of rows, and its contributions to the sums."""

    def __init__(
        self, data: ScaledRows, rows: slice, inducing: InducingInputs, residual: ResidualOf
    ) -> None:
        self.u = data.u[rows]
        self.y = data.y[rows]
        self.weight = data.weight[rows]
        self.inducing = inducing
        self.x = data.inputs(rows)
        self.features = inducing.features(self.x.ravel()).reshape(*self.x.shape, -1)
        self.residual = residual(self.x, self.features, inducing)

    @property
    def flat(self) -> FloatArray:
        return self.features.reshape(-1, self.features.shape[-1])

    def _log_proba(self, mean: FloatArray) -> FloatArray:
        return log_softmax(self.u + (self.flat @ mean).reshape(self.u.shape))

    def value(self, mean: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sums of ``log s_y - tr(H R) / 2`` and of ``A' H A``."""
        log_proba = self._log_proba(mean)
        s = np.exp(log_proba)
        trace = (s * (self.residual.diagonal - self.residual.times(s))).sum(axis=1)
        value = self.weight @ (true_class(log_proba, self.y) - 0.5 * trace)
        weighted = (self.weight[:, None] * s)[..., None] * self.features
        average = weighted.sum(axis=1)
        precision = self.flat.T @ weighted.reshape(self.flat.shape)
        precision -= average.T @ (average / self.weight[:, None])
        return float(value), precision

    def mean_slope(self, posterior: Posterior) -> FloatArray:
        """Return ``A' r`` with the derivative r from `_slopes`."""
        r, *_ = self._slopes(posterior)
        return r.ravel() @ self.flat

    def kernel_slope(self, posterior: Posterior) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sums for `InducingInputs.gradient`, and the derivative for fixed features."""
        r, s, average, spread = self._slopes(posterior)
        slope = self.residual.feature_slope(s, average)
        spread -= (average @ posterior.covariance)[:, None, :]
        spread *= s[..., None]
        slope -= spread
        slope *= self.weight[:, None, None]
        slope += r[..., None] * posterior.mean
        moments, cross = self.inducing.pulled(
            self.x.ravel(), self.flat, slope.reshape(self.flat.shape)
        )
        return moments, cross, self.residual.kernel_slope(s, self.weight)

    def _slopes(
        self, posterior: Posterior
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ``r``, ``s``, ``A' s`` and ``A S``.

        ``r`` is the weighted derivative with respect to phi for fixed C. The derivative of
        ``tr(H C)`` is ``s (b - s . b)`` with ``b = diag(C) - 2 C s``.
        """
        s = np.exp(self._log_proba(posterior.mean))
        average = np.einsum("nk,nkm->nm", s, self.features)
        spread = (self.flat @ posterior.covariance).reshape(self.features.shape)
        b = np.einsum("nkm,nkm->nk", spread, self.features) + self.residual.diagonal
        b -= 2 * (_rows_times(spread, average) + self.residual.times(s))
        r = s * (-1 - 0.5 * (b - (s * b).sum(axis=1, keepdims=True)))
        r[np.arange(len(self.y)), self.y] += 1
        return self.weight[:, None] * r, s, average, spread


def _rows_times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Multiply the matrix of every row by the vector of the row."""
    return (matrices @ vectors[..., None])[..., 0]
