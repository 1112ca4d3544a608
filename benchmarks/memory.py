"""Measure the memory of metrics on a memory map, for a tenth of the rows and for all rows.

    python benchmarks/memory.py                    25M x 10 in float64, 2 GB
    python benchmarks/memory.py --rows 1_000_000

Both measures exclude the map, because its pages belong to the file and can be dropped at any time:

- ``arrays``: the peak of tracemalloc. NumPy reports every array to it, also short-lived ones.
- ``process``: the growth of RssAnon, sampled every millisecond (Linux). RssAnon is the memory of
  the process that is not backed by files. It includes allocations of other libraries, but not freed
  memory that is used again, so it can be about 0.

Functions that work block by block need the same memory for ten times the rows. The KS error sorts
all confidences, so it and `evaluate` need O(n) memory: a few numbers per row for any number of
classes.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibrant import evaluate, metrics
from calibrant.metrics import expected_calibration_error

N_CLASSES = 10
MB = 1e6
# The allowance covers a few blocks per thread with temporary arrays. It is far below one number per
# row of the full map.
ALLOWANCE = 64 * MB
STATUS = Path("/proc/self/status")

Metric = Callable[[np.ndarray, np.ndarray], object]

BY_BLOCKS: dict[str, Metric] = {
    "ECE, confidence": expected_calibration_error,
    "ECE, class-wise": lambda y, p: expected_calibration_error(y, p, notion="class-wise"),
    "ECE, top-label": lambda y, p: expected_calibration_error(y, p, notion="top-label"),
    "log_loss": metrics.log_loss,
    "brier_score": metrics.brier_score,
    "accuracy": metrics.accuracy,
    "confidence_on_errors": metrics.confidence_on_errors,
    "doubt_on_correct": metrics.doubt_on_correct,
}
ORDERED: dict[str, Metric] = {"ks_error": metrics.ks_error, "evaluate": evaluate}


class Peak(NamedTuple):
    """Bytes in addition to the input. ``process`` is None if the system does not report it."""

    arrays: int
    process: int | None

    def __str__(self) -> str:
        process = "      n/a" if self.process is None else f"{self.process / MB:9.1f}"
        return f"{self.arrays / MB:9.1f} {process}"


def write_predictions(folder: Path, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Write memory maps of uniform points of the simplex and of labels drawn from them, block by
    block.
    """
    rng = np.random.default_rng(0)
    proba = np.memmap(folder / "proba", dtype=np.float64, mode="w+", shape=(n_rows, N_CLASSES))
    labels = np.memmap(folder / "labels", dtype=np.int64, mode="w+", shape=(n_rows,))
    for start in range(0, n_rows, 100_000):
        rows = slice(start, min(start + 100_000, n_rows))
        block = rng.standard_exponential((rows.stop - rows.start, N_CLASSES))
        block /= block.sum(axis=1, keepdims=True)
        proba[rows] = block
        # Of K exponential clocks with rates p, clock k is the first with probability p_k.
        labels[rows] = (rng.standard_exponential(block.shape) / block).argmin(axis=1)
    proba.flush()
    labels.flush()
    return labels, proba


def anonymous_memory() -> int | None:
    """Return RssAnon of this process in bytes."""
    if not STATUS.exists():
        return None
    line = next(
        (line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon")), None
    )
    return None if line is None else 1024 * int(line.split()[1])


def process_peak(metric: Metric, y: np.ndarray, p: np.ndarray) -> int | None:
    """Return the growth of RssAnon during the metric."""
    gc.collect()
    before = anonymous_memory()
    if before is None:
        return None
    samples, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            samples.append(anonymous_memory() or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        metric(y, p)
    finally:
        done.set()
        watcher.join()
    return max(samples) - before


def arrays_peak(metric: Metric, y: np.ndarray, p: np.ndarray) -> int:
    """Return the peak of the allocations of Python and NumPy during the metric."""
    gc.collect()
    tracemalloc.start()
    try:
        metric(y, p)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(name: str, metric: Metric, y: np.ndarray, p: np.ndarray) -> Peak:
    """Measure and print the peaks for a tenth of the rows and for all rows. Return those for all
    rows.
    """
    tenth = len(y) // 10
    parts = ((y[:tenth], p[:tenth]), (y, p))
    peaks = [Peak(arrays_peak(metric, *part), process_peak(metric, *part)) for part in parts]
    print(f"{name:<16} {peaks[0]}   {peaks[1]}", flush=True)
    return peaks[1]


def report(y: np.ndarray, p: np.ndarray) -> None:
    size = f"{p.nbytes / MB:,.0f} MB of float64 and {y.nbytes / MB:,.0f} MB of labels"
    print(f"input: {len(y):,} x {N_CLASSES}, {size}, both memory-mapped\n")
    print(f"{'peak in MB':<16} {f'{len(y) // 10:,} rows':>19}   {f'{len(y):,} rows':>19}")
    print(f"{'':<16} {'arrays':>9} {'process':>9}   {'arrays':>9} {'process':>9}")
    peaks = [measured(name, metric, y, p) for name, metric in BY_BLOCKS.items()]
    print("\nO(n) by design: all confidences are sorted")
    for name, metric in ORDERED.items():
        measured(name, metric, y, p)
    worst = max(max(peak.arrays, peak.process or 0) for peak in peaks)
    verdict = "is within" if worst <= ALLOWANCE else "EXCEEDS"
    print(
        f"\nBlock by block, the peak without the input is {worst / MB:.1f} MB. "
        f"It {verdict} the limit of {ALLOWANCE / MB:.0f} MB."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows",
        type=int,
        default=25_000_000,
        help="rows of the map, at least 10 (default: 25M, 2 GB)",
    )
    options = parser.parse_args()
    if options.rows < 10:
        parser.error("--rows must be at least 10")
    with tempfile.TemporaryDirectory() as folder:
        report(*write_predictions(Path(folder), options.rows))


if __name__ == "__main__":
    main()
