"""Compare fits and metrics on a dask cluster with results in memory.

Workers read the logits from files, one per chunk. A separate process computes the reference results
in memory. Memory is the growth of the peak resident set (VmHWM) over an idle process that has
imported all libraries and made a small fit. The script ends with exit code 1 if a limit is
exceeded.

    python benchmarks/cluster.py                    2,000,000 x 10 in float32, 40 chunks, 80 MB
    python benchmarks/cluster.py --rows 40_000      a small run
    python benchmarks/cluster.py --write benchmarks/records/cluster.md
    python benchmarks/cluster.py --parts failures   a dead worker, a row with NaN, no worker left
    python benchmarks/cluster.py --parts scaling    time of two workers compared with one
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # before NumPy

# isort: split
import argparse
import copy
import os

# The import of numba takes 60 MB per process, which do not depend on the data.
os.environ.setdefault("CALIBRANT_FAST", "0")

# isort: split
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask import config
from distributed import Client, LocalCluster

from _marks import write_part
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
from calibrant._data.chunks import ChunkedScores, ChunkSource
from calibrant._data.fold_plan import MOST_HELD_OUT
from calibrant._data.read import as_chunked
from calibrant._kernels.blocks import add_results

N_CLASSES, N_CHUNKS = 10, 40
LIMIT, MEAN_LIMIT = 1e-8, 1e-3
"""Limit of the largest difference if a result is computed from sums, and of the mean difference if
it is computed from cells of scores or is the automatic choice. The last step of the automatic
choice splits held-out rows into five groups: by number if the rows are chunked, by content if they
are in memory."""
BYTES = 4
"""Bytes per score."""

ENOUGH_ROWS = 1_000_000
"""With fewer rows, a third of the data is less than the memory by which an idle process varies, so
the limit does not apply."""

BINS = 150
"""Number of bins of top-label binning. A row that moves across an edge changes the mean of a bin of
n_rows / BINS rows by about BINS / n_rows."""

METRICS, AUTOMATIC = "metrics", "automatic choice of temperature and structured vector"
SUM_METRICS = (
    *("accuracy", "log_loss", "brier_score", "conf_ece", "cw_ece", "tl_ece", "mce"),
    *("confidence_on_errors", "doubt_on_correct", "sharpness"),
)
MEMBERS = {
    "temperature": TemperatureScaling(prior_scale=0.25),
    "structured-vector": StructuredScaling("vector"),
}


class Table(NamedTuple):
    """A table of measurements.

    The last cell of a row is "yes" or "no" if the row has a limit, and another text if not.
    """

    name: str
    header: list[str]
    rows: list[list[str]]

    @property
    def lines(self) -> list[str]:
        rows = [self.header, ["---"] * len(self.header), *self.rows]
        return ["| " + " | ".join(cells) + " |" for cells in rows]

    @property
    def is_met(self) -> bool:
        return all(cells[-1] != "no" for cells in self.rows)


def yes_no(is_met: bool) -> str:
    return "yes" if is_met else "no"


class Result(NamedTuple):
    """Predictions of a calibrator or the value of a metric, with the passes and the seconds."""

    values: Any
    passes: int | None = None
    seconds: float | None = None


# ---------------------------------------------------------------- calibrators and data


def calibrators(n_rows: int, *, in_memory: bool) -> dict[str, Any]:
    """Return the calibrators to fit.

    Most are computed from sums over rows. Those marked "cells" use counts of cells of scores.
    """
    folds: Any = 5
    if in_memory:  # the folds to which chunked rows are assigned
        is_large = n_rows * N_CLASSES >= 2**21
        fold = np.arange(n_rows) % (max(5, -(-n_rows // MOST_HELD_OUT)) if is_large else 5)
        evaluated = range(1 if is_large else 5)
        folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in evaluated]
    class_wise = {"notion": "class-wise", "normalize": True}
    equal_width = HistogramBinning(n_bins=15, strategy="uniform")
    return {
        "temperature": TemperatureScaling(),
        "ensemble temperature": EnsembleTemperatureScaling(),
        "vector": VectorScaling(),
        "matrix, `lam=1e-3`": MatrixScaling(lam=1e-3),
        "structured vector": StructuredScaling("vector"),
        "structured matrix": StructuredScaling("matrix"),
        "Dirichlet, `lam=1e-3`": DirichletCalibration(lam=1e-3),
        "Dirichlet, chosen of two strengths on two folds": DirichletCalibration(
            grid=(1e-3, 1e-1), cv=2
        ),
        "class-wise histogram binning, equal width": MulticlassToBinary(equal_width, **class_wise),
        AUTOMATIC: AutoCalibration(MEMBERS, cv=folds),
        "top-label histogram binning, quantile bins (cells)": MulticlassToBinary(
            HistogramBinning(n_bins=15)
        ),
        "class-wise isotonic regression (cells)": MulticlassToBinary(
            IsotonicCalibration(), **class_wise
        ),
    }


def chosen(n_rows: int, only: list[str], *, in_memory: bool) -> dict[str, Any]:
    """Return the calibrators and the metrics, or those that ``only`` names."""
    results = {**calibrators(n_rows, in_memory=in_memory), METRICS: None}
    return {name: item for name, item in results.items() if not only or name in only}


def write_chunks(folder: Path, n_rows: int) -> None:
    """Write labels and overconfident logits. The overconfidence differs between classes."""
    size = n_rows // N_CHUNKS
    for k in range(N_CHUNKS):
        rng = np.random.default_rng(k)
        logits = 2 * rng.normal(size=(size, N_CLASSES)).astype(np.float32)
        tilt = np.linspace(0.5, 0.7, N_CLASSES) * logits + np.linspace(0, 0.3, N_CLASSES)
        y = (tilt + rng.gumbel(size=logits.shape)).argmax(axis=1)
        np.save(folder / f"logits-{k}.npy", logits)
        np.save(folder / f"labels-{k}.npy", y.astype(np.int16))


def read_chunks(folder: Path, n_rows: int) -> tuple[Any, Any]:
    """Return dask arrays whose chunks are files."""
    rows = ((n_rows // N_CHUNKS,) * N_CHUNKS,)
    return (
        da.map_blocks(load, folder, "logits", chunks=(*rows, (N_CLASSES,)), dtype=np.float32),
        da.map_blocks(load, folder, "labels", chunks=rows, dtype=np.int16),
    )


def load(folder: Path, name: str, block_id: tuple[int, ...] = (0,)) -> np.ndarray:
    """Load a chunk of an array."""
    return np.load(folder / f"{name}-{block_id[0]}.npy")


def new_rows() -> np.ndarray:
    """Return new rows that every fitted calibrator predicts."""
    return 2 * np.random.default_rng(99).normal(size=(2000, N_CLASSES))


def results(X: Any, y: Any, items: dict[str, Any]) -> Iterator[tuple[str, Result]]:
    """Yield the predictions of every calibrator, and every metric."""
    for name, calibrator in items.items():
        if name == METRICS:
            yield from metrics_of(X, y)
            continue
        start = time.perf_counter()
        fitted = calibrator.set_params(inputs="logits").fit(X, y)
        seconds, passes = time.perf_counter() - start, getattr(fitted, "n_passes_", None)
        print(f"  {name}: {passes} passes, {seconds:.1f} s", file=sys.stderr, flush=True)
        yield name, Result(fitted.predict_proba(new_rows()), passes, seconds)


def metrics_of(X: Any, y: Any) -> Iterator[tuple[str, Result]]:
    """Yield the metrics of `evaluate`, and two binned errors that need ranks."""
    start = time.perf_counter()
    measured = evaluate(y, X, inputs="logits").to_dict()
    print(f"  {METRICS}: {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    yield from ((name, Result(measured[name], 1)) for name in SUM_METRICS)
    yield "KS error (cells)", Result(measured["ks"], 2)
    quantile_ece = metrics.expected_calibration_error(y, X, inputs="logits", strategy="quantile")
    yield "ECE with quantile bins (cells)", Result(quantile_ece, 2)


def make_reference(folder: Path, n_rows: int, only: list[str]) -> None:
    """Compute the results of all rows in memory and store them in a file. Stored results are not
    computed again.
    """
    known = read_reference(folder)
    wanted = chosen(n_rows, only, in_memory=True)
    missing = {
        name: calibrator
        for name, calibrator in wanted.items()
        if (SUM_METRICS[0] if name == METRICS else name) not in known
    }
    X = np.concatenate([np.load(folder / f"logits-{k}.npy") for k in range(N_CHUNKS)])
    y = np.concatenate([np.load(folder / f"labels-{k}.npy") for k in range(N_CHUNKS)])
    for name, measured in results(X, y.astype(np.intp), missing):
        known[name] = measured.values
        np.savez(folder / "reference.npz", **known)


def read_reference(folder: Path) -> dict[str, Any]:
    path = folder / "reference.npz"
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


# ---------------------------------------------------------------- the cluster


@contextmanager
def cluster(n_workers: int) -> Iterator[tuple[LocalCluster, Client]]:
    """Start worker processes with one thread each and all imports done."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as processes,
        Client(processes) as client,
    ):
        client.run(warm_up)
        yield processes, client


