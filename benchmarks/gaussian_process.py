"""Measure the CPU time of Gaussian process calibration.

    OMP_NUM_THREADS=1 CALIBRANT_NUM_THREADS=1 python benchmarks/gaussian_process.py

The time is compared with a Newton fit of one temperature on the same rows. With ten inducing inputs
and 1,000 rows, the limit is 2 CPU seconds for 10 classes and 60 CPU seconds for 1,000 classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from calibrant.datasets import draw_labels
from calibrant.multiclass import GaussianProcessCalibration

BARS = {10: 2.0, 1000: 60.0}
DISTORTIONS = {"overconfident": 2.0, "underconfident": 0.05, "calibrated": 1.0}


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def some_logits(n_classes: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return 1,000 rows of logits that are too large by a factor."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(1000, n_classes))
    return factor * logits, draw_labels(softmax(logits, axis=1), rng=rng)


def fit_temperature(logits: np.ndarray, y: np.ndarray) -> float:
    rows = np.arange(len(y))
    return minimize_scalar(
        lambda b: -log_softmax(b * logits, axis=1)[rows, y].mean(), bounds=(0, 50), method="bounded"
    ).x


def main() -> None:
    print(
        f"{'classes':>8} {'scores':>15} {'covariance':>11} {'fit':>8} {'limit':>6} {'used':>6}",
        end=" ",
    )
    print(f"{'temperature':>12} {'ratio':>7} {'predict':>8}")
    for n_classes, limit in BARS.items():
        for name, factor in DISTORTIONS.items():
            logits, y = some_logits(n_classes, factor)
            single = cpu_seconds(lambda logits=logits, y=y: fit_temperature(logits, y))
            for covariance in ("diagonal", "full") if n_classes == 10 else ("diagonal",):
                gp = GaussianProcessCalibration(covariance=covariance, inputs="logits")
                fit = cpu_seconds(lambda gp=gp, logits=logits, y=y: gp.fit(logits, y))
                predict = cpu_seconds(lambda gp=gp, logits=logits: gp.predict_proba(logits))
                print(
                    f"{n_classes:>8} {name:>15} {covariance:>11} {fit:>7.2f}s {limit:>5.0f}s "
                    f"{fit / limit:>6.0%} "
                    f"{single:>11.3f}s {fit / single:>6.0f}x {predict:>7.2f}s"
                )


if __name__ == "__main__":
    main()
