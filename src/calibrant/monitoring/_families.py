"""Families of alternatives: what each member would have won on a row, in logarithms.

A member bets against the deployed forecast p. Its factor f on a row is at least 0 and has a mean of
at most 1, given the past, where the forecast is honest: products of factors are evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from calibrant._simplex import EPS, log_floored, row_max, row_sum, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.notions import ClaimBlock, Notion, as_notion

TILTS = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Changes of the log-odds of a claim."""

SCALES = 2.0 ** np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Inverse temperatures."""

STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Shares of the wealth that are bet on a claim being off by more than the tolerance."""


class Family(ABC):
    """Members that bet alike: ``n_claims`` things to bet on, ``n_bets`` members for each."""

    name: str
    n_bets: int

    @abstractmethod
    def n_claims(self, n_classes: int) -> int:
        """Things to bet on."""

    @abstractmethod
    def log_factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """Logarithm of the factor of every member on every row, (n, n_claims, n_bets)."""

    def n_members(self, n_classes: int) -> int:
        return self.n_claims(n_classes) * self.n_bets


class TemperatureFamily(Family):
    r"""The forecast at another temperature: :math:`f = p_y^{\beta - 1} / \sum_k p_k^\beta`."""

    name = "temperature"
    n_bets = len(SCALES)

    def n_claims(self, n_classes: int) -> int:
        return 1

    def log_factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        u = log_floored(proba, EPS)
        top, own = row_max(u), true_class(u, y)
        u -= top[:, None]
        out = np.empty((len(y), 1, self.n_bets))
        for j, beta in enumerate(SCALES):
            out[:, 0, j] = row_sum(np.exp(beta * u))
        np.log(out, out=out)
        out[:, 0] = np.outer(own, SCALES - 1) - np.outer(top, SCALES) - out[:, 0]
        return out


class ClaimFamily(Family):
    r"""The claims of a notion, with score s and outcome o.

    Without a tolerance, the claim with other odds: :math:`f = e^{\delta o} / (1 + s (e^\delta -
    1))`. With a tolerance :math:`\epsilon`, bets that its probability is off by more than that, of
    a share :math:`\lambda` of the wealth:

    .. math:: 1 - \lambda \frac{o - s + \epsilon}{1 - s + \epsilon} \quad \text{(says too much)},
       \qquad 1 + \lambda \frac{o - s - \epsilon}{s + \epsilon} \quad \text{(says too little)} .

    Both have a mean of at most 1 as long as :math:`|P(o = 1) - s| \le \epsilon`.
    """

    def __init__(self, notion: str | Notion, tolerance: float = 0.0) -> None:
        self.notion = as_notion(notion)
        self.name = self.notion.name
        self.tolerance = tolerance
        self.n_bets = 2 * len(STAKES) if tolerance else len(TILTS)

    def n_claims(self, n_classes: int) -> int:
        return self.notion.n_quantities(n_classes) * self.notion.n_labels(n_classes)

    def log_factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        return self.log_factors_of(self.notion.select(proba, y), proba.shape[1])

    def log_factors_of(self, block: ClaimBlock, n_classes: int) -> FloatArray:
        """The factors of claims that have been selected already."""
        own = self._bets(block) if self.tolerance else _tilted(block)
        n_labels = self.notion.n_labels(n_classes)
        return own if n_labels == 1 else spread_by_label(own, block.labels(), n_labels)

    def _bets(self, block: ClaimBlock) -> FloatArray:
        score, eps = block.score[:, :, None], self.tolerance
        residual = block.residual()[:, :, None]
        much = (residual + eps) / (1.0 - score + eps)
        little = (residual - eps) / (score + eps)
        out = np.empty((*block.score.shape, self.n_bets))
        out[:, :, : len(STAKES)] = 1.0 - STAKES * much
        out[:, :, len(STAKES) :] = 1.0 + STAKES * little
        return np.log(out, out=out)


def _tilted(block: ClaimBlock) -> FloatArray:
    out = block.score[:, :, None] * np.expm1(TILTS)
    out += 1.0
    np.log(out, out=out)
    np.negative(out, out=out)
    out.reshape(-1, len(TILTS))[block.hit] += TILTS
    return out


def spread_by_label(own: FloatArray, label: IntArray, n_labels: int) -> FloatArray:
    """(n, J, ...) as (n, J L, ...): each at the claim of its label, zero at the others."""
    n_rows, n_quantities = label.shape
    out = np.zeros((n_rows, n_quantities * n_labels, *own.shape[2:]))
    index = label + np.arange(n_quantities) * n_labels
    out[np.arange(n_rows)[:, None], index] = own
    return out
