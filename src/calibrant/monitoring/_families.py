"""Families of alternatives: what each member would have won on a row.

A member bets against the deployed forecast p. Its factor f on a row is at least 0 and has a mean of
at most 1, given the past, where the forecast is honest: products of factors are evidence. Where p
is floored before a logarithm or a quotient the mean becomes smaller, never larger.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from calibrant._simplex import EPS, row_max, row_sum, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.notions import ClaimBlock, Notion, as_notion

TILTS = np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Changes of the log-odds of a claim."""

SCALES = 2.0 ** np.array([-1.0, -0.5, -0.25, 0.25, 0.5, 1.0])
"""Inverse temperatures."""

STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Shares of the wealth that are bet on a claim being off by more than the tolerance."""


def _by_size(change: FloatArray) -> FloatArray:
    """Weights of bets on changes of that size: small ones take the most rows to be found, so that
    a weight that is too small delays them most.
    """
    weight = 1.0 / np.abs(change)
    return weight / weight.sum()


class Family(ABC):
    """Members that bet alike: ``n_claims`` things to bet on, ``n_bets`` members for each.

    ``share`` is its part of the stake, beside those of other families; ``prior`` (n_bets,) the part
    of each bet on a thing, all things alike.
    """

    name: str
    n_bets: int
    share: float = 1.0
    prior: FloatArray

    @abstractmethod
    def n_claims(self, n_classes: int) -> int:
        """Things to bet on."""

    @abstractmethod
    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """The factor of every member on every row, (n, n_claims, n_bets)."""

    def log_factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        """Logarithms of the factors."""
        return np.log(self.factors(proba, y))

    def n_members(self, n_classes: int) -> int:
        return self.n_claims(n_classes) * self.n_bets

    def weight(self, n_classes: int) -> FloatArray:
        """Parts of all members, (n_members,), which sum to the share."""
        n_claims = self.n_claims(n_classes)
        return self.share * np.tile(self.prior / n_claims, n_claims)


class TemperatureFamily(Family):
    r"""The forecast at another temperature: :math:`f = p_y^{\beta - 1} / \sum_k p_k^\beta`.

    The commonest way of losing calibration, so that it has twice the stake of others.
    """

    name = "temperature"
    n_bets = len(SCALES)
    share = 2.0
    prior = _by_size(np.log2(SCALES))

    def n_claims(self, n_classes: int) -> int:
        return 1

    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        p = np.maximum(proba, EPS)
        top = row_max(p)
        p /= top[:, None]
        own = true_class(p, y) * top
        out = np.empty((len(y), 1, self.n_bets))
        for j, power in enumerate(_powers(p)):
            out[:, 0, j] = true_class(power, y) / (own * row_sum(power))
        return out


def _powers(p: FloatArray) -> tuple[FloatArray, ...]:
    """``p ** SCALES``: half of them are roots and squares."""
    u = np.log(p)
    second, third, fourth = (np.exp(beta * u) for beta in SCALES[1:4])
    return np.sqrt(p), second, third, fourth, second * second, p * p


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
        self.prior = np.full(self.n_bets, 1.0 / self.n_bets) if tolerance else _by_size(TILTS)

    def n_claims(self, n_classes: int) -> int:
        return self.notion.n_quantities(n_classes) * self.notion.n_labels(n_classes)

    def factors(self, proba: FloatArray, y: IntArray) -> FloatArray:
        return self.factors_of(self.notion.select(proba, y), proba.shape[1])

    def factors_of(self, block: ClaimBlock, n_classes: int) -> FloatArray:
        """The factors of claims that have been selected already."""
        own = _staked(block, self.tolerance) if self.tolerance else _tilted(block)
        n_labels = self.notion.n_labels(n_classes)
        return own if n_labels == 1 else spread_by_label(own, block.labels(), n_labels)


def _staked(block: ClaimBlock, eps: float) -> FloatArray:
    """Bets of a share of the wealth: what is lost does not depend on the score."""
    score, hit = block.score, block.hit
    much = (score - eps) / (1.0 - score + eps)
    little = (1.0 - score.reshape(-1)[hit] - eps) / (score.reshape(-1)[hit] + eps)
    n_stakes = len(STAKES)
    out = np.empty((*score.shape, 2 * n_stakes))
    np.multiply(much[:, :, None], STAKES, out=out[:, :, :n_stakes])
    out[:, :, :n_stakes] += 1.0
    out[:, :, n_stakes:] = 1.0 - STAKES
    flat = out.reshape(-1, 2 * n_stakes)
    flat[hit, :n_stakes] = 1.0 - STAKES
    flat[hit, n_stakes:] = 1.0 + STAKES * little[:, None]
    return out


def _tilted(block: ClaimBlock) -> FloatArray:
    out = block.score[:, :, None] * np.expm1(TILTS)
    out += 1.0
    np.reciprocal(out, out=out)
    out.reshape(-1, len(TILTS))[block.hit] *= np.exp(TILTS)
    return out


def spread_by_label(own: FloatArray, label: IntArray, n_labels: int) -> FloatArray:
    """(n, J, ...) as (n, J L, ...): each at the claim of its label, one at the others."""
    n_rows, n_quantities = label.shape
    out = np.ones((n_rows, n_quantities * n_labels, *own.shape[2:]))
    index = label + np.arange(n_quantities) * n_labels
    out[np.arange(n_rows)[:, None], index] = own
    return out
