"""Compare the speed of every calibrator and metric with other packages.

    python benchmarks/speed.py                            all cases, and records/performance.md
    python benchmarks/speed.py --quick                    small workloads, one round, no page
    python benchmarks/speed.py --only KS --base OLD/src   some cases, and an older version
    python benchmarks/speed.py --page                     write the page from stored results

Calibrant is measured with the default installation and with the optional dependency `fast`. Each
package runs in its own process with one thread. The packages take turns: in every round, each has a
few calls in a row, so other work on the machine affects all packages equally. The result is the
shortest CPU time of a call. Results are stored in a folder as JSON files, so an interrupted run
continues. The cell of a package that is not installed is empty.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from speed_cases import (
    CASES,
    GROWTH,
    LIMITS,
    MOST_WAIT,
    OURS,
    PEERS,
    SIZES,
    TARGETS,
    WAITS,
    Data,
    Target,
    call_of,
    make_data,
)

HERE = Path(__file__).resolve().parent
PAGE = HERE / "records" / "performance.md"
FOLDER = HERE / ".speed"
FAST, BEFORE = "fast", "before"
VARIANTS = (OURS, FAST, BEFORE)
"""Variants of Calibrant: the default, with compiled loops, and an older version."""

CALLS_IN_A_ROW = 3
ROUND_MS = 60.0
"""Approximate time of a round. A longer call is made once."""

ENOUGH_MS = 2000.0
"""A package that has used this time for a case takes part in no further rounds."""

MANY_ELEMENTS = 10_000_000
"""Workloads of this size are measured with the first package of a case only, which is the fastest.
"""

THREADS = {"one": "1", "two": "2", "default": "default"}
WAITING_CALLS = 5
"""Number of calls of each number of threads, which take turns."""

Results = dict[tuple[str, str], dict[str, Any]]


# ---------------------------------------------------------------- the measured process


def serve(package: str) -> None:
    """Read orders as lines of JSON, and answer each with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of packages must not mix with the answers
    call, data, held = None, None, ""
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order["do"] == "prepare":
                if held != order["data"]:
                    with np.load(order["data"]) as file:
                        data, held = (
                            Data(file["logits"], file["proba"], file["labels"]),
                            order["data"],
                        )
                call = call_of(package, order["case"], data)
                answer: dict[str, Any] = {"ms": one_ms(call, time.process_time)}
                if answer["ms"] <= 2 * ENOUGH_MS:  # the first call may include compilation
                    answer = {"ms": one_ms(call, time.process_time)}
            elif order["do"] == "run":
                answer = {"ms": shortest_ms(call)}
            elif order["do"] == "wait":
                answer = {"ms": one_ms(call, time.perf_counter)}
            else:
                answer = {"mb": peak_mb(call)}
        except Exception as error:  # an error of one package must not end the comparison
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer) + "\n")


def shortest_ms(call: Any) -> float:
    """Return the shortest CPU time of a few calls in a row."""
    best = spent = 0.0
    n_calls = 0
    while n_calls < CALLS_IN_A_ROW or spent < ROUND_MS:
        start = time.process_time()
        call()
        ms = 1e3 * (time.process_time() - start)
        best, spent, n_calls = (min(best, ms) if n_calls else ms), spent + ms, n_calls + 1
        if spent > 10 * ROUND_MS:
            break
    return best


def one_ms(call: Any, clock: Any) -> float:
    start = clock()
    call()
    return 1e3 * (clock() - start)


