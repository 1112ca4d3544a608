"""Fits and metrics on a cluster of processes: equal to those in memory, in little memory, and after
the death of a worker.

Logits are written to files, a chunk each, and read by the workers; a process of its own makes the
results in memory that those of the cluster are held against. Memory is the peak of the resident set
(VmHWM) above what it was when the process was idle with all libraries imported and a small fit
done. Exit code 1 where a bar is not met.

    python benchmarks/cluster.py                    2,000,000 x 10 in float32, 40 chunks, 80 MB
    python benchmarks/cluster.py --rows 40_000      a small version
    python benchmarks/cluster.py --failures         a dead worker, none left, a poisoned row
    python benchmarks/cluster.py --scaling          two workers against one, and where the time goes
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import config
from distributed import Client, LocalCluster

import _one_thread  # noqa: F401  # before NumPy
from calibrant import (
    AutoCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    MulticlassToBinary,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    evaluate,
    metrics,
)
from calibrant._validation import as_parts

N_CLASSES, N_CHUNKS = 10, 40
BAR, CELLS_BAR = 1e-8, 1e-3
METRICS = "metrics"
SUM_METRICS = (
    *("accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "mce"),
    *("overconfidence", "underconfidence", "sharpness"),
)
MEMBERS = {
    "temperature": TemperatureScaling(prior_scale=0.25),
    "structured-vector": StructuredScaling("vector"),
}


def calibrators(n_rows: int, *, in_memory: bool) -> dict[str, Any]:
    """What is fitted, and whether it is a sum (True) or summarised (False)."""
    rows = np.arange(n_rows)
    folds = 5 if not in_memory else [(rows[rows % 5 != 0], rows[rows % 5 == 0])]
    class_wise = {"notion": "class-wise", "normalize": True}
    return {
        "temperature": TemperatureScaling(),
        "ensemble temperature": EnsembleTemperatureScaling(),
        "vector": VectorScaling(),
        "matrix": MatrixScaling(lam=1e-3),
        "structured vector": StructuredScaling("vector"),
        "structured matrix": StructuredScaling("matrix"),
        "Dirichlet": DirichletCalibration(lam=1e-3),
        "Dirichlet, chosen": DirichletCalibration(grid=(1e-3, 1e-1), cv=2),
        "histogram, equal width": MulticlassToBinary(
            HistogramBinning(n_bins=15, strategy="uniform"), **class_wise
        ),
        "auto": AutoCalibration(MEMBERS, cv=folds),
        "histogram, equal mass (cells)": MulticlassToBinary(HistogramBinning(n_bins=15)),
        "isotonic (cells)": MulticlassToBinary(IsotonicCalibration(), **class_wise),
    }


def write_chunks(folder: Path, n_rows: int) -> None:
    """Overconfident logits, some classes more so than others, and labels."""
    size = n_rows // N_CHUNKS
    for k in range(N_CHUNKS):
        rng = np.random.default_rng(k)
        logits = 2 * rng.normal(size=(size, N_CLASSES)).astype(np.float32)
        tilt = np.linspace(0.5, 0.7, N_CLASSES) * logits + np.linspace(0, 0.3, N_CLASSES)
        y = (tilt + rng.gumbel(size=logits.shape)).argmax(axis=1)
        np.save(folder / f"logits-{k}.npy", logits)
        np.save(folder / f"labels-{k}.npy", y.astype(np.int16))


def read_chunks(folder: Path, n_rows: int) -> tuple[Any, Any]:
    """dask arrays whose chunks are files."""
    rows = ((n_rows // N_CHUNKS,) * N_CHUNKS,)
    return (
        da.map_blocks(load, folder, "logits", chunks=(*rows, (N_CLASSES,)), dtype=np.float32),
        da.map_blocks(load, folder, "labels", chunks=rows, dtype=np.int16),
    )


def load(folder: Path, name: str, block_id: tuple[int, ...] = (0,)) -> np.ndarray:
    """A chunk of a file."""
    return np.load(folder / f"{name}-{block_id[0]}.npy")


def new_rows() -> np.ndarray:
    """Rows that every fitted map predicts."""
    return 2 * np.random.default_rng(99).normal(size=(2000, N_CLASSES))


def results(X: Any, y: Any, made_here: dict[str, Any]) -> dict[str, Any]:
    """Predictions of every map, and every metric."""
    found: dict[str, Any] = {}
    for name, made in made_here.items():
        if name == METRICS:
            found |= metrics_of(X, y)
            continue
        start = time.perf_counter()
        fitted = made.set_params(inputs="logits").fit(X, y)
        if getattr(fitted, "top_", None) is not None:
            found["top"] = fitted.top_
            fitted.top_ = None  # the top probability of parts is not corrected
        passes = getattr(fitted, "n_passes_", 0)
        seconds = time.perf_counter() - start
        found[name] = fitted.predict_proba(new_rows()), passes, seconds
        print(f"  {name}: {passes} passes, {seconds:.1f} s", file=sys.stderr, flush=True)
    return found


def metrics_of(X: Any, y: Any) -> dict[str, Any]:
    """The evaluation, and a binned error that needs ranks."""
    options = {"inputs": "logits", "strategy": "quantile"}
    return {
        METRICS: evaluate(y, X, inputs="logits").to_dict(),
        "quantile": metrics.expected_calibration_error(y, X, **options),
    }


def in_memory(folder: Path, n_rows: int, only: list[str]) -> None:
    """The results of all rows in memory, by a process of its own, into a file of ours; those that
    are there already are not made again.
    """
    path = folder / "reference.pickle"
    known = pickle.loads(path.read_bytes()) if path.exists() else {}
    wanted = chosen(n_rows, only, in_memory=True)
    missing = {name: made for name, made in wanted.items() if name not in known}
    X = np.concatenate([np.load(folder / f"logits-{k}.npy") for k in range(N_CHUNKS)])
    y = np.concatenate([np.load(folder / f"labels-{k}.npy") for k in range(N_CHUNKS)])
    path.write_bytes(pickle.dumps({**known, **results(X, y.astype(np.intp), missing)}))


def chosen(n_rows: int, only: list[str], *, in_memory: bool) -> dict[str, Any]:
    """What is compared: everything, or what is named."""
    made = {**calibrators(n_rows, in_memory=in_memory), METRICS: None}
    return {name: one for name, one in made.items() if not only or name in only}


@contextmanager
def cluster(n_workers: int) -> Any:
    """Processes of one thread each."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as processes,
        Client(processes) as client,
    ):
        yield processes, client


