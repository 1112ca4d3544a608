"""Fits of Kull et al. 2019 on UCI data sets that stop where the published code stops.

If scores are exactly zero, this code does not reach the minima of its objectives. The tables of the
paper show this: calibrators that start at the identity stay near it. The paper does not describe
this behavior. The results of the library's own fits are stored next to these.

* Dirichlet calibration: Newton's method from the identity. The objective floors the probability of
  the true class. A row below the floor has no gradient and does not contribute. A step is the
  pseudo-inverse of the Hessian times the gradient, shortened until the objective falls.
* "Beta" is Dirichlet calibration of p and 1 - p for each class, without a penalty.
* The temperature: Adam from one, on all rows. The logarithm of a zero leaves it at one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EPS, TINY = (float(getattr(np.finfo(np.float64), name)) for name in ("eps", "tiny"))
LENGTHS = np.r_[np.linspace(1, 0.1, 10), np.logspace(-2, -32, 31)]
SMALL_SLOPE, SMALL_FALL, MOST_STEPS = 1e-8, 1e-12, 1024
FLAT = 1e6 * EPS
"""Eigenvalues below this share of the largest count as zero, as in the pseudo-inverse of SciPy at
that time."""


def logarithms(proba: Any) -> Any:
    return np.log(np.clip(proba, TINY, 1))


class Problem:
    """The objective of Dirichlet calibration. Weights are rows of classes with the intercept in the
    last column.

    Equal rows are merged into one row with their share. The penalty is on differences from the last
    class.
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
        """Return the Hessian of half the sum of squares of differences from the last class."""
        among = np.eye(self.n_classes)
        among[-1] = among[:, -1] = -1
        among[-1, -1] = self.n_classes - 1
        return np.kron(among, np.eye(self.n_classes + 1))


def shares(logits: Any) -> Any:
    """Compute the softmax without checks, which take most of its time."""
    each = np.exp(logits - logits.max(axis=1, keepdims=True))
    return each / each.sum(axis=1, keepdims=True)


def curvature(x: Any, proba: Any, share: Any) -> Any:
    """Return the Hessian of the mean log-loss in all weights, row by row of classes."""
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
    """Return the Newton step by the pseudo-inverse, or the gradient if it cannot be computed."""
    try:
        sizes, axes = np.linalg.eigh(curved)
    except np.linalg.LinAlgError:
        return slope
    kept = np.abs(sizes) > FLAT * np.abs(sizes).max()
    along = axes[:, kept].T @ slope.ravel() / sizes[kept]
    return (axes[:, kept] @ along).reshape(slope.shape)


def dirichlet(proba: Any, y: Any, strength: float) -> Any:
    """Return a fitted function of scores."""
    weights = newton(Problem(proba, y, strength))
    return lambda scores: shares(np.c_[logarithms(scores), np.ones(len(scores))] @ weights.T)


def two_class(score: Any, outcome: Any) -> Any:
    """Return a fitted function of the scores of one class."""
    predict = dirichlet(np.c_[1 - score, score], outcome, 0.0)
    return lambda scores: predict(np.c_[1 - scores, scores])[:, 1]


def temperature(proba: Any, y: Any) -> float:
    """Return the exponent of the probabilities after 1,024 epochs, or after 32 epochs that gain
    less than 1e-4.

    An epoch has one step for each 128 rows, and each step uses all rows.
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
    """Return the sum over rows and its gradient."""
    z = power * x
    weight = np.exp(z)
    total = weight.sum(axis=1)
    true = x[np.arange(len(y)), y]
    loss = np.log(total).sum() - power * true.sum()
    return float(loss), float(((weight * x).sum(axis=1) / total).sum() - true.sum())
