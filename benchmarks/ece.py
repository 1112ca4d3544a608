"""Compare the time and the values of the confidence and class-wise ECE with other packages.

    python benchmarks/ece.py                   10k x 10 and 10k x 100
    python benchmarks/ece.py --large           also 1M x 10
    python benchmarks/ece.py --dtype float32

The result is the minimum CPU time of the process over several interleaved runs with one thread. In
every round, each package has a few calls in a row. Other work on the machine then affects all
packages equally, and no package pays for a cache that another one has filled. Each package gets the
arrays in the form that it requires, converted in advance: torch tensors share the memory, and
PyCalib gets one-hot labels. Packages that are not installed are reported and left out.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import math
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import NamedTuple

import numpy as np

from calibrant.metrics import expected_calibration_error

N_BINS = 15
OURS = "calibrant"
CALLS_IN_A_ROW = 3
# torchmetrics sums in float32 for any input. Another definition would differ by far more.
AGREEMENT = 1e-6

Call = Callable[[], float]


class Workload(NamedTuple):
    name: str
    n_rows: int
    n_classes: int
    rounds: int


WORKLOADS = (Workload("A", 10_000, 10, 12), Workload("B", 10_000, 100, 6))
LARGE = Workload("D", 1_000_000, 10, 1)


class Result(NamedTuple):
    name: str
    ratio: float
    difference: float

    @property
    def agreement(self) -> str:
        if self.name == OURS:
            return ""
        return "agrees" if self.difference <= AGREEMENT else f"DIFFERS by {self.difference:.1e}"


def predictions(work: Workload, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax probabilities of Gaussian logits, with labels from a sharper model. The
    predictions are underconfident.
    """
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.normal(size=(work.n_rows, work.n_classes))
    labels = (1.3 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    return labels, proba.astype(dtype)


def calibrant(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    return {
        "confidence": lambda: expected_calibration_error(y, p, n_bins=N_BINS),
        "class-wise": lambda: expected_calibration_error(y, p, n_bins=N_BINS, notion="class-wise"),
    }


def torchmetrics(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    torch = import_module("torch")
    errors = import_module("torchmetrics.functional.classification")
    torch.set_num_threads(1)
    proba, labels = torch.from_numpy(p), torch.from_numpy(y)
    return {
        "confidence": lambda: float(
            errors.multiclass_calibration_error(proba, labels, p.shape[1], N_BINS)
        )
    }


def netcal(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    metric = import_module("netcal.metrics").ECE(N_BINS)
    return {"confidence": lambda: float(metric.measure(p, y))}


def pycalib(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    metrics = import_module("pycalib.metrics")
    one_hot = np.eye(p.shape[1], dtype=np.int64)[y]
    return {
        "confidence": lambda: float(metrics.conf_ECE(y, p, bins=N_BINS)),
        "class-wise": lambda: float(metrics.classwise_ECE(one_hot, p, bins=N_BINS)),
    }


def uncertainty_calibration(y: np.ndarray, p: np.ndarray) -> dict[str, Call]:
    get_ece = import_module("calibration").get_ece
    return {
        "confidence": lambda: float(get_ece(p, y, num_bins=N_BINS)),
        "class-wise": lambda: float(get_ece(p, y, num_bins=N_BINS, mode="marginal")),
    }


PEERS = {
    "torchmetrics": torchmetrics,
    "netcal": netcal,
    "pycalib": pycalib,
    "uncertainty-calibration": uncertainty_calibration,
}
"""Return the errors by type of calibration. torchmetrics and netcal have no class-wise error."""


def installed_peers() -> list[str]:
    """Return the packages that can be imported and called. Problems of the others are printed."""
    labels, proba = predictions(Workload("", 50, 3, 1), "float64")
    installed = []
    for name, errors in PEERS.items():
        try:
            for call in errors(labels, proba).values():
                call()
            installed.append(name)
            print(f"{name} {version(name)}")
        except ModuleNotFoundError as error:
            print(f"{name}: not installed ({error.name} is missing); see benchmarks/README.md")
        except Exception as error:  # an error of one package must not end the comparison
            print(f"{name}: installed, but fails: {type(error).__name__}: {error}")
    return installed


def cpu_ms(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Return the shortest CPU time of each call in milliseconds."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], *(_one_ms(call) for _ in range(CALLS_IN_A_ROW)))
    return best


def _one_ms(call: Call) -> float:
    start = time.process_time()
    call()
    return 1e3 * (time.process_time() - start)


def compare(work: Workload, notion: str, calls: dict[str, Call]) -> list[Result]:
    """Print one row per package. Return the results of the other packages."""
    values = {name: call() for name, call in calls.items()}
    best = cpu_ms(calls, work.rounds)
    results = []
    for name, ms in best.items():
        result = Result(name, ms / best[OURS], abs(values[name] - values[OURS]))
        print(
            f"{work.name}  {notion:<10}  {name:<24} {ms:10.3f} {result.ratio:8.1f} x  "
            f"{values[name]:.8f}  {result.agreement}"
        )
        results.append(result)
    return [result for result in results if result.name != OURS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="also workload D, 1M x 10")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # results of the other packages

    peers = installed_peers()
    print(f"\nCPU time of one call, {options.dtype}, {N_BINS} bins, one thread")
    print(f"{'':3}{'notion':<12}{'package':<24} {'ms':>10} {'ratio':>10}  {'value':<10}")
    results = []
    for work in (*WORKLOADS, LARGE) if options.large else WORKLOADS:
        y, p = predictions(work, options.dtype)
        errors = {OURS: calibrant(y, p), **{name: PEERS[name](y, p) for name in peers}}
        for notion in ("confidence", "class-wise"):
            calls = {
                name: functions[notion] for name, functions in errors.items() if notion in functions
            }
            results += compare(work, notion, calls)
    print(verdict(results, len(peers)))


def verdict(results: list[Result], n_peers: int) -> str:
    if not results:
        return "\nNo other package is installed. Install benchmarks/requirements.txt."
    closest = min(results, key=lambda result: result.ratio)
    ahead = "faster than" if closest.ratio > 1 else "NOT faster than"
    other = sorted({result.name for result in results if result.difference > AGREEMENT})
    agree = f"values differ from those of {', '.join(other)}" if other else "all values agree"
    smallest = f"smallest ratio {closest.ratio:.2f} ({closest.name})"
    return (
        f"\n{agree}\ncalibrant is {ahead} every installed package ({n_peers} of {len(PEERS)}); "
        f"{smallest}"
    )


if __name__ == "__main__":
    main()