def peak_mb(call: Any) -> float | None:
    """Return the memory of a call above the memory before, or None if the kernel does not report
    it.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None
    before = _status_mb("VmRSS")
    call()
    return max(0.0, _status_mb("VmHWM") - before)


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


class Worker:
    """A package in its own process."""

    def __init__(self, variant: str, base: str | None, threads: str = "1") -> None:
        variables = {
            "CALIBRANT_FAST": "1" if variant == FAST else "0",
            "BENCHMARK_THREADS": threads,
        }
        if variant in (OURS, FAST):
            variables["PYTHONPATH"] = str(HERE.parent / "src")
        if variant == BEFORE:
            variables["PYTHONPATH"] = str(base)
        package = OURS if variant in VARIANTS else variant
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **variables},
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


# ---------------------------------------------------------------- one case after the other


class Bench:
    """Worker processes, the data that they read, and stored results."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.workers: dict[str, Worker] = {}
        self.scratch = tempfile.TemporaryDirectory()
        folder.mkdir(parents=True, exist_ok=True)

    def variants(self, case: str, workload: str) -> list[str]:
        ours = [OURS]
        if find_spec("numba") and not self.options.no_fast:
            ours.append(FAST)
        if self.options.base:
            ours.append(BEFORE)
        peers = [] if self.options.no_peers else list(CASES[case].peers)
        return ours + (peers[:1] if math.prod(SIZES[workload]) >= MANY_ELEMENTS else peers)

    def data_file(self, workload: str) -> str:
        path = Path(self.scratch.name) / f"{workload}.npz"
        if not path.exists():
            for old in path.parent.glob("*.npz"):
                old.unlink()
            np.savez(path, **make_data(workload)._asdict())
        return str(path)

    def measure(self, case: str, workload: str) -> dict[str, Any]:
        """Return the shortest CPU time and the memory of every variant."""
        ready, result = {}, {}
        for variant in self.variants(case, workload):
            if variant not in self.workers:
                self.workers[variant] = Worker(variant, self.options.base)
            worker = self.workers[variant]
            answer = worker.ask(do="prepare", case=case, data=self.data_file(workload))
            result[variant] = answer
            if "error" not in answer:
                ready[variant] = worker
        for n_round in range(1, self.options.rounds + 1):
            for variant, worker in ready.items():
                if n_round * result[variant]["ms"] <= ENOUGH_MS:
                    ms = worker.ask(do="run").get("ms", math.inf)
                    result[variant]["ms"] = min(result[variant]["ms"], ms)
        if not self.options.quick and result[OURS].get("ms", math.inf) <= ENOUGH_MS:
            result[OURS]["mb"] = ready[OURS].ask(do="memory").get("mb")
        return result

    def wait(self, case: str, workload: str) -> dict[str, Any]:
        """Return the shortest elapsed time with one thread, two threads and the default.

        Times are measured on an idle machine and next to two busy processes.
        """
        path = self.folder / f"threads-{case}-{workload}.json".replace(" ", "_")
        if path.exists() and not self.options.again:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return kept
        workers = {name: Worker(OURS, None, number) for name, number in THREADS.items()}
        for worker in workers.values():
            worker.ask(do="prepare", case=case, data=self.data_file(workload))
        result = {"idle": self._in_turns(workers)}
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            result["loaded"] = self._in_turns(workers)
        finally:
            for process in busy:
                process.kill()
                process.wait()
            for worker in workers.values():
                worker.close()
        path.write_text(json.dumps(result), encoding="utf-8")
        return result

    @staticmethod
    def _in_turns(workers: dict[str, Worker]) -> dict[str, float]:
        best = dict.fromkeys(workers, math.inf)
        for _ in range(WAITING_CALLS):
            for name, worker in workers.items():
                best[name] = min(best[name], worker.ask(do="wait").get("ms", math.inf))
        return best

    def run(self, case: str, workload: str) -> dict[str, Any]:
        """Return the result of a case, stored or measured now."""
        path = self.folder / f"{case}-{workload}.json".replace(" ", "_")
        if path.exists() and not self.options.again:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if set(self.variants(case, workload)) <= set(kept):
                return kept
        result = self.measure(case, workload)
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps(result), encoding="utf-8")
        aside.replace(path)
        return result

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        self.scratch.cleanup()


def read_results(folder: Path) -> Results:
    stored: Results = {}
    for case in CASES.values():
        for workload in case.workloads:
            path = folder / f"{case.name}-{workload}.json".replace(" ", "_")
            if path.exists():
                stored[case.name, workload] = json.loads(path.read_text(encoding="utf-8"))
    return stored


def read_waits(folder: Path) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    paths = {
        (case, workload): folder / f"threads-{case}-{workload}.json".replace(" ", "_")
        for case, workload in WAITS
    }
    return {
        key: json.loads(path.read_text(encoding="utf-8"))
        for key, path in paths.items()
        if path.exists()
    }


