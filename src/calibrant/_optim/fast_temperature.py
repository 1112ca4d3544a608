r"""Fast sums over rows, which determine the temperature.

Exponentials take most of the time of a pass. The sums of powers of the scores,

.. math:: \sum_k e^{\beta u_k} u_k^j, \qquad j = 0, 1, 2, 3,

need one exponential per score and no row maximum. The sums determine the mean, the variance and the
third central moment of a row. The sums are inaccurate if exponentials overflow or underflow, or if
the variance is a small difference of large numbers. In such a block, the row maximum is subtracted
before the exponentials are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, isnan, nan
from typing import NamedTuple

import numpy as np

from calibrant._data.sample import RowBlock, Sample
from calibrant._kernels import kernel, power_sums
from calibrant._kernels.blocks import READ_BLOCK
from calibrant._kernels.simplex import MODERATE, row_max, true_class, weighted_sum
from calibrant._optim.plain_temperature import penalized_derivatives, prior_precision
from calibrant._optim.slope_search import Point
from calibrant._typing import FloatArray

# On processors without AVX-512, a logarithm takes as long as an exponential. So one logarithm of a
# product of eight norms replaces eight logarithms. The product does not overflow for exponents of
# at most 60, because exp(8 * 60) is about 1e208. The product saves time from _PRODUCT_ROWS rows on.
_PRODUCT_SIZE, _PRODUCT_ROWS, _PRODUCT_EXPONENT = 8, 4096, 60.0


class Arithmetic(NamedTuple):
    """The floating-point precision of the sums.

    ``sums`` adds up powers over each row. ``largest`` is the size of scores and exponents up to
    which the sums are far from overflow. A variance below the share ``least_variance`` of the mean
    square has lost too many digits.
    """

    sums: Callable[[FloatArray, float, int], list[FloatArray]]
    largest: float
    least_variance: float


_DOUBLE = Arithmetic(power_sums, MODERATE, 1e-6)
# In single precision, an exponential takes a quarter of the time.
_SINGLE = Arithmetic(partial(power_sums, dtype=np.float32), 60.0, 1e-3)


class BlockConstants(NamedTuple):
    """Values of a block that do not depend on beta.

    The values are the largest absolute score, and the weighted sum of the scores of the true
    classes.
    """

    size: float
    true: float

    @classmethod
    def of(cls, block: RowBlock) -> BlockConstants:
        size = max(-float(block.u.min()), float(block.u.max()))
        true = true_class(block.u, block.y).astype(np.float64, copy=False)
        return cls(size, weighted_sum(block.weight, true))


class TemperatureLoss:
    """The mean log-loss of a sample, and the penalty of a prior, as a function of t = log beta."""

    def __init__(self, sample: Sample, prior_scale: float | None) -> None:
        self.sample, self.total = sample, sample.total
        self.precision = prior_precision(self.total, prior_scale)
        sums = kernel("power_sums", sample.shape[0] * sample.shape[1])
        self.exact, self.rough = _DOUBLE, _SINGLE
        if sums is not power_sums:
            # Compiled loops in double precision are faster than NumPy in single precision.
            self.exact = self.rough = _DOUBLE._replace(sums=sums)
        self.block = sample.whole_block(READ_BLOCK)
        self.constants = sample.block_store()

    def __call__(
        self, t: float, *, is_rough: bool = False, n_powers: int = 3, bend: float = nan
    ) -> Point:
        """Evaluate the loss in one pass over the rows, in single precision if ``is_rough``.

        If ``n_powers`` is four, the third derivative is computed. Otherwise the third derivative is
        estimated as ``bend`` times the curvature.
        """
        beta = exp(t)
        setting = beta, self.rough if is_rough else self.exact, n_powers, self.constants
        if self.block is not None:
            sums = block_sums(*setting, self.block)
        else:
            sums = self.sample.sum(partial(block_sums, *setting), elements=READ_BLOCK)
        loss, slope, variance, skew = sums
        total = self.total
        value, first, second = penalized_derivatives(
            t, self.precision, loss / total, slope / total, variance / total
        )
        third = beta / total * (slope + beta * (3.0 * variance + beta * skew))
        if isnan(third):
            third = bend * second
        return Point(t, value, (first, second) if isnan(third) else (first, second, third))


_Sums = tuple[float, float, float, float]
"""Sums over rows of the log-loss and of its first three derivatives in beta. The third derivative
is NaN if it was not computed."""


def block_sums(
    beta: float,
    arithmetic: Arithmetic,
    n_powers: int,
    constants: dict[int, BlockConstants] | None,
    block: RowBlock,
) -> _Sums:
    """Return the sums of a block.

    ``constants`` stores the `BlockConstants` of each block between passes.
    """
    constant = None if constants is None else constants.get(block.start)
    if constant is None:
        constant = BlockConstants.of(block)
        if constants is not None:
            constants[block.start] = constant
    size = constant.size * max(beta, 1.0)
    if size <= arithmetic.largest:
        sums = _moment_sums(beta, arithmetic, n_powers, size, constant.true, block)
        if sums is not None:
            return sums
    return _shifted_sums(beta, block)


def loss_sums_at(betas: FloatArray, block: RowBlock) -> FloatArray:
    """The sums of `calibrant._optim.plain_temperature.loss_sums` at several betas, (m, 3)."""
    constants: dict[int, BlockConstants] = {}
    sums = [block_sums(beta, _DOUBLE, 3, constants, block)[:3] for beta in betas.tolist()]
    return np.array(sums)


def _moment_sums(
    beta: float, arithmetic: Arithmetic, n_powers: int, size: float, true: float, block: RowBlock
) -> _Sums | None:
    """Compute the sums by powers, or return None if the variance lost too many digits.

    ``size`` bounds the exponents, and ``true`` is the sum of the scores of the true classes.
    """
    norm, first, second, *cube = arithmetic.sums(block.u, beta, n_powers)
    weight, inverse, scale = block.weight, 1.0 / norm, 1.0
    mean = first * inverse
    share, weighted_mean = inverse, mean
    if weight.strides == (0,):  # equal weights factor out of the sums, which saves two products
        scale = float(weight[0])
    else:
        share, weighted_mean = weight * inverse, weight * mean
    square = float(second.dot(share))
    variance = square - float(weighted_mean.dot(mean))
    if variance < arithmetic.least_variance * square:
        return None
    third = nan
    if cube:
        skew = cube[0].dot(share) - 3.0 * weighted_mean.dot(second * inverse)
        third = scale * float(skew + 2.0 * weighted_mean.dot(mean * mean))
    loss = _log_sum(weight, norm, size) - beta * true
    slope = scale * float(np.add.reduce(weighted_mean)) - true
    return loss, slope, scale * variance, third


def _shifted_sums(beta: float, block: RowBlock) -> _Sums:
    """Compute the sums after subtracting the largest score of each row, which avoids overflow."""
    x = np.subtract(block.u, row_max(block.u)[:, None], dtype=np.float64)
    norm, first, second = power_sums(x, beta, 3)
    true, mean = true_class(x, block.y), first / norm
    rows = np.log(norm) - beta * true, mean - true, second / norm - mean * mean
    loss, slope, variance = (weighted_sum(block.weight, row) for row in rows)
    return loss, slope, variance, nan


def _log_sum(weight: FloatArray, norm: FloatArray, size: float) -> float:
    """Return ``sum_i w_i log(norm_i)``.

    If all weights are equal, one logarithm of a product replaces eight logarithms.
    """
    is_weighted = weight.strides != (0,)
    if is_weighted or len(norm) < _PRODUCT_ROWS or size > _PRODUCT_EXPONENT:
        return weighted_sum(weight, np.log(norm))
    n_rows = len(norm) // _PRODUCT_SIZE * _PRODUCT_SIZE
    product = np.multiply.reduce(norm[:n_rows].reshape(_PRODUCT_SIZE, -1), axis=0)
    return float(weight[0] * (np.log(product).sum() + np.log(norm[n_rows:]).sum()))
