"""Measure how often the bounds of risk-coverage curves and the planned power of tests hold.

    python benchmarks/risk_coverage.py --data ../shared/data --output results.csv

The file is the population: its rows are drawn with replacement, so the error rate above every
threshold is known. The rows "bounds" have the share of samples in which any of the 16 bounds is
violated (the guarantee is at most 0.1), and the mean share of rows for which the bounds guarantee a
risk of 0.05. The rows "power" have the share of samples in which a test at level 0.05 rejects. The
labels of these samples are drawn from the probabilities at temperature 1.25, and n is the number of
rows for a power of 0.8 (`rows_needed`).
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant._kernels.simplex import as_proba
from calibrant.datasets import draw_labels
from calibrant.inference import (
    calibration_line,
    consistency_test,
    risk_coverage,
    rows_needed,
    spiegelhalter_test,
)
from prediction_files import load

FILES = (
    *("cifar10_resnet50_gupta", "cifar100_resnet50_gupta", "20news_cleanlab"),
    *("kitti_randomforest_pycalib", "tinyimagenet202_effnetlite0"),
)
ROWS = (200, 1000)
TEMPERATURE = 1.25
FIELDS = ("kind", "data", "n", "what", "share", "samples", "coverage")


def predictions(path: Path) -> tuple[Any, Any]:
    """Return probabilities and labels of the test rows of a file, or of all its rows."""
    inputs, rows, test = load(path)
    chosen = test or rows
    proba = np.asarray(as_proba(chosen.scores, inputs), dtype=np.float64)
    return proba / proba.sum(axis=1, keepdims=True), np.asarray(chosen.labels)


def bounds(proba: Any, labels: Any, n_samples: int) -> Iterator[dict[str, Any]]:
    """Yield violations of simultaneous bounds by number of rows."""
    score, wrong = proba.max(axis=1), proba.argmax(axis=1) != labels
    order = np.argsort(score)
    ordered = score[order]
    errors = np.append(np.cumsum(wrong[order][::-1])[::-1], 0)
    for n_rows in ROWS:
        rng, n_failed, coverage = np.random.default_rng(n_rows), 0, []
        for _ in range(n_samples):
            rows = rng.integers(0, len(labels), n_rows)
            curve = risk_coverage(labels[rows], proba[rows])
            above = np.searchsorted(ordered, curve.threshold, side="right")
            true_risk = errors[above] / np.maximum(len(labels) - above, 1)
            n_failed += bool((true_risk > curve.high).any())
            coverage.append(curve.proved_coverage(0.05))
        share = n_failed / n_samples
        yield {"n": n_rows, "what": "any bound", "share": share, "coverage": np.mean(coverage)}


def score_p_value(y: Any, proba: Any, seed: int) -> float:
    """Return 1 if the two-sided score test of temperature 1 rejects at level 0.05, or 0."""
    u = np.log(np.maximum(proba, 1e-300))
    mean = (proba * u).sum(axis=1)
    variance = (proba * u**2).sum(axis=1) - mean**2
    z = (mean - u[np.arange(len(y)), y]).sum() / np.sqrt(variance.sum())
    return 0.0 if abs(z) > ndtri(0.975) else 1.0


TESTS: dict[str, Callable[[Any, Any, int], float]] = {
    "score test of the temperature": score_p_value,
    "consistency test of log-loss": lambda y, p, seed: (
        consistency_test(y, p, "log_loss", 99, rng=seed).p_value
    ),
    "Spiegelhalter, confidence": lambda y, p, seed: spiegelhalter_test(y, p).p_value,
    "Cox, confidence": lambda y, p, seed: calibration_line(y, p).test.p_value,
    "consistency test of ECE": lambda y, p, seed: (
        consistency_test(y, p, "conf_ece", 99, rng=seed).p_value
    ),
}


def powers(proba: Any, n_samples: int) -> Iterator[dict[str, Any]]:
    """Yield shares of rejections of tests at the planned number of rows."""
    n_rows = rows_needed(proba, temperature=TEMPERATURE).n_rows
    rng, rejected = np.random.default_rng(1), dict.fromkeys(TESTS, 0)
    for seed in range(n_samples):
        rows = proba[rng.integers(0, len(proba), n_rows)]
        true = rows ** (1 / TEMPERATURE)
        y = draw_labels(true / true.sum(axis=1, keepdims=True), rng=rng)
        for name, test in TESTS.items():
            rejected[name] += test(y, rows, seed) <= 0.05
    for name, count in rejected.items():
        yield {"n": n_rows, "what": name, "share": count / n_samples, "coverage": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--power-samples", type=int, default=300)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with options.output.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for name in FILES:
            proba, labels = predictions(options.data / f"{name}.npz")
            jobs = {
                "bounds": (bounds(proba, labels, options.samples), options.samples),
                "power": (powers(proba, options.power_samples), options.power_samples),
            }
            for kind, (records, n_samples) in jobs.items():
                for record in records:
                    row = {"kind": kind, "data": name, "samples": n_samples, **record}
                    row["share"] = round(float(row["share"]), 4)
                    row["coverage"] = row["coverage"] and round(float(row["coverage"]), 4)
                    table.writerow(row)
                    file.flush()
                    print(row, flush=True)


if __name__ == "__main__":
    main()