def pids(client: Client) -> list[int]:
    return sorted(client.run(os.getpid).values())


def warm_up() -> None:
    """Make small fits and an evaluation, so that all imports are done."""
    X = np.random.default_rng(0).random((3000, N_CLASSES))
    y = np.arange(3000) % N_CLASSES
    for calibrator in (StructuredScaling("matrix"), MulticlassToBinary(HistogramBinning(n_bins=3))):
        calibrator.set_params(inputs="logits").fit(X, y)
    evaluate(y, X, inputs="logits")


def peak(pid: int, *, reset: bool = False) -> float:
    """Return the largest resident set since the last reset in MB."""
    if reset:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


# ---------------------------------------------------------------- equality and memory


def report_equality(folder: Path, n_rows: int, only: list[str]) -> Iterator[Table]:
    """Compare results of the cluster with those in memory, and measure the memory of its processes.

    Each result has its own cluster, so memory that dask keeps for one result is not counted for the
    next.
    """
    command = [sys.executable, __file__, "--rows", str(n_rows), "--reference", str(folder)]
    subprocess.run([*command, "--only", *only], check=True)
    warm_up()
    measured: dict[str, Result] = {}
    grown: dict[str, list[float]] = {}
    for name, calibrator in chosen(n_rows, only, in_memory=False).items():
        result, grown[name] = watched_results(folder, n_rows, {name: calibrator})
        measured |= result
    yield equality_table(read_reference(folder), measured, n_rows)
    yield memory_table(grown, n_rows)