def pids(client: Client) -> list[int]:
    return sorted(client.run(os.getpid).values())


def warm_up() -> None:
    """What any fit imports."""
    X = np.random.default_rng(0).random((3000, N_CLASSES))
    y = np.arange(3000) % N_CLASSES
    for made in (StructuredScaling("matrix"), MulticlassToBinary(HistogramBinning(n_bins=3))):
        made.set_params(inputs="logits").fit(X, y)
    evaluate(y, X, inputs="logits")


def peak(pid: int, *, reset: bool = False) -> float:
    """MB of the largest resident set since it was last reset."""
    if reset:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1e3


def compare(reference: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, float, bool]]:
    """The largest difference of each result, and whether it is within its bar."""
    rows = []
    for name, own in found.items():
        if isinstance(own, tuple):
            away = np.abs(own[0] - reference[name][0])
            # A row beside an edge may lie on its other side: of cells the mean is shown.
            difference = float(away.mean() if "cells" in name else away.max())
            rows.append((name, difference, difference <= (CELLS_BAR if "cells" in name else BAR)))
    if METRICS in found:
        own, other = found[METRICS], reference[METRICS]
        for name in SUM_METRICS:
            difference = abs(own[name] - other[name])
            rows.append((name, difference, difference <= BAR))
        for name, difference in (
            ("ks (cells)", abs(own["ks"] - other["ks"])),
            ("ECE of equal mass (cells)", abs(found["quantile"] - reference["quantile"])),
        ):
            rows.append((name, difference, difference <= CELLS_BAR))
    return rows


def run_all(folder: Path, n_rows: int, only: list[str]) -> bool:
    """Equality and memory."""
    command = [sys.executable, __file__, "--rows", str(n_rows), "--reference", str(folder)]
    subprocess.run([*command, "--only", *only], check=True)
    made = chosen(n_rows, only, in_memory=False)
    reference = pickle.loads((folder / "reference.pickle").read_bytes())
    megabytes = n_rows * N_CLASSES * 4 / 1e6
    with cluster(2) as (_, client):
        warm_up()
        client.run(warm_up)
        X, y = read_chunks(folder, n_rows)
        TemperatureScaling(inputs="logits").fit(X[:4000].rechunk((100, -1)), y[:4000])
        who = [os.getpid(), *pids(client)]
        idle = [peak(pid, reset=True) for pid in who]
        found = results(X, y, made)
        grown = [peak(pid) - before for pid, before in zip(who, idle, strict=True)]
        rows = compare(reference, found)
        print("\n| result | passes | seconds | largest difference |\n|---|---|---|---|")
        for name, difference, _ in rows:
            _, passes, seconds = found.get(name, (0, "", None))
            shown = "" if seconds is None else f"{seconds:.1f}"
            print(f"| {name} | {passes} | {shown} | {difference:.1e} |")
        print(f"\nData: {megabytes:.0f} MB; a third: {megabytes / 3:.1f} MB.")
        for name, before, more in zip(("client", "worker 1", "worker 2"), idle, grown, strict=True):
            print(f"Peak of {name} above its idle {before:.0f} MB: {more:.1f} MB.")
        small = all(more < megabytes / 3 for more in grown)
    return all(fine for _, _, fine in rows) and small


def run_failures(folder: Path, n_rows: int) -> bool:
    """What happens where something fails."""
    return kill_one(folder, n_rows) & report_poison(folder, n_rows) & report_alone(folder, n_rows)


