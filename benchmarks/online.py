"""Measure how much `OnlineCalibration` reduces log-loss.

The data are simulated drifts of a real network, and COVTYPE in its natural order.

    python benchmarks/online.py --data ../shared/data [--rows 20_000]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import _one_thread  # noqa: F401
from _watch import draw, load, normalized, tilted
from calibrant import StructuredScaling, VectorScaling
from calibrant.exceptions import ConvergenceWarning
from calibrant.metrics import expected_calibration_error
from calibrant.monitoring import OnlineCalibration

N_ROWS, N_STREAMS = 6_000, 4
TRAINED, CALIBRATED, REFIT, STEP = 20_000, 5_000, 1_000, 500
CALIBRATORS = {
    "vector": VectorScaling(classes=range(7)),
    "structured": StructuredScaling("vector", classes=range(7)),
}
"""Calibrators for comparison, which are fitted once or again after a number of rows."""


def streams(p: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each drift, and the true probabilities if the predictions are p."""
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
                OnlineCalibration(share=0.0).fit(p, y).log_loss_,
                OnlineCalibration().fit(p, y).log_loss_,
            ]
            least = log_loss(truth, y)
            excess.setdefault(name, []).append([(loss - least) / N_ROWS for loss in losses])
    for name, rows in excess.items():
        yield f"| {name} | " + " | ".join(f"{value:.5f}" for value in np.mean(rows, axis=0)) + " |"


def covtype(folder: Path, n_rows: int) -> Iterator[str]:
    """Train a classifier on the first rows of the file, and evaluate on the rows that follow."""
    p, y = forecast_covtype(folder, n_rows)
    start = time.process_time()
    online = OnlineCalibration(classes=range(7)).fit(p, y)
    rate = len(y) / (time.process_time() - start)
    losses = {"deployed": log_loss(p, y)}
    for title, calibrator in CALIBRATORS.items():
        calibrator.fit(p[:CALIBRATED], y[:CALIBRATED])
        once = np.vstack([p[:CALIBRATED], calibrator.predict_proba(p[CALIBRATED:])])
        losses[f"{title}, once"] = log_loss(once, y)
        losses[f"{title}, every {REFIT:,} rows"] = log_loss(
            np.vstack([*refitted(calibrator, p, y)]), y
        )
    losses["online"] = online.log_loss_
    yield f"| log-loss a row, COVTYPE, {len(y):,} rows | {' | '.join(losses)} |"
    yield "|---" * (1 + len(losses)) + "|"
    yield "| | " + " | ".join(f"{loss / len(y):.4f}" for loss in losses.values()) + " |"
    yield f"\n{rate:,.0f} rows/s of CPU time, K = 7\n"
    yield from calibeating(p, y)


def calibeating(p: Any, y: Any) -> Iterator[str]:
    """Evaluate predictions of 500 rows that are made before the calibrator is updated with them."""
    yield "| COVTYPE | log-loss a row | conf-ECE, 20 bins |"
    yield "|---|---|---|"
    predictions = {"deployed": p}
    for calibeat in (False, True):
        online = OnlineCalibration(classes=range(7), calibeat=calibeat)
        predictions[f"online, calibeat={calibeat}"] = np.vstack([*predicted_blocks(online, p, y)])
    for title, q in predictions.items():
        error = expected_calibration_error(y, q, n_bins=20, classes=range(7))
        yield f"| {title} | {log_loss(q, y) / len(y):.4f} | {error:.4f} |"


def predicted_blocks(online: OnlineCalibration, p: Any, y: Any) -> Iterator[Any]:
    for start in range(0, len(y), STEP):
        rows = slice(start, start + STEP)
        yield online.predict_proba(p[rows])
        online.partial_fit(p[rows], y[rows])


def forecast_covtype(folder: Path, n_rows: int) -> tuple[Any, Any]:
    """Return probabilities and labels of the rows after the training rows, in the order of the
    file.
    """
    with np.load(folder / "features_covtype.npz", allow_pickle=False) as file:
        x, y = (file[name][: TRAINED + n_rows] for name in ("X", "y"))
        y = y.astype(int) - int(file["y"].min())
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    model.fit(x[:TRAINED].astype(float), y[:TRAINED])
    p = np.full((len(y) - TRAINED, 7), 1e-6)
    p[:, model[-1].classes_] = model.predict_proba(x[TRAINED:].astype(float))
    return normalized(p), y[TRAINED:]


def refitted(calibrator: Any, p: Any, y: Any) -> Iterator[Any]:
    """Yield predictions of each thousand rows by a calibrator of the thousand rows before."""
    yield p[:REFIT]
    for start in range(REFIT, len(y), REFIT):
        before = slice(start - REFIT, start)
        # If a class has few rows, a calibrator may predict a probability of zero. A little uniform
        # mass in the predictions prevents this.
        calibrator.fit(p[before], y[before])
        yield 0.99 * calibrator.predict_proba(p[start : start + REFIT]) + 0.01 / 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=561_012, help="number of rows of COVTYPE")
    arguments = parser.parse_args()
    # Some thousands of rows lack classes. How a refit handles these is part of the comparison.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for lines in (simulated(arguments.data), covtype(arguments.data, arguments.rows)):
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