def watched_results(
    folder: Path, n_rows: int, calibrator: dict[str, Any]
) -> tuple[dict[str, Result], list[float]]:
    """Return the results, and the memory growth of the client and of two workers in MB."""
    with cluster(2) as (_, client):
        X, y = read_chunks(folder, n_rows)
        # A run with a few rows comes first, so that imports are not counted.
        list(results(X[:4000].rechunk((100, -1)), y[:4000], copy.deepcopy(calibrator)))
        process_ids = [os.getpid(), *pids(client)]
        idle = [peak(pid, reset=True) for pid in process_ids]
        measured = dict(results(X, y, calibrator))
        return measured, [peak(pid) - before for pid, before in zip(process_ids, idle, strict=True)]


def equality_table(reference: dict[str, Any], measured: dict[str, Result], n_rows: int) -> Table:
    header = ["result", "passes", "seconds", "difference", "at most", "met"]
    rows = []
    for name, result in measured.items():
        is_cells = "cells" in name
        away = np.abs(result.values - reference[name])
        # Rows next to the edge of a cell, and a weight that hardly changes the loss, change some
        # predictions much more than others. The mean difference is compared for these results.
        is_mean = is_cells or name == AUTOMATIC
        difference = float(away.mean() if is_mean else away.max())
        limit = max(MEAN_LIMIT, BINS / n_rows) if is_mean else LIMIT
        shown = ["" if result.passes is None else str(result.passes)]
        shown += ["" if result.seconds is None else f"{result.seconds:.1f}"]
        rows.append(
            [name, *shown, f"{difference:.0e}", f"{limit:.0e}", yes_no(difference <= limit)]
        )
    return Table("cluster equality", header, rows)


