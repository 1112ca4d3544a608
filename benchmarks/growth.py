"""Measure how the CPU time of every calibrator and metric grows with rows and with classes.

    python benchmarks/growth.py                     all cases, and benchmarks/records/growth.md
    python benchmarks/growth.py --only vector --kind classes
    python benchmarks/growth.py --page              write the page from stored results

The growth exponent is the slope of a line through the logarithms of size and time, for sizes that
double. The script uses one thread and the CPU time of the process. All sizes take turns in rounds,
so other work on the machine affects them equally, and the shortest time of each counts. Times are
stored in ``results/growth.json`` after every case, so an interrupted run continues. Smaller data
sets are the first rows of the largest.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant import DirichletCalibration, HistogramBinning, MulticlassToBinary, evaluate
from calibrant._data.sample import ArraySample
from calibrant._kernels import blocks
from calibrant._optim import objective
from calibrant.metrics import expected_calibration_error, kernel_calibration_error
from calibrant.metrics.registry import METRICS
from calibrant.selection import method
from calibrant.selection.methods import METHODS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "growth.json"
PAGE = HERE / "records" / "growth.md"

FEW_CLASSES, FEW_ROWS, FIT_ROWS = 3, 512, 16
"""Classes while rows grow, rows while classes grow, and rows of the fit before a prediction."""

N_SIZES = {"sum": 6, "fit": 6, "sort": 6, "many": 4, "classes": 4}
"""Number of sizes. All sizes of classes exceed 2^22 scores, the limit up to which passes reuse
arrays."""

MOST = {
    "sum": 10_000_000,
    "fit": 10_000_000,
    "sort": 1_000_000,
    "many": 250_000,
    "classes": 100_000,
}
LIMITS = {"sum": 1.05, "fit": 1.05, "sort": 1.15, "many": 1.15, "classes": 1.05}
N_ROUNDS, ROUND_SECONDS = 3, 0.02
"""Rounds of a case, and the minimum time that a round spends on a size."""

LONG_SECONDS = 5.0
"""A case has only one round if its largest size takes longer."""

Call = Callable[[np.ndarray, np.ndarray], Any]
Times = dict[str, float]


class Case(NamedTuple):
    """Work on labels and probabilities, and its kind.

    The kind is a "sum" over rows, a "fit" by such sums, a "sort" of rows, "many" fits, or growth
    with "classes".
    """

    name: str
    call: Call
    kind: str

    @property
    def key(self) -> str:
        return f"{self.name} | {self.kind}"

    @property
    def sizes(self) -> list[int]:
        return [MOST[self.kind] >> step for step in reversed(range(N_SIZES[self.kind]))]


SORTING_METHODS = {"canonical", "isotonic", "histogram", "bbq", "spline", "venn-abers"}
MANY_FITS = {"auto", "dirichlet", "gp"}
SORTING_METRICS = {
    "ks",
    "kernel_calibration_error",
    "integrated_calibration_index",
    "local_gap_quantile",
    "e90",
    "averaged_two_bin_error",
    "cutoff_calibration_error",
}
"""Methods and metrics that sort rows. All others use sums over rows."""


def fit(make: Callable[[], Any], y: np.ndarray, p: np.ndarray) -> None:
    make().fit(p, y)


def predict(make: Callable[[], Any], y: np.ndarray, p: np.ndarray) -> None:
    """Predict all rows after a fit on a few rows, whose time is negligible."""
    make().fit(p[:FIT_ROWS], y[:FIT_ROWS]).predict_proba(p)


def method_cases() -> Iterator[Case]:
    for name, entry in METHODS.items():
        make = partial(method, name, notion="class-wise" if entry.is_binary else None)
        kind = "sort" if name in SORTING_METHODS else "many" if name in MANY_FITS else "fit"
        yield Case(f"fit {name}", partial(fit, make), kind)
    fixed = partial(DirichletCalibration, 1e-3)
    yield Case("fit dirichlet, lam=1e-3", partial(fit, fixed), "fit")
    yield Case("fit histogram, equal width", partial(fit, equal_width), "fit")
    for name in ("temperature", "structured-matrix"):
        yield Case(f"predict {name}", partial(predict, partial(method, name)), "sum")


def equal_width() -> Any:
    return MulticlassToBinary(HistogramBinning(15, strategy="uniform"), notion="class-wise")


def metric_cases() -> Iterator[Case]:
    unique = {metric.name: metric for metric in METRICS.values()}
    for name, metric in unique.items():
        call: Call = metric
        if name == "kernel_calibration_error":  # for whole vectors it is a sum over pairs
            call = partial(kernel_calibration_error, notion="confidence")
        yield Case(name, call, "sort" if name in SORTING_METRICS else "sum")
    quantiles = partial(expected_calibration_error, strategy="quantile")
    yield Case("conf_ece, equal mass", quantiles, "sort")
    yield Case("evaluate", evaluate, "sort")  # it includes the KS error


def class_cases() -> Iterator[Case]:
    """Yield the cases for many classes: two calibrators, and the metrics.

    `structured-vector` stands for vector scaling, which has no finite optimum without a penalty if
    classes never occur.
    """
    for name in ("temperature", "structured-vector"):
        yield Case(f"fit {name}", partial(fit, partial(method, name)), "classes")
        yield Case(f"predict {name}", partial(predict, partial(method, name)), "classes")
    yield from (case._replace(kind="classes") for case in metric_cases())


def all_cases() -> list[Case]:
    """Return all cases. The slowest cases come last."""
    cases = [*metric_cases(), *class_cases(), *method_cases()]
    return sorted(cases, key=lambda case: case.kind == "many")


@cache
def many_rows() -> tuple[np.ndarray, np.ndarray]:
    return make_data(MOST["sum"], FEW_CLASSES)


@cache
def many_classes(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    return make_data(FEW_ROWS, n_classes)


def make_data(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and overconfident probabilities, drawn block by block."""
    rng = np.random.default_rng(0)
    y, p = np.empty(n_rows, dtype=np.int64), np.empty((n_rows, n_classes))
    for start in range(0, n_rows, 100_000):
        rows = slice(start, min(start + 100_000, n_rows))
        z = 2.0 * rng.normal(size=(rows.stop - rows.start, n_classes))
        y[rows] = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        z = np.exp(1.7 * z + 0.3 * rng.normal(size=z.shape))
        p[rows] = z / z.sum(axis=1, keepdims=True)
    return y, p


