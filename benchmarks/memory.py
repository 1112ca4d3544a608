"""Memory of the metrics on a memory map: the peak beside the input, for a tenth of the rows and for
all of them.

Two measures, both of what is needed *beside* the map, whose pages belong to the file and can be
dropped at any time:

- ``arrays``: tracemalloc's peak. NumPy reports every array to it, so that no short-lived one is
  missed.
- ``process``: the growth of RssAnon, the memory of the process that no file backs, sampled every
  millisecond (Linux). It also sees what libraries allocate behind NumPy's back, but not memory that
  was freed before and is used again: about 0 means that nothing had to be asked of the system.

What works block by block needs the same for ten times the rows. The KS error, and with it
`evaluate`, orders all top scores and is O(n) by design: a few numbers a row, whatever the number of
classes.

    python benchmarks/memory.py                    25M x 10 in float64, 2 GB
    python benchmarks/memory.py --rows 1_000_000
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
# A few blocks a thread, each with its temporaries; far below one number a row of the full map.
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
    """Bytes beside the input; ``process`` is None where the system does not tell."""

    arrays: int
    process: int | None

    def __str__(self) -> str:
        process = "      n/a" if self.process is None else f"{self.process / MB:9.1f}"
        return f"{self.arrays / MB:9.1f} {process}"


def write_predictions(folder: Path, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Maps of labels and of uniform points of the simplex, written block by block; the labels are
    drawn from them."""
    rng = np.random.default_rng(0)
    proba = np.memmap(folder / "proba", dtype=np.float64, mode="w+", shape=(n_rows, N_CLASSES))
    labels = np.memmap(folder / "labels", dtype=np.int64, mode="w+", shape=(n_rows,))
    for start in range(0, n_rows, 100_000):
        rows = slice(start, min(start + 100_000, n_rows))
        block = rng.standard_exponential((rows.stop - rows.start, N_CLASSES))
        block /= block.sum(axis=1, keepdims=True)
        proba[rows] = block
        # The first of K exponential clocks with rates p rings at k with probability p_k.
        labels[rows] = (rng.standard_exponential(block.shape) / block).argmin(axis=1)
    proba.flush()
    labels.flush()
    return labels, proba


def anonymous_memory() -> int | None:
    """RssAnon of this process in bytes."""
    if not STATUS.exists():
        return None
    line = next(
        (line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon")), None
    )
    return None if line is None else 1024 * int(line.split()[1])


def process_peak(metric: Metric, y: np.ndarray, p: np.ndarray) -> int | None:
    """Growth of RssAnon while the metric runs."""
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
    """Peak of what Python and NumPy allocate while the metric runs."""
    gc.collect()
    tracemalloc.start()
    try:
        metric(y, p)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measured(name: str, metric: Metric, y: np.ndarray, p: np.ndarray) -> Peak:
    """Peaks for a tenth of the rows and for all; prints them, returns the latter."""
    tenth = len(y) // 10
    parts = ((y[:tenth], p[:tenth]), (y, p))
    peaks = [Peak(arrays_peak(metric, *part), process_peak(metric, *part)) for part in parts]
    print(f"{name:<16} {peaks[0]}   {peaks[1]}", flush=True)
    return peaks[1]


def report(y: np.ndarray, p: np.ndarray) -> None:
    size = f"{p.nbytes / MB:,.0f} MB of float64 and {y.nbytes / MB:,.0f} MB of labels"
    print(f"input: {len(y):,} x {N_CLASSES}, {size}, both mapped\n")
    print(f"{'peak in MB':<16} {f'{len(y) // 10:,} rows':>19}   {f'{len(y):,} rows':>19}")
    print(f"{'':<16} {'arrays':>9} {'process':>9}   {'arrays':>9} {'process':>9}")
    peaks = [measured(name, metric, y, p) for name, metric in BY_BLOCKS.items()]
    print("\nO(n) by design: all top scores are ordered")
    for name, metric in ORDERED.items():
        measured(name, metric, y, p)
    worst = max(max(peak.arrays, peak.process or 0) for peak in peaks)
    said = "stays within" if worst <= ALLOWANCE else "EXCEEDS"
    print(
        f"\nblock by block: the peak beside the input is {worst / MB:.1f} MB, which {said} "
        f"{ALLOWANCE / MB:.0f} MB"
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
