"""Measure the CPU time of `GroupCalibration` with many groups and rows.

    python benchmarks/group_size.py [--rows 1_000_000]

1,000 groups, ten classes. The figures are CPU seconds of fits with two pooled calibrators and of a
prediction, and the same relative to the fit of the pooled calibrator alone. Results are written to
``results/group_size.csv``.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import GroupCalibration, method
from calibrant._kernels.simplex import softmax

RESULTS = Path(__file__).resolve().parent / "results" / "group_size.csv"
N_GROUPS, N_CLASSES = 1_000, 10


def simulate(n_rows: int) -> tuple[Any, Any, Any]:
    """Return scores, labels and groups. The logits of each group have different offsets."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, N_GROUPS, n_rows)
    u = 2 * rng.normal(size=(n_rows, N_CLASSES))
    offsets = 0.3 * rng.normal(size=(N_GROUPS, N_CLASSES))
    z = 0.7 * u + offsets[group]
    return softmax(u), (z + rng.gumbel(size=z.shape)).argmax(axis=1), group


def seconds(function: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(text.replace("_", "")), default=1_000_000)
    parser.add_argument(
        "--methods", nargs="+", default=["temperature", "structured-vector", "auto"]
    )
    options = parser.parse_args()
    p, y, group = simulate(options.rows)
    lines = []
    for name in options.methods:
        pooled, _ = seconds(lambda name=name: method(name).fit(p, y))
        fit, model = seconds(lambda name=name: GroupCalibration(name).fit(p, y, by=group))
        predict, _ = seconds(lambda model=model: model.predict_proba(p, by=group))
        lines.append([name, options.rows, *(f"{t:.1f}" for t in (pooled, fit, predict))])
        print(*lines[-1], model.strengths_, model.weights_, flush=True)
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["pooled", "rows", "pooled_fit_s", "group_fit_s", "group_predict_s"])
        writer.writerows(lines)


if __name__ == "__main__":
    main()