def data_of(case: Case, size: int) -> tuple[np.ndarray, np.ndarray]:
    if case.kind == "classes":
        return many_classes(size)
    y, p = many_rows()
    return y[:size], p[:size]


@contextmanager
def kept_between_passes(case: Case) -> Iterator[None]:
    """Let fits keep no arrays between passes, as for large data."""
    before = blocks.WORK_MEMORY
    blocks.WORK_MEMORY = objective.WORK_MEMORY = 0 if case.kind == "fit" else before
    try:
        yield
    finally:
        blocks.WORK_MEMORY = objective.WORK_MEMORY = before


def cpu_seconds(case: Case, size: int) -> float:
    """Return the shortest time of some calls."""
    data = data_of(case, size)
    best, spent = np.inf, 0.0
    while spent < ROUND_SECONDS:
        start = time.process_time()
        case.call(*data)
        taken = time.process_time() - start
        best, spent = min(best, taken), spent + taken
    return float(best)


def measure(case: Case) -> Times:
    """Return the seconds by size."""
    times: Times = {}
    for _ in range(N_ROUNDS):
        for size in case.sizes:
            taken = cpu_seconds(case, size)
            times[str(size)] = min(taken, times.get(str(size), np.inf))
        if taken > LONG_SECONDS:
            break
    return times


class CountedSums:
    """Context manager that counts the rows over which sums are computed."""

    def __enter__(self) -> CountedSums:
        self.n_rows, self._add_up = 0, ArraySample.sum_chunks

        def add_up(sample: ArraySample, function: Callable[[Any], Any]) -> Any:
            self.n_rows += sample.shape[0]
            return self._add_up(sample, function)

        ArraySample.sum_chunks = add_up  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        ArraySample.sum_chunks = self._add_up  # type: ignore[method-assign]


def count_passes(case: Case) -> Times:
    """Return the passes over all rows at the smallest and the largest size."""
    passes: Times = {}
    for size in (case.sizes[0], case.sizes[-1]):
        with CountedSums() as sums:
            case.call(*data_of(case, size))
        passes[str(size)] = sums.n_rows / size
    return passes


