"""Train calibrators of DenseNet-40 as Kull et al. did, and compute the library's minima.

The authors' calibrators are layers of a network. Adam trains them on shuffled batches of 128 rows,
for at most 500 epochs, until the loss of an epoch has not fallen for 15 epochs. All but vector
scaling are then trained again at a tenth of the learning rate. Training ends near the minimum of
the objective, at a point that depends on the order of the batches. Folds and strengths come from
the published code and notebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.model_selection import KFold

from calibrant import CrossFitted, DirichletCalibration, MatrixScaling, VectorScaling

STRENGTHS = {"Dir-L2": (0.01, 0.01), "Dir-ODIR": (1000.0, 0.01), "MS-ODIR": (250.0, 1e-4)}
KINDS = ("VecS", *STRENGTHS)
EPS = float(np.finfo(np.float64).eps)
BATCH, EPOCHS, PATIENCE, RATE = 128, 500, 15, 1e-3


def folds(n_samples: int) -> list[tuple[Any, Any]]:
    return list(KFold(5, shuffle=True, random_state=15).split(np.zeros(n_samples)))


@dataclass
class Layers:
    """Several linear layers of K x K weights and K offsets, trained at the same time."""

    weights: Any
    offsets: Any
    penalty: tuple[Any, Any]
    free: Any  # per weight: 1, or 0 if it is fixed
    is_live: Any = field(init=False)

    @classmethod
    def identities(cls, kind: str, n_layers: int, k: int) -> Layers:
        lam, mu = STRENGTHS.get(kind, (0.0, 0.0))
        where = np.ones((k, k)) if kind == "Dir-L2" else 1 - np.eye(k)
        free = np.eye(k) if kind == "VecS" else np.ones((k, k))
        weights, offsets = np.tile(np.eye(k), (n_layers, 1, 1)), np.zeros((n_layers, k))
        return cls(weights, offsets, (lam * where, mu * np.ones(k)), free)

    def slopes(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """Return the loss of a batch for each layer, and the gradients of weights and offsets."""
        proba = softmax(x @ self.weights + self.offsets[:, None], axis=2)
        true = np.take_along_axis(proba, y[..., None], axis=2)
        loss = -np.log(np.maximum(true, 1e-7)).mean(axis=(1, 2)) + self.penalties()
        np.put_along_axis(proba, y[..., None], true - 1, axis=2)
        proba /= x.shape[1]
        on_weights = np.swapaxes(x, 1, 2) @ proba + 2 * self.penalty[0] * self.weights
        return loss, on_weights * self.free, proba.sum(axis=1) + 2 * self.penalty[1] * self.offsets

    def penalties(self) -> Any:
        on_weights = (self.penalty[0] * self.weights**2).sum(axis=(1, 2))
        return on_weights + (self.penalty[1] * self.offsets**2).sum(axis=1)

    def predict(self, v: Any) -> Any:
        return softmax(v @ self.weights + self.offsets[:, None], axis=2)


class Adam:
    """Adam's running moments of one array of parameters."""

    def __init__(self, like: Any) -> None:
        self.first, self.second, self.step = np.zeros_like(like), np.zeros_like(like), 0

    def move(self, slope: Any, rate: float) -> Any:
        self.step += 1
        self.first += 0.1 * (slope - self.first)
        self.second += 0.001 * (slope * slope - self.second)
        scale = rate * np.sqrt(1 - 0.999**self.step) / (1 - 0.9**self.step)
        return scale * self.first / (np.sqrt(self.second) + 1e-7)


def train(layers: Layers, u: Any, y: Any, rows: Any, rate: float, rng: Any) -> None:
    """Train each layer on its own ``rows`` until its loss stops falling."""
    moments = Adam(layers.weights), Adam(layers.offsets)
    best, waited = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=int)
    layers.is_live = np.ones(len(rows), dtype=bool)
    for _ in range(EPOCHS):
        loss = epoch(layers, u, y, rng.permuted(rows, axis=1), rate, moments)
        waited = np.where(loss < best, 0, waited + 1)
        best = np.minimum(best, loss)
        layers.is_live &= waited < PATIENCE
        if not layers.is_live.any():
            return


def epoch(layers: Layers, u: Any, y: Any, order: Any, rate: float, moments: Any) -> Any:
    """Make one pass over all rows. Return the mean loss of each layer."""
    total = 0.0
    for begin in range(0, order.shape[1], BATCH):
        batch = order[:, begin : begin + BATCH]
        loss, *slopes = layers.slopes(u[batch], y[batch])
        total = total + loss * batch.shape[1]
        for parameters, moment, slope in zip(
            (layers.weights, layers.offsets), moments, slopes, strict=True
        ):
            move = moment.move(slope, rate)
            parameters[layers.is_live] -= move[layers.is_live]
    return total / order.shape[1]


def inputs_of(kind: str, logits: Any) -> Any:
    """Return logits for matrix and vector scaling, floored log-probabilities for Dirichlet
    calibration.
    """
    if not kind.startswith("Dir"):
        return logits
    return np.log(np.clip(softmax(logits, axis=1), EPS, 1 - EPS))


def trained(kind: str, X: Any, y: Any, Z: Any, n_draws: int) -> tuple[Any, Layers]:
    """Return test predictions of every draw of batches, and the layers. The folds of a draw are
    trained together.
    """
    rng = np.random.default_rng(15)
    parts = [np.arange(len(y))] if kind == "VecS" else [rows for rows, _ in folds(len(y))]
    rows = np.tile(parts, (n_draws, 1))
    layers = Layers.identities(kind, len(rows), X.shape[1])
    u = inputs_of(kind, X)
    for rate in (RATE,) if kind == "VecS" else (RATE, RATE / 10):
        train(layers, u, y, rows, rate, rng)
    return averaged(layers.predict(inputs_of(kind, Z)), n_draws), layers


def averaged(proba: Any, n_draws: int) -> Any:
    """Return means over the calibrators of a draw."""
    return proba.reshape(n_draws, -1, *proba.shape[1:]).mean(axis=1)


def minima(X: Any, y: Any, Z: Any) -> Mapping[str, Any]:
    """Return test predictions of the library's minima of the same objectives."""
    P, Q = softmax(X, axis=1), softmax(Z, axis=1)
    l2, odir, ms = (STRENGTHS[kind] for kind in STRENGTHS)
    fits = {
        "Dir-L2": (DirichletCalibration(l2[0], penalty="l2", eps=EPS), P, Q, "proba"),
        "Dir-ODIR": (DirichletCalibration(*odir, eps=EPS), P, Q, "proba"),
        "MS-ODIR": (MatrixScaling(*ms), X, Z, "logits"),
    }
    out = {"VecS": VectorScaling(inputs="logits").fit(X, y).predict_proba(Z)}
    for kind, (calibrator, fit_on, test_on, inputs) in fits.items():
        fitted = CrossFitted(calibrator, cv=folds(len(y)), inputs=inputs).fit(fit_on, y)
        out[kind] = fitted.predict_proba(test_on)
    return out
