"""Measure CPU time and memory of a consistency test with 10,000 resamples at n = 10,000.

Run ``python benchmarks/consistency.py``. Memory is what the test needs in addition to its input.
The limits of the default installation (NumPy only) are 5 s for cw-ECE with 10 classes, 15 s with
100 classes, and 200 MB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time

import numpy as np

from calibrant.datasets import draw_labels
from calibrant.inference import consistency_test

CASES = [
    ("cw_ece", 10, 5.0),
    ("cw_ece", 100, 15.0),
    ("conf_ece", 10, 5.0),
    ("conf_ece", 100, 5.0),
    ("tl_ece", 100, 15.0),
]
N_ROWS = 10_000
MEMORY_LIMIT = 200.0


def peak_memory() -> float:
    """Return the largest memory of this process so far in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def measure(metric: str, n_classes: int) -> tuple[float, float]:
    """Return the CPU seconds of a test and its memory above the input in MB. Each case has its own
    process, because peak memory never decreases.
    """
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), N_ROWS)
    y = draw_labels(proba, rng=rng)
    consistency_test(y[:50], proba[:50], metric, 10, rng=0)
    before, start = peak_memory(), time.process_time()
    consistency_test(y, proba, metric, rng=0)
    return time.process_time() - start, peak_memory() - before


def main() -> None:
    print(f"{'metric':<10}{'classes':>8}{'CPU s':>8}{'limit':>6}{'MB':>7}{'limit':>6}")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for metric, n_classes, limit in CASES:
        command = [sys.executable, __file__, "--case", metric, str(n_classes)]
        out = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout
        seconds, memory = map(float, out.split())
        print(
            f"{metric:<10}{n_classes:>8}{seconds:>8.2f}{limit:>6.0f}{memory:>7.1f}{MEMORY_LIMIT:>6.0f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs=2, metavar=("METRIC", "CLASSES"))
    case = parser.parse_args().case
    if case:
        print(*measure(case[0], int(case[1])))
    else:
        main()