def kill_one(folder: Path, n_rows: int) -> bool:
    """A worker is killed in the middle of a fit."""
    made = StructuredScaling("vector", inputs="logits")
    with cluster(2) as (_, client):
        client.run(warm_up)
        X, y = read_chunks(folder, n_rows)
        start = time.perf_counter()
        whole = made.fit(X, y).predict_proba(new_rows())
        return _kill_during(client, X, y, whole, 0.5 * (time.perf_counter() - start))


def _kill_during(client: Client, X: Any, y: Any, whole: np.ndarray, seconds: float) -> bool:
    before = pids(client)
    timer = threading.Timer(seconds, os.kill, (before[0], signal.SIGKILL))
    timer.start()
    fitted = StructuredScaling("vector", inputs="logits").fit(X, y)
    timer.join()
    difference = np.abs(fitted.predict_proba(new_rows()) - whole).max()
    is_other = pids(client) != before
    print(f"Worker {before[0]} killed {seconds:.1f} s into a fit: difference {difference:.1e}.")
    return bool(difference <= BAR) and is_other


def report_poison(folder: Path, n_rows: int) -> bool:
    """NaN in one row is reported with its number."""
    row = 1_234_567 * n_rows // 2_000_000
    k, place = divmod(row, n_rows // N_CHUNKS)
    path = folder / f"logits-{k}.npy"
    logits = np.load(path)
    kept = logits[place, 3]
    logits[place, 3] = np.nan
    np.save(path, logits)
    with cluster(2):
        try:
            TemperatureScaling(inputs="logits").fit(*read_chunks(folder, n_rows))
            said = "nothing"
        except ValueError as error:
            said = str(error)
    logits[place, 3] = kept
    np.save(path, logits)
    print(f"NaN in row {row:,}: {said}")
    return f"row {row} of the logits" in said


def report_alone(folder: Path, n_rows: int) -> bool:
    """All workers leave in the middle of a fit."""
    with cluster(2) as (processes, _):
        timer = threading.Timer(1.0, processes.scale, (0,))
        timer.start()
        try:
            MatrixScaling(lam=1e-3, inputs="logits").fit(*read_chunks(folder, n_rows))
            said = "nothing"
        except RuntimeError as error:
            said = str(error)
    print(f"All workers gone: {said}")
    return "workers" in said


class TimedRows:
    """Parts that tell how long our functions took on the workers, and how long passes took."""

    def __init__(self, X: Any, y: Any) -> None:
        self.parts = as_parts(X, y)
        self.n_columns = self.parts.n_columns
        self.distinct_labels = self.parts.distinct_labels
        self.own = self.all = 0.0

    def add_up(self, function: Callable[[Any], Any], add: Any = None) -> Any:
        start = time.perf_counter()
        found, seconds = self.parts.add_up(partial(_timed, function), _add_timed)
        self.all += time.perf_counter() - start
        self.own += seconds
        return found


def _timed(function: Callable[[Any], Any], part: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    found = function(part)
    return found, time.perf_counter() - start


def _add_timed(a: Any, b: Any) -> Any:
    from calibrant._blocks import added

    return added(a[0], b[0]), a[1] + b[1]


def report_scaling(folder: Path, n_rows: int) -> bool:
    """Two workers against one."""
    print("| fit | workers | seconds | in our code | reading, dask, waiting | speed-up |")
    print("|---|---|---|---|---|---|")
    first: dict[str, float] = {}
    for n_workers in (1, 2):
        with cluster(n_workers) as (_, client):
            client.run(warm_up)
            X, y = read_chunks(folder, n_rows)
            for made in (TemperatureScaling(), MatrixScaling(lam=1e-3)):
                source = TimedRows(X, y)
                made.set_params(inputs="logits")._fit_parts(source)
                name, share = type(made).__name__, source.own / (n_workers * source.all)
                first.setdefault(name, source.all)
                cells = (name, n_workers, f"{source.all:.2f}", f"{share:.0%}", f"{1 - share:.0%}")
                ratio = f"{first[name] / source.all:.2f}"
                print(f"| {' | '.join(map(str, cells))} | {ratio} |", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="names of calibrators, or metrics")
    parser.add_argument("--folder", type=Path, help="of the data, to be used again")
    parser.add_argument("--reference", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    config.set({"distributed.worker.memory.terminate": False})
    if options.reference is not None:
        in_memory(options.reference, options.rows, options.only)
        return 0
    warnings.filterwarnings("ignore", category=UserWarning)
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if not (folder / f"labels-{N_CHUNKS - 1}.npy").exists():
            write_chunks(folder, options.rows)
        if options.scaling or options.failures:
            run = report_scaling if options.scaling else run_failures
            return 0 if run(folder, options.rows) else 1
        return 0 if run_all(folder, options.rows, options.only) else 1


if __name__ == "__main__":
    sys.exit(main())
