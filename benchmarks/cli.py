"""Measure time and memory of the command line on large Parquet files.

    python benchmarks/cli.py                      # 1,000,000 x 10 rows
    python benchmarks/cli.py --rows 10_000_000    # more rows; memory must not grow

The script runs `evaluate`, and `apply` with a fitted temperature. Times include the start of
Python. Memory is the largest resident set of the process. The target for `evaluate` of 1,000,000 x
10 rows is less than 5 s and less than 1 GB on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

BLOCK = 250_000


def write_predictions(path: Path, n_rows: int, n_classes: int) -> None:
    """Write overconfident predictions block by block."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, BLOCK):
        logits = rng.normal(scale=1.5, size=(min(BLOCK, n_rows - start), n_classes))
        labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        proba = np.exp(1.7 * logits)
        proba /= proba.sum(axis=1, keepdims=True)
        table = pa.table({**{f"p_{k}": proba[:, k] for k in range(n_classes)}, "label": labels})
        writer = writer or pa_parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def measured(*arguments: str) -> tuple[float, float, float]:
    """Run a command. Return its seconds, CPU seconds and peak memory in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant.cli", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"calibrant {' '.join(arguments)} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, small, model, out = (
            str(Path(folder) / name)
            for name in ("data.parquet", "small.parquet", "m.json", "out.parquet")
        )
        write_predictions(Path(data), options.rows, options.classes)
        write_predictions(Path(small), 10_000, options.classes)
        measured("fit", small, "-m", "temperature", "-o", model, "-q")
        print(
            f"{options.rows:,} x {options.classes} rows, {os.path.getsize(data) / 2**20:,.0f} MB "
            f"of Parquet"
        )
        for name, arguments in {
            "evaluate": ["evaluate", data],
            "apply": ["apply", model, data, "-o", out],
        }.items():
            seconds, busy, megabytes = measured(*arguments, "-q")
            print(f"{name:<10} {seconds:6.2f} s   {busy:6.2f} s of CPU time   {megabytes:7.0f} MB")


if __name__ == "__main__":
    main()
