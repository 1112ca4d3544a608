"""What `OnlineCalibration` gains: simulated drifts of a real network, and COVTYPE in its natural
order.

    python benchmarks/online.py --data ../shared/data [--rows 100_000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import _one_thread  # noqa: F401
from _watch import draw, load, normalized, tilted
from calibrant import VectorScaling
from calibrant.monitoring import OnlineCalibration

N_ROWS, N_STREAMS = 6_000, 4
TRAINED, CALIBRATED, REFIT = 20_000, 5_000, 1_000


def streams(p: Any) -> Iterator[tuple[str, Any]]:
    """What the truth is of forecasts p, by the name of the drift."""
    t = np.arange(len(p))[:, None]
    yield "no drift", p
    yield "abrupt temperature change", normalized(p ** np.where(t < len(p) // 2, 1.0, 0.5))
    yield "slow class drift", tilted(p, t / len(p) * (np.arange(p.shape[1]) < p.shape[1] // 2))
    yield "seasonal temperature", normalized(p**2 ** np.sin(2 * np.pi * t / 2000))


def log_loss(p: Any, y: Any) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).sum())


def simulated(folder: Path) -> Iterator[str]:
    yield "| stream | deployed | mixture | fixed share |"
    yield "|---|---|---|---|"
    proba, rng = load(folder, "cifar10_resnet50_gupta"), np.random.default_rng(1)
    excess: dict[str, list[list[float]]] = {}
    for _ in range(N_STREAMS):
        p = proba[rng.integers(0, len(proba), N_ROWS)]
        for name, truth in streams(p):
            y = draw(truth, rng)
            losses = [
                log_loss(p, y),
                OnlineCalibration(share=0.0).partial_fit(p, y).log_loss_,
                OnlineCalibration().partial_fit(p, y).log_loss_,
            ]
            least = log_loss(truth, y)
            excess.setdefault(name, []).append([(loss - least) / N_ROWS for loss in losses])
    for name, rows in excess.items():
        yield f"| {name} | " + " | ".join(f"{one:.5f}" for one in np.mean(rows, axis=0)) + " |"


def covtype(folder: Path, n_rows: int) -> Iterator[str]:
    """A classifier of the first rows, judged on what follows in the order of the file."""
    with np.load(folder / "features_covtype.npz", allow_pickle=False) as file:
        x, y = (file[name][: TRAINED + n_rows] for name in ("X", "y"))
        y = y.astype(int) - int(file["y"].min())
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(x[:TRAINED].astype(float), y[:TRAINED])
    p = np.full((n_rows, 7), 1e-6)
    known = model[-1].classes_
    p[:, known] = model.predict_proba(x[TRAINED:].astype(float))
    p, y = normalized(p), y[TRAINED:]
    start = time.process_time()
    online = OnlineCalibration(classes=range(7)).partial_fit(p, y)
    rate = n_rows / (time.process_time() - start)
    static = VectorScaling(classes=range(7)).fit(p[:CALIBRATED], y[:CALIBRATED])
    said = [p[:CALIBRATED], static.predict_proba(p[CALIBRATED:])]
    refit = list(refitted(p, y))
    yield "| log-loss a row | deployed | static map | refit every 1,000 rows | online |"
    yield "|---|---|---|---|---|"
    losses = (log_loss(p, y), log_loss(np.vstack(said), y), log_loss(np.vstack(refit), y))
    cells = " | ".join(f"{loss / n_rows:.4f}" for loss in (*losses, online.log_loss_))
    yield f"| COVTYPE, {n_rows:,} rows | {cells} |"
    yield f"\n{rate:,.0f} rows/s of processor time, K = 7"


def refitted(p: Any, y: Any) -> Iterator[Any]:
    """Each thousand rows by a map of the thousand before."""
    yield p[:REFIT]
    for start in range(REFIT, len(y), REFIT):
        before = slice(start - REFIT, start)
        # A map of few rows of some classes runs away: a little uniform mass on both sides.
        own = VectorScaling(classes=range(7)).fit(p[before], y[before])
        yield 0.99 * own.predict_proba(p[start : start + REFIT]) + 0.01 / 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    for lines in (simulated(arguments.data), covtype(arguments.data, arguments.rows)):
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