def chosen(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the cases sorted by workload, so that the data are created once."""
    workloads = [w for w in SIZES if not options.workload or w in options.workload]
    if options.quick:
        workloads = [w for w in workloads if w in ("1x10", "500x10")]
    cases = [c for c in CASES if not options.only or any(text in c for text in options.only)]
    return [(c, w) for w in workloads for c in cases if w in CASES[c].workloads]


# ---------------------------------------------------------------- tables


def ms_of(result: dict[str, Any] | None, variant: str) -> float | None:
    ms = (result or {}).get(variant, {}).get("ms")
    return None if ms is None or math.isinf(ms) else ms


def best_peer(result: dict[str, Any], peer: str | None = None) -> tuple[str, float] | None:
    """Return the fastest package, or the given one, with its time."""
    names = [peer] if peer else [name for name in result if name not in VARIANTS]
    times = [(ms, name) for name in names if (ms := ms_of(result, name)) is not None]
    return (min(times)[1], min(times)[0]) if times else None


def line_of(case: str, workload: str, result: dict[str, Any]) -> str:
    """Return a row of the printed table."""
    peer, ours = best_peer(result), ms_of(result, OURS)
    cells = [f"{workload:9} {case:40}"]
    cells += [f"{v} {_ms(ms_of(result, v))}" for v in VARIANTS if v in result]
    if ours and (before := ms_of(result, BEFORE)):
        cells.append(f"before/now {before / ours:.2f} x")
    if peer and ours:
        cells.append(f"{peer[0]} {_ms(peer[1])} = {peer[1] / ours:.2f} x")
    if ours and (mb := result[OURS].get("mb")) is not None:
        cells.append(f"{mb:.0f} MB")
    return "  ".join(cells)


def _ms(ms: float | None) -> str:
    return "-" if ms is None else f"{ms:.4g}"


def exponent(results: Results, case: str, variant: str = OURS) -> float | None:
    """Return the growth exponent in n over the last two decades."""
    ends = [ms_of(results.get((case, w)), variant) for w in (GROWTH[0], GROWTH[-1])]
    if None in ends:
        return None
    rows = SIZES[GROWTH[-1]][0] / SIZES[GROWTH[0]][0]
    return math.log(ends[1] / ends[0]) / math.log(rows)  # type: ignore[operator]


def reached(target: Target, results: Results, variant: str) -> float | None:
    """Return the measured value that a target refers to, in the unit of the target."""
    result = results.get((target.case, target.workload))
    ms = ms_of(result, variant)
    if result is None or ms is None:
        return None
    if target.kind == "growth":
        return exponent(results, target.case, variant)
    if target.kind == "passes":
        exp = results.get(("np.exp", target.workload))
        passes = [time for variant in VARIANTS if (time := ms_of(exp, variant))]
        return ms / min(passes) if passes else None
    if target.kind == "ratio":
        peer = best_peer(result, target.peer)
        return peer[1] / ms if peer else None
    if target.kind == "before":
        before = ms_of(result, BEFORE)
        return before / ms if before else None
    return ms


def is_met(target: Target, value: float, needed: float) -> bool:
    return value >= needed if target.kind in ("ratio", "before") else value <= needed


def target_row(target: Target, results: Results) -> list[str]:
    cells = [
        f"{target.case}, {target.workload}",
        target.peer or {"ratio": "best peer"}.get(target.kind, ""),
    ]
    for variant, needed in ((OURS, target.default), (FAST, target.fast)):
        value = reached(target, results, variant)
        if needed is None or value is None:
            cells += [
                "" if needed is None else _needed(target, needed),
                "" if value is None else f"{value:.3g}",
                "",
            ]
        else:
            cells += [
                _needed(target, needed),
                f"{value:.3g}",
                "yes" if is_met(target, value, needed) else "no",
            ]
    return cells


def _needed(target: Target, needed: float) -> str:
    sign = ">=" if target.kind in ("ratio", "before") else "<="
    unit = {"ratio": " x", "before": " x", "passes": " exp", "ms": " ms", "growth": ""}[target.kind]
    return f"{sign} {needed:g}{unit}"


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]
    return [*lines, ""]


def wait_rows(waits: dict[tuple[str, str], dict[str, dict[str, float]]]) -> list[list[str]]:
    rows = []
    for (case, workload), both in waits.items():
        for load, times in both.items():
            ratio = times["default"] / min(times["one"], times["two"])
            met = "yes" if ratio <= MOST_WAIT else "no"
            cells = [_ms(times[name]) for name in THREADS]
            rows.append([f"{case}, {workload}", load, *cells, f"{ratio:.2f}", met])
    return rows


def result_row(case: str, workload: str, result: dict[str, Any]) -> list[str]:
    peer, ours, fast = best_peer(result), ms_of(result, OURS), ms_of(result, FAST)
    mb = result.get(OURS, {}).get("mb")
    ratios = [f"{peer[1] / t:.2g} x" if peer and t else "" for t in (ours, fast)]
    named = f"{peer[0]} {_ms(peer[1])}" if peer else ""
    memory = "" if mb is None else f"{mb:.0f}"
    return [workload, case, _ms(ours), _ms(fast) if fast else "", named, *ratios, memory]


def versions() -> str:
    names = ("numpy", "scipy", "scikit-learn", "numba", *PEERS[1:], "torch")
    installed = []
    for name in names:
        try:
            installed.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join([f"Python {platform.python_version()}", *installed])


def machine() -> str:
    """Return the kind of processor, without a host name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    wide = "AVX-512" if any("avx512f" in line for line in lines) else "no AVX-512"
    kind = models[0] if models else platform.machine()
    return f"{kind}, {len(models) or os.cpu_count()} cores, {wide}, {platform.system()}"


def page(results: Results, waits: dict[tuple[str, str], dict[str, dict[str, float]]]) -> str:
    grown = [
        [case, f"{value:.2f}"] for case in CASES if (value := exponent(results, case)) is not None
    ]
    rows = [result_row(*key, result) for key, result in sorted(results.items(), key=_by_work)]
    lines = [
        "# Performance",
        "",
        "The tables show CPU milliseconds of one thread: the shortest of several calls, in which "
        "the packages take turns. Times include the input validation of all packages. Compare "
        "ratios, because times differ between machines more than ratios. The columns `fast` use "
        "the optional dependency of this name. Cases without measurements have no row. "
        "`python benchmarks/speed.py` writes this page.",
        "",
        f"{machine()}; {versions()}; {date.today().isoformat()}.",
        "",
        "## Targets",
        "",
        *table(
            ["case", "compared with", "limit", "measured", "met", "limit, fast", "measured", "met"],
            [
                target_row(target, results)
                for target in TARGETS
                if (target.case, target.workload) in results
            ],
        ),
        "Reasons for targets that are not met in every run, and changes that were not made:",
        "",
        *(f"- {sentence}" for sentence in LIMITS),
        "",
        "## Threads",
        "",
        "The table shows the elapsed milliseconds of the shortest of five calls with one thread, "
        "two threads and the default. The machine is idle, or runs two busy processes at the same "
        f"time. The limit for the default is {MOST_WAIT} times the shorter of the other two times.",
        "",
        *table(["case", "machine", *THREADS, "default / better", "met"], wait_rows(waits)),
        "## Growth with n (exponent from 10k to 1M rows)",
        "",
        "The exponent of n log n is 1.09 for these sizes.",
        "",
        *table(["case", "exponent"], grown),
        "## All cases",
        "",
        "MB is the peak memory of a call in addition to its input. A cell is empty if a package is "
        "not installed or lacks the function.",
        "",
        *table(
            ["rows x classes", "case", "ms", "fast", "best peer, ms", "ratio", "fast", "MB"], rows
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _by_work(item: tuple[tuple[str, str], Any]) -> tuple[int, int]:
    case, workload = item[0]
    return list(CASES).index(case), list(SIZES).index(workload)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smallest workloads, one round")
    parser.add_argument("--only", nargs="+", help="cases whose names contain one of these texts")
    parser.add_argument("--workload", nargs="+", choices=SIZES)
    parser.add_argument("--base", help="src folder of an older version to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--again", action="store_true", help="repeat stored measurements")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--no-fast", action="store_true")
    parser.add_argument("--no-threads", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the page without measuring")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = 1 if options.quick else options.rounds
    return options


def main() -> None:
    options = parsed()
    if options.serve:
        serve(options.serve)
        return
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            measure_all(options, Path(folder))
        return
    if not options.page:
        measure_all(options, options.folder)
    if options.page or not (options.only or options.workload):
        text = page(read_results(options.folder), read_waits(options.folder))
        PAGE.write_text(text, encoding="utf-8")


def measure_all(options: argparse.Namespace, folder: Path) -> None:
    bench = Bench(options, folder)
    try:
        for case, workload in chosen(options):
            print(line_of(case, workload, bench.run(case, workload)), flush=True)
        for case, workload in [] if options.quick or options.no_threads else WAITS:
            if (case, workload) in chosen(options):
                print("threads", case, workload, bench.wait(case, workload), flush=True)
    finally:
        bench.close()
    results = read_results(folder)
    shown = [target for target in TARGETS if (target.case, target.workload) in chosen(options)]
    for target in shown:
        print(" | ".join(target_row(target, results)))


if __name__ == "__main__":
    main()
