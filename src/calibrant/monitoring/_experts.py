r"""Experts: recalibrations that learn from labels as they arrive.

Each is a map :math:`q = \mathrm{softmax}(\beta \log p + b)` that takes a Newton step after every
block of rows. The information H is discounted, so that old rows are forgotten, and what is
forgotten is replaced by the prior, which holds the map near the identity:

.. math:: H \leftarrow \lambda^n H + J^\top W J + (1 - \lambda^n) H_0, \qquad
   \theta \leftarrow \theta - H^{-1} (g + (1 - \lambda^n) H_0 (\theta - \theta_0)) .

Rows of a block share the map at its start, so that gradients and informations are sums over rows
and add up over shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from calibrant._simplex import row_max, row_sum, softmax, true_class
from calibrant._typing import FloatArray, IntArray

FULL_INFORMATION = 50
"""Above so many classes only the diagonal of the information is kept: O(K) a row."""

_PRIOR = 5.0
"""Rows' worth of information that holds a parameter at the identity."""

_LONGEST_STEP = 1.0
"""A parameter moves at most so far at once: a Newton step on few rows may overshoot."""

_LOWEST, _HIGHEST = 0.02, 50.0
"""Bounds of the inverse temperature; intercepts are at most ``_HIGHEST``."""


class Expert(NamedTuple):
    """How an expert learns: the share of its information that it keeps at each row, and whether it
    has intercepts or a temperature alone.
    """

    discount: float = 1.0
    intercepts: bool = True


EXPERTS = (
    Expert(0.999, intercepts=False),
    Expert(0.99, intercepts=False),
    Expert(1.0),
    Expert(0.999),
)
"""The default: a temperature that follows slowly and quickly, and whole maps."""


@dataclass(frozen=True, eq=False)
class ExpertState:
    """Parameters ``theta`` (1 + K: inverse temperature, intercepts) and their information, a
    matrix or its diagonal.
    """

    theta: FloatArray
    information: FloatArray

    @classmethod
    def start(cls, n_classes: int) -> ExpertState:
        """The identity."""
        theta = np.zeros(1 + n_classes)
        theta[0] = 1.0
        return cls(theta, _prior(n_classes))

    def proba(self, u: FloatArray) -> FloatArray:
        """Probabilities for rows of log-probabilities."""
        return softmax(self.theta[0] * u + self.theta[1:])


class ExpertSums(NamedTuple):
    """Gradient and information of rows, at the parameters of the block's start."""

    n_rows: int
    gradient: FloatArray
    information: FloatArray

    def plus(self, other: ExpertSums) -> ExpertSums:
        """The sums of both."""
        return ExpertSums(
            self.n_rows + other.n_rows,
            self.gradient + other.gradient,
            self.information + other.information,
        )


def judge(
    expert: Expert, state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """The probability that an expert gave to what happened, (n,), and what the rows teach it."""
    if expert.intercepts:
        q = state.proba(u)
        return true_class(q, y), sum_rows(expert, q, u, y)
    return _judge_temperature(state, u, y)


def _judge_temperature(
    state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """A temperature alone needs the mean and the variance of u in each row and nothing else."""
    power = u - row_max(u)[:, None]
    power *= state.theta[0]
    np.exp(power, out=power)
    total, own = row_sum(power), true_class(power, y)
    power *= u
    mean = row_sum(power) / total
    power *= u
    gradient, information = np.zeros_like(state.theta), np.zeros_like(state.information)
    gradient[0] = mean.sum() - true_class(u, y).sum()
    information.flat[0] = (row_sum(power) / total).sum() - mean @ mean
    return own / total, ExpertSums(len(y), gradient, information)


def sum_rows(expert: Expert, q: FloatArray, u: FloatArray, y: IntArray) -> ExpertSums:
    """What rows say about the parameters of an expert that said ``q`` of them."""
    n_rows, n_classes = u.shape
    weighted = q * u
    mean = row_sum(weighted)
    spread = float(np.vdot(weighted, u) - np.vdot(mean, mean))
    residual = q.copy()
    residual[np.arange(n_rows), y] -= 1.0
    gradient = np.zeros(1 + n_classes)
    gradient[0] = np.vdot(residual, u)
    information = np.zeros(_prior(n_classes).shape)
    information.flat[0] = spread
    if expert.intercepts:
        gradient[1:] = residual.sum(axis=0)
        _fill_intercepts(information, q, weighted.sum(axis=0) - mean @ q)
    return ExpertSums(n_rows, gradient, information)


def _fill_intercepts(information: FloatArray, q: FloatArray, mixed: FloatArray) -> None:
    if information.ndim == 1:
        information[1:] = (q * (1.0 - q)).sum(axis=0)
        return
    information[1:, 1:] = np.diag(q.sum(axis=0)) - q.T @ q
    information[0, 1:] = information[1:, 0] = mixed


def learn(expert: Expert, state: ExpertState, sums: ExpertSums) -> ExpertState:
    """The state after a Newton step on the rows of ``sums``."""
    n_classes = len(state.theta) - 1
    kept, prior = expert.discount**sums.n_rows, _prior(n_classes)
    information = kept * state.information + sums.information + (1.0 - kept) * prior
    away = state.theta - ExpertState.start(n_classes).theta
    gradient = sums.gradient + (1.0 - kept) * _PRIOR * away
    diagonal = information if information.ndim == 1 else information.diagonal()
    step: FloatArray = gradient / diagonal
    if information.ndim == 2 and expert.intercepts:
        step = np.linalg.solve(information, gradient)
    theta = state.theta - np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    theta[0] = np.clip(theta[0], _LOWEST, _HIGHEST)
    return ExpertState(np.clip(theta, -_HIGHEST, _HIGHEST), information)


@lru_cache(maxsize=8)
def _prior(n_classes: int) -> FloatArray:
    size = 1 + n_classes
    prior = np.full(size, _PRIOR) if n_classes > FULL_INFORMATION else _PRIOR * np.eye(size)
    prior.setflags(write=False)
    return prior
