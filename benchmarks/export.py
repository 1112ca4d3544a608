"""Measure the size and the latency of exported calibrators.

Run ``python benchmarks/export.py``. The script needs onnxruntime.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import _one_thread  # noqa: F401  # before NumPy
import calibrant
from calibrant import export
from calibrant.datasets import noisy_simplex

LIMITS = {"temperature": 2_000, "structured-matrix": 100_000}
"""Limits of the file size in bytes: temperature for 10 classes, structured matrix for 100."""

MOST_MICROSECONDS = 100.0


def seconds_a_call(call, repeats=2000):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> int:
    import onnxruntime

    failed = False
    for method, n_classes in (("temperature", 10), ("structured-matrix", 100), ("auto", 10)):
        data = noisy_simplex(3000, n_classes, noise=0.7, rng=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = calibrant.method(method).fit(data.proba, data.labels)
        path = Path(tempfile.mkdtemp()) / "calibrator.onnx"
        export.to_onnx(model, path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options)
        row = {"scores": data.proba[:1]}
        micro = 1e6 * seconds_a_call(lambda session=session, row=row: session.run(None, row))
        size = path.stat().st_size
        print(f"{method:<18} K = {n_classes:<4} {size:>9,} bytes {micro:8.1f} us per row")
        failed |= size > LIMITS.get(method, size) or micro > MOST_MICROSECONDS
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