def memory_table(grown: dict[str, list[float]], n_rows: int) -> Table:
    """Return the peaks above idle memory. For enough rows, the limit is a third of the data."""
    third = n_rows * N_CLASSES * BYTES / 1e6 / 3
    header = ["MB above idle", "client", "worker 1", "worker 2", "a third of the data", "met"]
    rows = []
    for name, more in grown.items():
        is_met = yes_no(max(more) < third) if n_rows >= ENOUGH_ROWS else "a note: too few rows"
        rows.append([name, *(f"{megabytes:.1f}" for megabytes in more), f"{third:.1f}", is_met])
    return Table("cluster memory", header, rows)


# ---------------------------------------------------------------- failures


def report_failures(folder: Path, n_rows: int, _: list[str]) -> Iterator[Table]:
    """Report the result if a worker dies, a row has NaN, or all workers leave one cluster."""
    with cluster(2) as (processes, client):
        X, y = read_chunks(folder, n_rows)
        start = time.perf_counter()
        whole = fit_rows(X, y)
        half = 0.5 * (time.perf_counter() - start)
        rows = [
            kill_one(client, X, y, whole, half),
            report_poison(folder, n_rows),
            report_alone(processes, X, y, half),
        ]
    yield Table("cluster failures", ["failure", "result", "limit", "met"], rows)


def fit_rows(X: Any, y: Any) -> np.ndarray:
    """Return the predictions of a calibrator whose fit takes several passes."""
    return StructuredScaling("vector", inputs="logits").fit(X, y).predict_proba(new_rows())


def kill_one(client: Client, X: Any, y: Any, whole: np.ndarray, seconds: float) -> list[str]:
    """Kill a worker in the middle of a fit."""
    before = pids(client)
    timer = threading.Timer(seconds, os.kill, (before[0], signal.SIGKILL))
    timer.start()
    difference = np.abs(fit_rows(X, y) - whole).max()
    was_during = not timer.is_alive()
    timer.join()
    is_other = was_during and pids(client) != before
    return [
        f"a worker of two killed (SIGKILL) {seconds:.1f} s into a fit",
        f"difference {difference:.0e}" if is_other else "no worker was killed during the fit",
        f"{LIMIT:.0e}",
        yes_no(is_other and bool(difference <= LIMIT)),
    ]


