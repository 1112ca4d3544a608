r"""Experts, which recalibrate the deployed forecast and learn from labels when labels arrive.

**Scalings.** Each expert is :math:`q = \mathrm{softmax}(\beta \log p + b)` and takes a Newton step
after every block of rows. The information H is discounted, so old rows are forgotten. A prior,
which keeps the expert near the identity, replaces the forgotten information:

.. math:: H \leftarrow \lambda^n H + J^\top W J + (1 - \lambda^n) H_0, \qquad
   \theta \leftarrow \theta - H^{-1} (g + (1 - \lambda^n) H_0 (\theta - \theta_0)) .

All rows of a block are evaluated with the parameters from the start of the block. Gradients and
information matrices are therefore sums over rows, so sums of shards can be added.

**Calibeating.** Confidences are divided into bins of equal width. A row of bin b gets the
confidence
:math:`(h_b + m_b) / (n_b + 1)`. Here :math:`n_b` is the number of earlier rows of the bin, and
:math:`h_b` is the number of correct predictions among these rows. The midpoint :math:`m_b` of the
bin counts as one row. For any sequence of outcomes, the regret of a bin with n rows, compared with
the best constant in hindsight, is at most :math:`\ln n + \ln 2B` nats. The regret of a bin in the
Brier score is at most :math:`1 + \ln(n + 1)`. Compared with the binned forecast after the best
recalibration in hindsight, the total regret over T rows is O(log T).

References
----------
Foster & Hart (2023), "Calibeating": beating forecasters at their own game, arXiv:2209.04892.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.simplex import EPS, log_floored, row_max, row_sum, softmax, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant.monitoring._json import as_numbers, read_finite_numbers
from calibrant.notions import as_notion

FULL_INFORMATION = 50
"""Above this many classes, only the diagonal of the information is kept, which takes O(K) per
row."""

_PRIOR = 5.0
"""Information of the prior, in rows, that keeps a parameter at the identity."""

_MAX_STEP = 1.0
"""Largest change of a parameter in one step, because a Newton step on few rows may overshoot."""

_MIN_BETA, _MAX_PARAMETER = 0.02, 50.0
"""Bounds of the inverse temperature. Intercepts are at most ``_MAX_PARAMETER``."""

BINS = 20
"""Bins of the confidence, of equal width from 0 to 1."""

_CONFIDENCE = as_notion("confidence")


class Expert(NamedTuple):
    """Parameters of an expert of `OnlineCalibration`.

    Attributes
    ----------
    discount : float
        Share of the information that is kept at each row. With 1, the expert learns from all rows
        equally. With 0.99, the expert learns from about the last 100 rows.
    intercepts : bool
        Whether to fit an intercept per class in addition to the temperature.

    See Also
    --------
    OnlineCalibration : Mixture of experts.
    """

    discount: float = 1.0
    intercepts: bool = True


EXPERTS = (
    Expert(0.999, intercepts=False),
    Expert(0.99, intercepts=False),
    Expert(1.0),
    Expert(0.999),
)
"""Experts of a monitor: a slow and a fast temperature, and two scalings with intercepts."""

ONLINE_EXPERTS = (*EXPERTS, Expert(0.99))
"""Experts of online recalibration, which also has a fast scaling with intercepts."""


@dataclass(frozen=True, eq=False)
class ExpertState:
    """Inverse temperature and K intercepts of an expert (``theta``), and their information.

    The information is a matrix, or only its diagonal if there are many classes.
    """

    theta: FloatArray
    information: FloatArray

    @classmethod
    def start(cls, n_classes: int) -> ExpertState:
        """Return the state before the first row, which is the identity."""
        theta = np.zeros(1 + n_classes)
        theta[0] = 1.0
        return cls(theta, _prior(n_classes))

    def add_classes(self, n_classes: int) -> ExpertState:
        """Extend the parameters to more classes.

        New parameters start with the information of the prior.
        """
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
        """Return the probabilities for rows of log-probabilities."""
        return softmax(self.theta[0] * u + self.theta[1:])


class ExpertSums(NamedTuple):
    """Gradient and information, summed over a block, for the parameters at its start."""

    n_rows: int
    gradient: FloatArray
    information: FloatArray

    def plus(self, other: ExpertSums) -> ExpertSums:
        """Add the sums of other rows."""
        return ExpertSums(
            self.n_rows + other.n_rows,
            self.gradient + other.gradient,
            self.information + other.information,
        )


def as_u(proba: FloatArray) -> FloatArray:
    """Return log-probabilities, shifted to a maximum of 0 per row."""
    u = log_floored(proba, EPS)
    u -= row_max(u)[:, None]
    return u


def evaluate_rows(
    expert: Expert, state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """Return the probabilities of the true classes (n,), and the sums for the next step.

    ``u`` are log-probabilities from `as_u`.
    """
    if expert.intercepts:
        q = state.proba(u)
        return true_class(q, y), sum_rows(expert, q, u, y)
    return _evaluate_temperature(state, u, y)


def _evaluate_temperature(
    state: ExpertState, u: FloatArray, y: IntArray
) -> tuple[FloatArray, ExpertSums]:
    """Evaluate a temperature from the mean and the variance of u in each row."""
    power = state.theta[0] * u
    np.exp(power, out=power)
    total, power_of_label = row_sum(power), true_class(power, y)
    power *= u
    mean = row_sum(power) / total
    power *= u
    gradient, information = np.zeros_like(state.theta), np.zeros_like(state.information)
    gradient[0] = mean.sum() - true_class(u, y).sum()
    information.flat[0] = (row_sum(power) / total).sum() - mean @ mean
    return power_of_label / total, ExpertSums(len(y), gradient, information)


def sum_rows(expert: Expert, q: FloatArray, u: FloatArray, y: IntArray) -> ExpertSums:
    """Return the gradient and information of rows for which an expert predicted ``q``."""
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


def _fill_intercepts(information: FloatArray, q: FloatArray, cross: FloatArray) -> None:
    if information.ndim == 1:
        information[1:] = (q * (1.0 - q)).sum(axis=0)
        return
    information[1:, 1:] = np.diag(q.sum(axis=0)) - q.T @ q
    information[0, 1:] = information[1:, 0] = cross


def learn(expert: Expert, state: ExpertState, sums: ExpertSums) -> ExpertState:
    """Return the state after a Newton step on the rows of ``sums``."""
    memory = expert.discount**sums.n_rows
    if not expert.intercepts:
        return _learn_temperature(memory, state, sums)
    prior, offset = _prior(len(state.theta) - 1), state.theta.copy()
    offset[0] -= 1.0
    information = memory * state.information + sums.information + (1.0 - memory) * prior
    gradient = sums.gradient + (1.0 - memory) * _PRIOR * offset
    if information.ndim == 2:
        step: FloatArray = np.linalg.solve(information, gradient)
    else:
        step = gradient / information
    theta = state.theta - _clip(step, _MAX_STEP)
    theta[0] = max(_MIN_BETA, theta[0])
    return ExpertState(_clip(theta, _MAX_PARAMETER), information)


def _learn_temperature(memory: float, state: ExpertState, sums: ExpertSums) -> ExpertState:
    beta, theta, information = state.theta[0], state.theta.copy(), state.information.copy()
    total = memory * information.flat[0] + sums.information.flat[0] + (1.0 - memory) * _PRIOR
    step = (sums.gradient[0] + (1.0 - memory) * _PRIOR * (beta - 1.0)) / total
    step = min(max(step, -_MAX_STEP), _MAX_STEP)
    theta[0] = min(max(beta - step, _MIN_BETA), _MAX_PARAMETER)
    information.flat[0] = total
    return ExpertState(theta, information)


def _clip(values: FloatArray, limit: float) -> FloatArray:
    return np.minimum(np.maximum(values, -limit), limit)  # faster than np.clip on short arrays


@lru_cache(maxsize=8)
def _prior(n_classes: int) -> FloatArray:
    size = 1 + n_classes
    prior = np.full(size, _PRIOR) if n_classes > FULL_INFORMATION else _PRIOR * np.eye(size)
    prior.setflags(write=False)
    return prior


def experts_to_state(states: tuple[ExpertState, ...] | list[ExpertState]) -> dict[str, Any]:
    """Return the states as plain numbers for JSON."""
    return {
        "theta": as_numbers(np.array([state.theta for state in states])),
        "information": as_numbers(np.array([state.information for state in states])),
    }


def experts_from_state(
    state: Mapping[str, Any], n_experts: int, n_classes: int
) -> list[ExpertState]:
    """Check and read the output of `experts_to_state`."""
    size = 1 + n_classes
    shape = (n_experts, size) if n_classes > FULL_INFORMATION else (n_experts, size, size)
    theta = read_finite_numbers(state, "theta", (n_experts, size))
    information = read_finite_numbers(state, "information", shape)
    diagonal = information if information.ndim == 2 else information.diagonal(axis1=1, axis2=2)
    if not (diagonal > 0).all():
        raise ValueError("'information' in the state must be positive")
    return [ExpertState(*pair) for pair in zip(theta, information, strict=True)]


@dataclass(frozen=True, eq=False)
class TopBins:
    """Numbers of rows and of correct predictions per bin of the confidence, of shape (20,) each."""

    count: FloatArray
    hits: FloatArray

    @classmethod
    def start(cls) -> TopBins:
        return cls(np.zeros(BINS), np.zeros(BINS))

    @property
    def rate(self) -> FloatArray:
        """Calibrated confidence of each bin."""
        middle = (np.arange(BINS) + 0.5) / BINS
        return (self.hits + middle) / (self.count + 1.0)

    def add_rows(self, proba: FloatArray, y: IntArray) -> TopBins:
        """Count rows with their labels."""
        claims = _CONFIDENCE.select(proba, y)
        place = _bin_index(claims.score[:, 0])
        count, hits = (np.bincount(part, minlength=BINS) for part in (place, place[claims.hit]))
        return TopBins(self.count + count, self.hits + hits)

    def recalibrate(self, proba: FloatArray) -> FloatArray:
        """Replace each confidence by the confidence of its bin, and rescale the other classes."""
        claims = _CONFIDENCE.select(proba)
        return _CONFIDENCE.fill(proba, claims._replace(score=self.rate[_bin_index(claims.score)]))

    def to_state(self) -> dict[str, Any]:
        """Return the counts as plain numbers for JSON."""
        return {"count": as_numbers(self.count), "hits": as_numbers(self.hits)}

    @classmethod
    def from_state(cls, state: Any) -> TopBins:
        """Check and read the output of `to_state`."""
        if not isinstance(state, Mapping):
            raise ValueError(
                "'calibeat' in the state must be an object with the keys 'count' and 'hits'"
            )
        count = read_finite_numbers(state, "count", (BINS,), low=0.0)
        hits = read_finite_numbers(state, "hits", (BINS,), low=0.0)
        if (hits > count).any():
            raise ValueError("'hits' in the state must not exceed 'count'")
        return cls(count, hits)


def _bin_index(score: FloatArray) -> IntArray:
    return np.minimum((score * BINS).astype(np.intp), BINS - 1)
