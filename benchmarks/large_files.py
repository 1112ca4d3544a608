"""Measure memory, CPU time and passes of fits, evaluations and commands on large files.

    python benchmarks/large_files.py                    20M x 10 in float32, 10M for commands
    python benchmarks/large_files.py --rows 1_000_000

Each case runs in its own process, on a terminal, so that it shows progress bars. ``MB`` is the
largest growth of RssAnon after the package was imported (Linux). RssAnon is the memory of the
process that is not backed by files. Pages of a memory map belong to its file and can be dropped at
any time. Files are written to a temporary folder (``TMPDIR``, 2 GB) and removed, or to ``--folder``
and kept.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

N_CLASSES, ALLOWANCE_MB = 10, 500
BLOCK_ROWS = 500_000


def blocks(n_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return overconfident logits and labels."""
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, BLOCK_ROWS):
        shape = (min(BLOCK_ROWS, n_rows - start), N_CLASSES)
        z = 2 * rng.standard_normal(shape, dtype=np.float32)
        # Of K exponential clocks with rates exp(z), clock k is the first with the softmax
        # probability of k.
        clocks = rng.standard_exponential(shape, dtype=np.float32) * np.exp(-z)
        yield np.float32(1.7) * z, clocks.argmin(axis=1)


def write_map(folder: Path, n_rows: int) -> None:
    scores = np.lib.format.open_memmap(
        folder / "z.npy", mode="w+", dtype=np.float32, shape=(n_rows, N_CLASSES)
    )
    labels = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int64, shape=(n_rows,))
    start = 0
    for z, y in blocks(n_rows):
        scores[start : start + len(y)], labels[start : start + len(y)] = z, y
        start += len(y)


