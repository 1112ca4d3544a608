"""Simulate many streams at once, each read by a test and by a detector.

The network files have few distinct rows, so a table by row and label holds the factors of the fixed
members. Learned members are updated as in a monitor, for all streams at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._kernels.simplex import EPS, softmax
from calibrant.monitoring._alternatives import Members, make_rule
from calibrant.monitoring._experts import Expert, ExpertState, as_u

ALPHA = 0.05
TOGETHER = 100
"""Number of streams that are simulated together. Their arrays fit into the cache."""


def load(folder: Path, name: str) -> Any:
    """Probabilities of the test rows of a network."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        z = file["test_logits"].astype(np.float64)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return normalized(p)


def draw(truth: Any, rng: Any) -> Any:
    """Draw one label per row of probabilities."""
    y = (truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    return y.clip(max=truth.shape[1] - 1)


def normalized(p: Any) -> Any:
    return p / p.sum(axis=1, keepdims=True)


def tilted(p: Any, log_tilt: Any) -> Any:
    return normalized(p * np.exp(log_tilt))


@dataclass
class Network:
    """Predicted probabilities of distinct rows, the members that monitor them, and the table of
    their factors (n, K, J).
    """

    proba: Any
    logs: Any
    members: Members
    table: Any

    @classmethod
    def of(cls, proba: Any, **options: Any) -> Network:
        rule = make_rule(
            **{
                "false_alarm": ALPHA,
                "horizon": 20_000,
                "tolerance": 0.0,
                "notions": ("confidence", "class-wise"),
                "mode": "detector",
                "arl": None,
                "lag": 1,
                "inputs": "proba",
                **options,
            }
        )
        members = Members(rule, proba.shape[1])
        return cls(proba, as_u(proba), members, _table(members, proba))

    def weight(self, families: list[int], *, alike: bool = False) -> Any:
        """Return the weights (J,) of all members if only some families are used.

        The weights are those of a monitor. With ``alike``, all families have the same total weight,
        and so have the members of a family.
        """
        layout, out = self.members.layout, np.zeros(self.members.layout.n_members)
        for columns in map(layout.family, families):
            weight = layout.weight[columns]
            out[columns] = 1.0 / len(weight) if alike else weight
        return out / out.sum()


def _table(members: Members, proba: Any) -> Any:
    n_rows, n_classes = proba.shape
    parts = []
    for k in range(n_classes):
        y = np.full(n_rows, k)
        factors = [family.factors(proba, y).reshape(n_rows, -1) for family in members.families]
        parts.append(np.concatenate(factors, axis=1))
    return np.stack(parts, axis=1)


@dataclass(frozen=True)
class LearnedStreams:
    """One learned member in every stream: ``theta`` (S, 1 + K) and ``information`` (S, 1 + K, 1 +
    K).

    The numbers equal those of `calibrant.monitoring._experts` for single streams. This class
    computes them several times as fast.
    """

    expert: Expert
    theta: Any
    information: Any

    @classmethod
    def start(cls, expert: Expert, n_streams: int, n_classes: int) -> LearnedStreams:
        state = ExpertState.start(n_classes)
        arrays = (state.theta, state.information)
        return cls(expert, *(np.repeat(array[None], n_streams, axis=0) for array in arrays))

    def learn(self, u: Any, y: Any) -> tuple[Any, LearnedStreams]:
        """Return the predicted probabilities of the labels (S, n) of rows (S, n, K), and the
        updated expert.
        """
        q = softmax((self.theta[:, :1, None] * u + self.theta[:, None, 1:]).reshape(-1, u.shape[2]))
        q = q.reshape(u.shape)
        predicted = np.take_along_axis(q, y[:, :, None], axis=2)[:, :, 0]
        return predicted, self._after(q, u, y)

    def _after(self, q: Any, u: Any, y: Any) -> LearnedStreams:
        n_rows, n_classes = u.shape[1:]
        ones, start = np.ones(n_classes), ExpertState.start(n_classes)
        kept = self.expert.discount**n_rows
        weighted = q * u
        mean = weighted @ ones
        information = np.zeros_like(self.information)
        information[:, 0, 0] = np.einsum("snk,snk->s", weighted, u) - (mean**2).sum(axis=1)
        truth = np.take_along_axis(u, y[:, :, None], axis=2)[:, :, 0]
        gradient = np.zeros_like(self.theta)
        gradient[:, 0] = (mean - truth).sum(axis=1)
        if self.expert.intercepts:
            counts = np.stack([np.bincount(row, minlength=n_classes) for row in y])
            gradient[:, 1:] = q.sum(axis=1) - counts
            mixed = weighted.sum(axis=1) - (mean[:, None] @ q)[:, 0]
            information[:, 0, 1:] = information[:, 1:, 0] = mixed
            information[:, 1:, 1:] = -(q.transpose(0, 2, 1) @ q)
            place = np.arange(1, 1 + n_classes)
            information[:, place, place] += q.sum(axis=1)
        information += kept * self.information + (1.0 - kept) * start.information
        away = self.theta - start.theta
        gradient += (1.0 - kept) * start.information[0, 0] * away
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        theta = np.clip(self.theta - np.clip(step, -1.0, 1.0), -50.0, 50.0)
        theta[:, 0] = np.maximum(theta[:, 0], 0.02)
        return replace(self, theta=theta, information=information)


@dataclass
class Streams:
    """Streams of one network, each read as a test and as a detector with several sets of weights.

    ``wealth`` (2, S, J) belongs to the members in tests and detectors. Values below 1e-200 become
    zero. ``alarms`` (2, W, S) has the row of each alarm, or infinity.
    """

    network: Network
    weight: Any
    limit: Any
    rng: Any
    wealth: Any
    alarms: Any
    experts: list[LearnedStreams]
    n_rows: int = 0

    @classmethod
    def start(
        cls,
        network: Network,
        weights: list[Any],
        limits: tuple[float, float],
        rng: Any,
        n_streams: int = TOGETHER,
    ) -> Streams:
        """Start streams. ``limits`` are the alarm limits of the test and of the detector."""
        wealth = np.zeros((2, n_streams, network.members.layout.n_members))
        wealth[0] = 1.0
        alarms = np.full((2, len(weights), n_streams), np.inf)
        limit = np.array(limits)[:, None, None]
        n_classes = network.proba.shape[1]
        experts = [
            LearnedStreams.start(expert, n_streams, n_classes) for expert in network.members.experts
        ]
        return cls(network, np.stack(weights, axis=1), limit, rng, wealth, alarms, experts)

    def fork(self) -> Streams:
        """Return streams with the same past and without alarms."""
        alarms = np.full_like(self.alarms, np.inf)
        return replace(self, alarms=alarms, wealth=self.wealth.copy(), experts=list(self.experts))

    def feed(self, truth: Any, n_rows: int, wanted: Any = np.s_[:]) -> Any:
        """Read rows whose labels follow ``truth`` (n, K). Return the row of each alarm.

        Reading ends after ``n_rows`` rows, or when all ``wanted`` readings have raised an alarm.
        Rows are counted from the start of the call.
        """
        cumulative, before = truth.cumsum(axis=1), self.n_rows
        size = self.network.members.block_rows
        while self.n_rows - before < n_rows and not np.isfinite(self.alarms[wanted]).all():
            self._feed_block(cumulative, min(size, n_rows - (self.n_rows - before)))
        return self.alarms - before

    def _feed_block(self, cumulative: Any, size: int) -> None:
        n_streams = self.wealth.shape[1]
        index = self.rng.integers(0, len(cumulative), (size, n_streams))
        drawn = self.rng.random((size, n_streams, 1))
        y = (cumulative[index] < drawn).sum(axis=2).clip(max=cumulative.shape[1] - 1)
        members, n_fixed = self.network.members, self.network.table.shape[2]
        factors = np.empty((size, n_streams, members.layout.n_members))
        factors[:, :, :n_fixed] = self.network.table[index, y]
        factors[:, :, n_fixed:] = 1.0
        if self.weight[n_fixed:].any():
            self._learn(index, y, factors)
        with np.errstate(over="ignore"):
            for row in factors:
                self._step(row)
        self.wealth[self.wealth < 1e-200] = 0.0

    def _step(self, factors: Any) -> None:
        self.n_rows += 1
        self.wealth[1] += 1.0
        self.wealth *= factors
        mixed = (self.wealth @ self.weight).transpose(0, 2, 1)
        is_alarm = (mixed >= self.limit) & np.isinf(self.alarms)
        if is_alarm.any():
            self.alarms[is_alarm] = self.n_rows

    def _learn(self, index: Any, y: Any, factors: Any) -> None:
        u, deployed = self.network.logs[index.T], self.network.proba[index, y]
        first = factors.shape[2] - len(self.experts)
        for column, expert in enumerate(self.experts, start=first):
            predicted, self.experts[column - first] = expert.learn(u, y.T)
            factors[:, :, column] = predicted.T / np.maximum(deployed, EPS)