def exponent(times: Times) -> float:
    sizes, seconds = np.log([int(size) for size in times]), np.log(list(times.values()))
    return float(np.polyfit(sizes, seconds, 1)[0])


def row_of(case: Case, results: dict[str, Times]) -> list[str]:
    times = results[case.key]
    value, limit = exponent(times), LIMITS[case.kind]
    least, most = (times[str(case.sizes[place])] for place in (0, -1))
    met = "yes" if value <= limit else "no"
    shown = [f"{least:.3g}", f"{most:.3g}", f"{value:.2f}", f"{limit:.2f}", met]
    return [case.name, passes_of(case, results), *shown]


def passes_of(case: Case, results: dict[str, Times]) -> str:
    """Return the passes over all rows at the smallest and the largest size as text."""
    stored = results.get(f"{case.key} | passes")
    if stored is None:
        return ""
    least, most = (round(stored[str(case.sizes[place])]) for place in (0, -1))
    if not most:  # it selects columns, or has nothing to fit
        return ""
    return str(most) if least == most else f"{least}, {most}"


HEADER = ["case", "passes", "s, least", "s, most", "exponent", "at most", "met"]
TITLES = {
    "sum": f"Sums over rows of {FEW_CLASSES} classes",
    "fit": f"Fits by sums over rows of {FEW_CLASSES} classes",
    "sort": f"Functions that sort rows of {FEW_CLASSES} classes",
    "many": f"Methods with many fits on rows of {FEW_CLASSES} classes",
    "classes": f"Growth with classes for {FEW_ROWS} rows",
}


def title(kind: str) -> str:
    sizes = Case("", print, kind).sizes
    return f"{TITLES[kind]}: {len(sizes)} sizes, {sizes[0]:,} to {sizes[-1]:,}"


def page(results: dict[str, Times]) -> str:
    lines = [
        "# Growth",
        "",
        "The tables show CPU seconds of one thread for sizes that double, and the growth exponent. "
        "The exponent is the slope of the line through the logarithms of size and time. It is 1 if "
        "time is proportional to size, and 1.08 for n log n at these sizes. "
        "`python benchmarks/growth.py` writes this page.",
        "",
        "Up to 2^22 scores, fits keep transformed scores and probabilities between passes. For "
        "more scores, fits compute them again in each of fewer passes. All sizes are measured in "
        "the second way, because the exponent would otherwise include this step. Passes are over "
        "all rows, at the smallest and at the largest size. Newton's method may need one pass more "
        "or less, and the exponent includes this difference. Cases without measurements have no "
        "row.",
        "",
    ]
    for kind in TITLES:
        rows = [
            row_of(case, results)
            for case in all_cases()
            if case.kind == kind and case.key in results
        ]
        lines += [f"## {title(kind)}", "", *table(HEADER, rows)]
    return "\n".join(lines).rstrip() + "\n"


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]
    return [*lines, ""]


def read_results() -> dict[str, Times]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def write_results(results: dict[str, Times]) -> None:
    aside = RESULTS.with_suffix(".tmp")
    aside.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    aside.replace(RESULTS)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", help="cases whose names contain one of these texts")
    parser.add_argument("--kind", nargs="+", choices=LIMITS, default=list(LIMITS))
    parser.add_argument(
        "--seconds", type=float, default=np.inf, help="start no case after these seconds"
    )
    parser.add_argument("--again", action="store_true", help="repeat stored measurements")
    parser.add_argument("--page", action="store_true", help="write the page without measuring")
    return parser.parse_args()


def main() -> None:
    warnings.simplefilter("ignore")  # about few rows or fits that do not converge
    options = parsed()
    for case in [] if options.page else all_cases():
        is_asked = not options.only or any(text in case.name for text in options.only)
        if case.kind not in options.kind or not is_asked:
            continue
        if options.again or case.key not in read_results():
            if time.process_time() > options.seconds:
                print("Some cases are not measured yet. Run the script again.", flush=True)
                break
            with kept_between_passes(case):
                stored = {case.key: measure(case)}
                if case.kind == "fit":
                    stored[f"{case.key} | passes"] = count_passes(case)
            write_results({**read_results(), **stored})
        print(" | ".join([case.kind, *row_of(case, read_results())]), flush=True)
    PAGE.write_text(page(read_results()), encoding="utf-8")


if __name__ == "__main__":
    main()
