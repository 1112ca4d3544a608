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

from calibrant._simplex import EPS, log_floored, row_max, row_sum, softmax, true_class
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
"""Those of a monitor: a temperature that follows slowly and quickly, and whole maps."""

ONLINE_EXPERTS = (*EXPERTS, Expert(0.99))
"""Those of online recalibration, which is there to follow: a whole map that does so quickly."""


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

    def joined(self, n_classes: int) -> ExpertState:
        """The same map where classes have joined, of which nothing is known."""
        fresh = ExpertState.start(n_classes)
        theta, information = fresh.theta, np.array(fresh.information)
        size = len(self.theta)
        theta[:size] = self.theta
        if information.ndim == self.information.ndim:
            information[(slice(size),) * information.ndim] = self.information
        else:
            information[:size] = self.information.diagonal()
        return ExpertState(theta, information)

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


def as_u(proba: FloatArray) -> FloatArray:
    """Logarithms of probabilities whose largest in each row is 0, which changes no map of them."""
    u = log_floored(proba, EPS)
    u -= row_max(u)[:, None]
    return u


def judge(
    expert: Expert, state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """The probability that an expert gave to what happened, (n,), and what the rows teach it; of
    rows ``u`` as `as_u` makes them.
    """
    if expert.intercepts:
        q = state.proba(u)
        return true_class(q, y), sum_rows(expert, q, u, y)
    return _judge_temperature(state, u, y)


def _judge_temperature(
    state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """A temperature alone needs the mean and the variance of u in each row and nothing else."""
    power = state.theta[0] * u
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
    kept = expert.discount**sums.n_rows
    if not expert.intercepts:
        return _learn_temperature(kept, state, sums)
    prior, away = _prior(len(state.theta) - 1), state.theta.copy()
    away[0] -= 1.0
    information = kept * state.information + sums.information + (1.0 - kept) * prior
    gradient = sums.gradient + (1.0 - kept) * _PRIOR * away
    if information.ndim == 2:
        step: FloatArray = np.linalg.solve(information, gradient)
    else:
        step = gradient / information
    theta = state.theta - _clipped(step, _LONGEST_STEP)
    theta[0] = max(_LOWEST, theta[0])
    return ExpertState(_clipped(theta, _HIGHEST), information)


def _learn_temperature(kept: float, state: ExpertState, sums: ExpertSums) -> ExpertState:
    beta, theta, information = state.theta[0], state.theta.copy(), state.information.copy()
    seen = kept * information.flat[0] + sums.information.flat[0] + (1.0 - kept) * _PRIOR
    step = (sums.gradient[0] + (1.0 - kept) * _PRIOR * (beta - 1.0)) / seen
    theta[0] = min(max(beta - min(max(step, -_LONGEST_STEP), _LONGEST_STEP), _LOWEST), _HIGHEST)
    information.flat[0] = seen
    return ExpertState(theta, information)


def _clipped(values: FloatArray, limit: float) -> FloatArray:
    return np.minimum(np.maximum(values, -limit), limit)  # np.clip takes longer to call


@lru_cache(maxsize=8)
def _prior(n_classes: int) -> FloatArray:
    size = 1 + n_classes
    prior = np.full(size, _PRIOR) if n_classes > FULL_INFORMATION else _PRIOR * np.eye(size)
    prior.setflags(write=False)
    return prior