def write_parquet(path: Path, n_rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    fields = [(f"z_{k}", pa.float32()) for k in range(N_CLASSES)]
    schema = pa.schema([*fields, ("label", pa.int8())])
    with pa.parquet.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as writer:
        for z, y in blocks(n_rows):
            columns = [*z.T.copy(), y.astype(np.int8)]
            writer.write_table(pa.table(columns, schema=schema))


# ---------------------------------------------------------------- the measured process


def anonymous_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def watched(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of the work with its memory and time."""
    before, done = anonymous_mb(), threading.Event()
    samples = [before]

    def watch() -> None:
        while not done.wait(0.005):
            samples.append(anonymous_mb())

    watcher, start = threading.Thread(target=watch), time.perf_counter()
    watcher.start()
    try:
        result = work()
    finally:
        done.set()
        watcher.join()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        **result,
        "mb": max(samples) - before,
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.perf_counter() - start,
    }


def opened(path: Path) -> Any:
    from calibrant.io import open_scores

    if path.suffix == ".npy":
        return open_scores(path, logits="*", labels=path.with_name("y.npy"), progress=True)
    return open_scores(path, progress=True)


def fit(path: Path) -> dict[str, Any]:
    from calibrant import TemperatureScaling

    file = opened(path)
    model = TemperatureScaling(inputs="logits").fit(file.scores, file.labels)
    return {"found": f"T = {model.temperature_:.5f}", "passes": model.n_passes_}


def evaluate_file(path: Path) -> dict[str, Any]:
    from calibrant import evaluate

    file = opened(path)
    result = evaluate(file.labels, file.scores, inputs="logits")
    return {"found": f"conf-ECE = {result.conf_ece:.5f}", "passes": 1}


def fit_array(path: Path) -> dict[str, Any]:
    from calibrant import TemperatureScaling

    scores, labels = (np.load(path.with_name(name), mmap_mode="r") for name in ("z.npy", "y.npy"))
    model = TemperatureScaling(inputs="logits").fit(scores, labels)
    return {"found": f"T = {model.temperature_:.5f}", "passes": model.n_iter_}


def evaluate_array(path: Path) -> dict[str, Any]:
    from calibrant import evaluate

    scores, labels = (np.load(path.with_name(name), mmap_mode="r") for name in ("z.npy", "y.npy"))
    result = evaluate(labels, scores, inputs="logits")
    return {"found": f"conf-ECE = {result.conf_ece:.5f}", "passes": 1}


def command(path: Path, method: str = "temperature") -> dict[str, Any]:
    from calibrant import load
    from calibrant.cli import run

    out = path.with_name("model.json")
    if run(["fit", str(path), "-m", method, "-o", str(out)]) != 0:
        raise RuntimeError("calibrant fit failed")
    model = load(out)
    return {"found": FOUND[method](model), "passes": model.n_passes_}


FOUND: dict[str, Callable[[Any], str]] = {
    "temperature": lambda model: f"T = {model.temperature_:.5f}",
    "auto": lambda model: f"gain = {model.gain_.gain:.5f}",
    "histogram": lambda model: f"{model.calibrators_[0].edges_.size:,} bins",
    "isotonic": lambda model: f"{model.calibrators_[0].edges_.size:,} steps",
}
"""Attributes that identify the fit of a calibrator."""


def command_compare(path: Path) -> dict[str, Any]:
    from calibrant.cli import run

    out = path.with_name("comparison.json")
    words = ["compare", str(path), "-m", "temperature", "-m", "isotonic", "--json"]
    with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
        if run(words) != 0:
            raise RuntimeError("calibrant compare failed")
    rows = json.loads(out.read_text(encoding="utf-8"))["results"]
    gains = {row["method"]: row["log_loss_gain"] for row in rows}
    return {"found": f"gain = {gains['temperature']:.5f}", "passes": ""}


def command_report(path: Path) -> dict[str, Any]:
    from calibrant.cli import run

    out = path.with_name("report.json")
    words = ["report", str(path), "-m", "temperature", "-o", str(path.with_name("report.html"))]
    with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
        if run([*words, "--json"]) != 0:
            raise RuntimeError("calibrant report failed")
    rows = json.loads(out.read_text(encoding="utf-8"))["metrics"]
    value = next(row["before"] for row in rows if row["name"] == "log_loss")
    return {"found": f"log-loss = {value['value']:.5f}", "passes": ""}


WORK = {
    "fit": fit,
    "evaluate": evaluate_file,
    "fit of numpy.memmap": fit_array,
    "evaluate of numpy.memmap": evaluate_array,
    "calibrant fit": command,
    "calibrant fit -m auto": partial(command, method="auto"),
    "calibrant fit -m histogram": partial(command, method="histogram"),
    "calibrant fit -m isotonic": partial(command, method="isotonic"),
    "calibrant report": command_report,
    "calibrant compare": command_compare,
}


def serve(name: str, path: Path, answer: Path) -> None:
    import calibrant.cli
    import calibrant.io  # noqa: F401

    answer.write_text(json.dumps(watched(lambda: WORK[name](path))), encoding="utf-8")


# ---------------------------------------------------------------- the table


def run_case(name: str, path: Path) -> dict[str, Any]:
    """Run a case in its own process, on a terminal. Record whether it draws a progress bar."""
    answer = path.with_name("answer.json")
    answer.unlink(missing_ok=True)
    ours, theirs = pty.openpty()
    words = [sys.executable, __file__, "--serve", name, str(path), str(answer)]
    child = subprocess.Popen(words, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = bytearray()
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the process has closed the terminal
        pass
    os.close(ours)
    if child.wait() != 0:
        raise RuntimeError(f"{name} of {path.name} failed:\n{shown.decode()[-2000:]}")
    return {**json.loads(answer.read_text(encoding="utf-8")), "bar": "━".encode() in shown}


def write_files(folder: Path, n_rows: int) -> None:
    """Write the files that do not exist yet."""
    if not (folder / "z.npy").exists():
        write_map(folder, n_rows)
    for name, rows in (("z.parquet", n_rows), ("half.parquet", n_rows // 2)):
        if not (folder / name).exists():
            write_parquet(folder / name, rows)


def report(folder: Path, n_rows: int, only: list[str] | None) -> bool:
    write_files(folder, n_rows)
    cases = [
        *((name, folder / file) for file in ("z.npy", "z.parquet") for name in ("fit", "evaluate")),
        ("fit of numpy.memmap", folder / "z.npy"),
        ("evaluate of numpy.memmap", folder / "z.npy"),
        *((name, folder / "half.parquet") for name in WORK if name.startswith("calibrant")),
    ]
    print("| case | file | result | passes | MB | CPU s | s | progress bar |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    is_met = True
    for name, path in cases:
        if only and not any(text in f"{name} {path.name}" for text in only):
            continue
        result = run_case(name, path)
        rows = n_rows // 2 if path.stem == "half" else n_rows
        size = f"{rows:,} rows, {path.suffix[1:]}"
        numbers = [f"{result[key]:.0f}" for key in ("mb", "cpu", "seconds")]
        cells = [name, size, result["found"], str(result["passes"]), *numbers]
        print("| " + " | ".join([*cells, "yes" if result["bar"] else "no"]) + " |", flush=True)
        is_met = is_met and result["mb"] <= ALLOWANCE_MB
    print(f"\n{'All' if is_met else 'NOT all'} cases use at most {ALLOWANCE_MB} MB of memory.")
    return is_met


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument(
        "--only", nargs="*", help="cases whose name and file contain one of these texts"
    )
    parser.add_argument("--folder", type=Path, help="folder in which the files are kept")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        name, path, answer = options.serve
        serve(name, Path(path), Path(answer))
        return
    if options.folder:
        is_met = report(options.folder, options.rows, options.only)
    else:
        with tempfile.TemporaryDirectory() as folder:
            is_met = report(Path(folder), options.rows, options.only)
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
