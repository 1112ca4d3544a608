"""The maps of Kull et al. 2019 on UCI sets, ended where the code that they published ends them.

Where scores are exactly zero that code does not come to the minima of its objectives, and the
tables of the paper show it: maps that begin at the identity stay near it. Said here is what the
code does; it is not in the paper. The library's own fits are kept beside these.

* Dirichlet maps: Newton's method from the identity. The objective floors the probability of the
  true class, and a row below the floor has no slope, so that nothing is learned from it. A step is
  the pseudo-inverse of the curvature times the slope, shortened until the objective falls.
* "Beta" is such a map of two classes, p and 1 - p, for each class, without a penalty.
* The temperature: Adam, from one, on all rows. The logarithm of a zero leaves it at one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EPS, TINY = (float(getattr(np.finfo(np.float64), name)) for name in ("eps", "tiny"))
LENGTHS = np.r_[np.linspace(1, 0.1, 10), np.logspace(-2, -32, 31)]
SMALL_SLOPE, SMALL_FALL, MOST_STEPS = 1e-8, 1e-12, 1024
FLAT = 1e6 * EPS
"""Curvature below this share of the largest is none, as in the pseudo-inverse of SciPy then."""


def logarithms(proba: Any) -> Any:
    return np.log(np.clip(proba, TINY, 1))


class Problem:
    """The objective of a Dirichlet map; weights are rows of classes, intercepts their last column.

    Equal rows are one row with their share. The penalty is on differences from the last class.
    """

    def __init__(self, proba: Any, y: Any, strength: float) -> None:
        rows, counts = np.unique(np.c_[proba, y], axis=0, return_counts=True)
        self.x = np.c_[logarithms(rows[:, :-1]), np.ones(len(rows))]
        self.y, self.share = rows[:, -1].astype(int), counts / len(y)
        self.strength, self.n_classes = strength, proba.shape[1]

    def value(self, logits: Any, weights: Any) -> float:
        true = np.clip(self.true(shares(logits)), EPS, 1 - EPS)
        size = ((weights - weights[-1]) ** 2).sum()
        return float(-self.share @ np.log(true) + self.strength * size)

    def true(self, proba: Any) -> Any:
        return proba[np.arange(len(self.y)), self.y]

    def slope_and_curvature(self, logits: Any, weights: Any) -> tuple[Any, Any]:
        proba = shares(logits)
        true = self.true(proba)
        seen = (true >= EPS) & (true <= 1 - EPS)
        x, proba, share = self.x[seen], proba[seen], self.share[seen, None]
        miss = proba - np.eye(self.n_classes)[self.y[seen]]
        difference = weights - weights[-1]
        difference[-1] = -difference.sum(axis=0)
        slope = (miss * share).T @ x + 2 * self.strength * difference
        return slope, curvature(x, proba, share) + 2 * self.strength * self.penalty()

    def penalty(self) -> Any:
        """Curvature of half the sum of squares of differences from the last class."""
        among = np.eye(self.n_classes)
        among[-1] = among[:, -1] = -1
        among[-1, -1] = self.n_classes - 1
        return np.kron(among, np.eye(self.n_classes + 1))


def shares(logits: Any) -> Any:
    """The softmax, without the checks that take most of its time."""
    each = np.exp(logits - logits.max(axis=1, keepdims=True))
    return each / each.sum(axis=1, keepdims=True)


def curvature(x: Any, proba: Any, share: Any) -> Any:
    """Of the mean log-loss in all weights, row by row of classes."""
    n_classes, width = proba.shape[1], x.shape[1]
    each = (proba[:, :, None] * x[:, None, :]).reshape(len(x), n_classes * width)
    total = -(each * share).T @ each
    for k in range(n_classes):
        place = slice(k * width, (k + 1) * width)
        total[place, place] += (x * (share * proba[:, k : k + 1])).T @ x
    return total


def newton(problem: Problem) -> Any:
    weights = np.eye(problem.n_classes, problem.n_classes + 1)
    logits = problem.x @ weights.T
    values = [problem.value(logits, weights)]
    for step in range(MOST_STEPS):
        slope, curved = problem.slope_and_curvature(logits, weights)
        if np.abs(slope).sum() < SMALL_SLOPE:
            break
        way = direction(slope, curved)
        along = problem.x @ way.T
        for length in LENGTHS:
            value = problem.value(logits - length * along, weights - length * way)
            if value < values[-1]:
                break
        if value > values[-1]:
            break
        logits, weights = logits - length * along, weights - length * way
        values.append(value)
        if step >= 5 and values[-5] >= value and np.diff(values[-5:]).min() > -SMALL_FALL:
            break
    return weights


def direction(slope: Any, curved: Any) -> Any:
    """By the pseudo-inverse, or the slope itself where that is not to be had."""
    try:
        sizes, axes = np.linalg.eigh(curved)
    except np.linalg.LinAlgError:
        return slope
    kept = np.abs(sizes) > FLAT * np.abs(sizes).max()
    along = axes[:, kept].T @ slope.ravel() / sizes[kept]
    return (axes[:, kept] @ along).reshape(slope.shape)


def dirichlet(proba: Any, y: Any, strength: float) -> Any:
    """A function of scores, fitted."""
    weights = newton(Problem(proba, y, strength))
    return lambda scores: shares(np.c_[logarithms(scores), np.ones(len(scores))] @ weights.T)


def two_class(score: Any, outcome: Any) -> Any:
    """A function of scores of one class."""
    made = dirichlet(np.c_[1 - score, score], outcome, 0.0)
    return lambda scores: made(np.c_[1 - scores, scores])[:, 1]


def temperature(proba: Any, y: Any) -> float:
    """The power of probabilities: 1,024 epochs, or until 32 of them gain less than 1e-4.

    An epoch has a step for each 128 rows, each of which is on all rows.
    """
    power, best, first, second = 1.0, 1.0, 0.0, 0.0
    if (proba == 0).any():
        return power
    x, losses = np.log(proba), []
    for _ in range(1024):
        total = 0.0
        for _ in range(-(-len(y) // 128)):
            loss, slope = power_loss(power, x, y)
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            power -= 1e-3 * first / (second**0.5 + 1e-8)
            total += loss
        if losses and total < min(losses):
            best = power
        losses.append(total)
        if len(losses) > 32 and min(losses[:-32]) - min(losses[-32:]) <= 1e-4 * min(losses[:-32]):
            break
    return best


def power_loss(power: float, x: Any, y: Any) -> tuple[float, float]:
    """Sum over rows, and its slope."""
    z = power * x
    weight = np.exp(z)
    total = weight.sum(axis=1)
    true = x[np.arange(len(y)), y]
    loss = np.log(total).sum() - power * true.sum()
    return float(loss), float(((weight * x).sum(axis=1) / total).sum() - true.sum())