def report_poison(folder: Path, n_rows: int) -> list[str]:
    """Check that the error message names the row with NaN."""
    row = 1_234_567 * n_rows // 2_000_000
    with tempfile.TemporaryDirectory() as name:
        poison(folder, Path(name), row, n_rows // N_CHUNKS)
        try:
            TemperatureScaling(inputs="logits").fit(*read_chunks(Path(name), n_rows))
            message = "nothing"
        except ValueError as error:
            message = str(error)
    is_named = f"Row {row} of the logits" in message
    return [
        f"NaN in row {row:,}",
        f'"{message.split(" is ")[0]} ..."',
        "names the row",
        yes_no(is_named),
    ]


def poison(folder: Path, other: Path, row: int, n_rows: int) -> None:
    """Link the chunks in another folder, and replace one of them by a chunk with NaN."""
    for path in folder.glob("*-*.npy"):
        (other / path.name).symlink_to(path.resolve())
    k, place = divmod(row, n_rows)
    logits = np.load(folder / f"logits-{k}.npy")
    logits[place, 3] = np.nan
    (other / f"logits-{k}.npy").unlink()
    np.save(other / f"logits-{k}.npy", logits)


def report_alone(processes: LocalCluster, X: Any, y: Any, seconds: float) -> list[str]:
    """Remove all workers in the middle of a fit."""
    timer = threading.Timer(seconds, processes.scale, (0,))
    timer.start()
    try:
        fit_rows(X, y)
        message = "nothing"
    except RuntimeError as error:
        message = str(error)
    timer.join()
    case = f"all workers gone {seconds:.1f} s into a fit"
    return [
        case,
        f'"{message}"',
        "says so",
        yes_no("workers of the dask cluster are gone" in message),
    ]


# ---------------------------------------------------------------- scaling


class TimedScores(ChunkedScores):
    """Chunked scores that measure the time of our functions and of whole passes."""

    def __init__(self, X: Any) -> None:
        self.scores = as_chunked(X)
        self.function_seconds = self.pass_seconds = 0.0

    @property
    def n_columns(self) -> int:
        return self.scores.n_columns

    def source(self, y: Any, weight: Any = None, groups: tuple[Any, ...] = ()) -> ChunkSource:
        return TimedSource(self, self.scores.source(y, weight, groups))


class TimedSource(ChunkSource):
    """The chunks of `TimedScores`."""

    def __init__(self, times: TimedScores, source: ChunkSource) -> None:
        self.times, self.chunks = times, source
        self.n_rows, self.classes = source.n_rows, source.classes
        self.distinct_labels = source.distinct_labels

    @property
    def n_columns(self) -> int:
        return self.chunks.n_columns

    def map_chunks(self, function: Callable[[Any], Any]) -> Any:
        return self.chunks.map_chunks(function)

    def add_up(self, function: Callable[[Any], Any], add: Any = add_results) -> Any:
        start = time.perf_counter()
        total, seconds = self.chunks.add_up(partial(_timed, function), partial(_add_timed, add))
        self.times.pass_seconds += time.perf_counter() - start
        self.times.function_seconds += seconds
        return total


def _timed(function: Callable[[Any], Any], part: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function(part)
    return result, time.perf_counter() - start


def _add_timed(add: Any, a: Any, b: Any) -> Any:
    return add(a[0], b[0]), a[1] + b[1]


def report_scaling(folder: Path, n_rows: int, _: list[str]) -> Iterator[Table]:
    """Compare the time of two workers with that of one."""
    header = ["fit", "workers", "seconds", "in our code", "reading, dask, waiting", "speed-up"]
    rows, first = [], {}
    for n_workers in (1, 2):
        with cluster(n_workers):
            X, y = read_chunks(folder, n_rows)
            for name, calibrator in (
                ("temperature", TemperatureScaling()),
                ("matrix", MatrixScaling(1e-3)),
            ):
                scores = TimedScores(X)
                calibrator.set_params(inputs="logits").fit(scores, y)
                seconds = scores.pass_seconds
                share = scores.function_seconds / (n_workers * seconds)
                ratio = f"{first.setdefault(name, seconds) / seconds:.2f}"
                cells = [name, str(n_workers), f"{seconds:.2f}", f"{share:.0%}"]
                rows.append([*cells, f"{1 - share:.0%}", ratio if n_workers > 1 else ""])
    yield Table("cluster scaling", header, rows)


# ---------------------------------------------------------------- the run


PARTS = {"equality": report_equality, "failures": report_failures, "scaling": report_scaling}


def run(tables: Iterable[Table], page: Path | None) -> bool:
    """Print the tables and write them into the page. Return whether all limits hold."""
    is_met = True
    for table in tables:
        print("\n".join(["", *table.lines]), flush=True)
        if page is not None:
            write_part(page, table.name, table.lines)
        is_met = is_met and table.is_met
    return is_met


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--only", nargs="*", default=[], help='names of results to compute, or "metrics"'
    )
    parser.add_argument(
        "--folder", type=Path, help="folder of the data, which is kept for the next run"
    )
    parser.add_argument("--write", type=Path, help="page with marks, to write the tables into")
    parser.add_argument("--reference", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = parsed()
    config.set({"distributed.worker.memory.terminate": False})
    if options.reference is not None:
        make_reference(options.reference, options.rows, options.only)
        return 0
    warnings.filterwarnings("ignore", category=UserWarning)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if not (folder / f"labels-{N_CHUNKS - 1}.npy").exists():
            write_chunks(folder, options.rows)
        met = [
            run(PARTS[part](folder, options.rows, options.only), options.write)
            for part in options.parts
        ]
    verdict = "All limits hold." if all(met) else "NOT all limits hold."
    print(f"\n{verdict} {time.perf_counter() - start:.0f} s")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
