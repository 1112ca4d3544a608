"""Compare the speed of scaling methods with scikit-learn.

Run ``python benchmarks/scaling.py`` (two minutes). ``--large`` adds the largest workloads. The
script uses one thread and the shortest of several CPU times, and prints ratios of one run.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import time

import numpy as np
from scipy.special import log_softmax
from sklearn.calibration import _TemperatureScaling
from sklearn.linear_model import LogisticRegression

from calibrant import DirichletCalibration, StructuredScaling, TemperatureScaling


def workload(n_samples, n_classes, seed=0):
    """Return overconfident logits with a little noise, and labels."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n_samples, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return 1.7 * logits + 0.3 * rng.normal(size=logits.shape), labels


def cpu_seconds(function, repeats):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def row(what, n_samples, n_classes, ours, other, theirs):
    sizes = f"{n_samples:>9,} x {n_classes:<5}"
    print(
        f"{what:12} {sizes} {1e3 * ours:9.1f} ms   {other:>15} {1e3 * theirs:9.1f} ms   "
        f"{theirs / ours:5.1f} x",
        flush=True,
    )


def temperature(n_samples, n_classes, repeats):
    logits, labels = workload(n_samples, n_classes)
    ours = cpu_seconds(lambda: TemperatureScaling(inputs="logits").fit(logits, labels), repeats)
    # The estimator behind scikit-learn's method="temperature", without the wrapper's own cost.
    theirs = cpu_seconds(lambda: _TemperatureScaling().fit(logits, labels), max(1, repeats // 2))
    row("temperature", n_samples, n_classes, ours, "scikit-learn", theirs)


def dirichlet(n_samples, n_classes, solver, repeats, lam=1e-3):
    logits, labels = workload(n_samples, n_classes)
    u = log_softmax(logits, axis=1)
    ours = cpu_seconds(
        lambda: DirichletCalibration(lam, inputs="logits").fit(logits, labels), repeats
    )
    # scikit-learn penalizes all weights and no intercept. This is its closest problem.
    model = LogisticRegression(C=1 / (2 * lam * n_samples), solver=solver, tol=1e-6, max_iter=1000)
    theirs = cpu_seconds(lambda: model.fit(u, labels), 1)
    row("Dirichlet", n_samples, n_classes, ours, solver, theirs)


def search(n_samples, n_classes):
    logits, labels = workload(n_samples, n_classes)
    single = cpu_seconds(lambda: DirichletCalibration(1e-3, inputs="logits").fit(logits, labels), 1)
    whole = cpu_seconds(lambda: DirichletCalibration(inputs="logits").fit(logits, labels), 1)
    row("one fit", n_samples, n_classes, single, "lam=None (16 fits)", whole)


def structured(n_samples, n_classes, structure, repeats):
    logits, labels = workload(n_samples, n_classes)
    ours = cpu_seconds(
        lambda: StructuredScaling(structure, inputs="logits").fit(logits, labels), repeats
    )
    print(f"structured   {n_samples:>9,} x {n_classes:<5} {1e3 * ours:9.1f} ms   {structure}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--large",
        action="store_true",
        help="also 10k x 100 with scikit-learn (a minute) and 25k x 1000",
    )
    large = parser.parse_args().large
    temperature(10_000, 10, 9)
    temperature(10_000, 100, 5)
    temperature(1_000_000, 10, 3)
    dirichlet(10_000, 10, "newton-cholesky", 3)
    dirichlet(3_000, 60, "newton-cg", 2)
    search(5_000, 10)
    search(5_000, 100)
    for structure in ("vector", "matrix"):
        structured(5_000, 100, structure, 2)
    if large:
        temperature(25_000, 1000, 1)
        dirichlet(10_000, 100, "newton-cg", 1)
        structured(25_000, 1000, "vector", 1)


if __name__ == "__main__":
    main()
