"""Measure CPU seconds of fits and of a report, and compare them with their limits.

    python benchmarks/promises.py

The tests count only the passes of these cases. The script ends with exit code 1 if a limit is
exceeded.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import DirichletCalibration, VectorScaling
from calibrant.exceptions import ConvergenceWarning
from calibrant.report import summarize

PROBCAL = Path(__file__).resolve().parent.parent / "tests" / "golden" / "probcal"


def predictions(n_rows: int, n_classes: int, scale: float) -> tuple[Any, Any]:
    """Return logits that are twice too large, and labels."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=scale, size=(n_rows, n_classes)).astype(np.float32)
    return 2 * logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def vector_scaling() -> Callable[[], Any]:
    logits, labels = predictions(20_000, 100, 1.0)
    return lambda: VectorScaling(inputs="logits").fit(logits, labels)


def separable_dirichlet() -> Callable[[], Any]:
    proba = np.loadtxt(PROBCAL / "doc_p.csv", delimiter=",")
    labels = np.loadtxt(PROBCAL / "doc_y.csv", delimiter=",").astype(int) - 1
    return lambda: DirichletCalibration().fit(proba, labels)


def report() -> Callable[[], Any]:
    logits, labels = predictions(4000, 10, 2.0)
    return lambda: summarize(labels, logits, inputs="logits")


CASES: dict[str, tuple[Callable[[], Callable[[], Any]], float]] = {
    "vector scaling, 20,000 x 100": (vector_scaling, 60.0),
    "Dirichlet, separable, lam=None": (separable_dirichlet, 20.0),
    "report, 4,000 x 10": (report, 30.0),
}


def main() -> int:
    n_exceeded = 0
    for name, (prepare, limit) in CASES.items():
        run = prepare()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.process_time()
            run()
            seconds = time.process_time() - start
        n_exceeded += seconds > limit
        print(f"{name:34} {seconds:6.1f} s   limit {limit:.0f} s")
    return int(n_exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
