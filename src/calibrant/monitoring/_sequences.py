r"""Confidence sequences: intervals of a mean gap that hold at all times together.

For residuals :math:`x_i = o_i - s_i` of a claim, predictions :math:`\hat x_i` of them that were
made before, and :math:`V_t = \sum_i (x_i - \hat x_i)^2`, the mean of the true gaps of the rows seen
so far lies within :math:`u(V_t) / t` of the mean residual for all t together with probability
:math:`1 - \alpha`, where u solves :math:`\log m(u, V) = \log(2 / \alpha)` and m is the mixture of
the exponential supermartingales over a gamma prior with parameter :math:`\rho`.

References
----------
Howard, Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
sequences, theorem 4 and proposition 9, doi:10.1214/20-AOS1991.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, gammaln

from calibrant._typing import FloatArray
from calibrant.notions import ClaimBlock

RHO = 50.0
"""Where the sequence is tightest: at a V of about 400."""

_STEPS = 60
"""Halvings of the interval that holds the root: to the last digit."""


@dataclass(frozen=True, eq=False)
class GapSums:
    """Sums of the residuals of claims, each of shape (C,): they add up over rows.

    ``count`` rows, the sum of ``residual``, and ``variance``, the sum of squared differences from
    what was predicted of them.
    """

    count: FloatArray
    residual: FloatArray
    variance: FloatArray

    @classmethod
    def zeros(cls, n_claims: int) -> GapSums:
        return cls(*(np.zeros(n_claims) for _ in range(3)))

    @property
    def mean(self) -> FloatArray:
        """Mean residual of each claim: how much more often it came true than was said."""
        return self.residual / np.maximum(self.count, 1.0)

    def __add__(self, other: GapSums) -> GapSums:
        return GapSums(
            self.count + other.count,
            self.residual + other.residual,
            self.variance + other.variance,
        )


def sum_gaps(
    block: ClaimBlock, expected: FloatArray, n_labels: int, weight: FloatArray | None = None
) -> GapSums:
    """The sums of a block of rows; ``expected`` (C,) is the mean residual of each claim before.

    A prediction is kept within what the residual can be, between -s and 1 - s: so no difference
    exceeds 1, which the sequence needs; weights are at most 1 for the same reason.
    """
    residual = block.residual()
    w = np.ones((len(residual), 1)) if weight is None else weight[:, None]
    index = block.labels() + np.arange(block.score.shape[1]) * n_labels if n_labels > 1 else None
    hat = np.clip(expected if index is None else expected[index], -block.score, 1.0 - block.score)
    if index is None:
        count = np.full(len(expected), float(w.sum()))
        off = residual - hat
        off *= w
        return GapSums(count, (w.T @ residual)[0], np.einsum("ij,ij->j", off, off))
    parts = (np.broadcast_to(w, residual.shape), w * residual, (w * (residual - hat)) ** 2)
    place, size = index.ravel(), len(expected)
    return GapSums(*(np.bincount(place, part.ravel(), minlength=size) for part in parts))


def half_width(sums: GapSums, alpha: float) -> FloatArray:
    """Half-widths of the intervals of the mean gaps; 1 where there are no rows."""
    low, high = np.zeros_like(sums.count), np.maximum(sums.count, 1.0)
    target = np.log(2.0 / alpha)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        is_low = _log_mixture(middle, sums.variance) < target
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.where(sums.count > 0, np.minimum(high / np.maximum(sums.count, 1.0), 1.0), 1.0)


def _log_mixture(s: FloatArray, v: FloatArray) -> FloatArray:
    a, b = v + RHO, s + v + RHO
    start = RHO * np.log(RHO) - gammaln(RHO) - np.log(gammainc(RHO, RHO))
    return start + gammaln(a) + np.log(gammainc(a, b)) - a * np.log(b) + s + v
