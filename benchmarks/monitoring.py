"""What `CalibrationMonitor` and its neighbours keep, on the probabilities of real networks with
simulated labels, so that "honest" is exact.

    python benchmarks/monitoring.py --data ../shared/data
    python benchmarks/monitoring.py --data ../shared/data --only delays --runs 200

Prints the tables of docs/monitoring.md. Seeded.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import _one_thread  # noqa: F401
from calibrant.metrics import expected_calibration_error
from calibrant.monitoring import CalibrationMonitor, ScoreDrift, estimate_performance
from calibrant.monitoring._evidence import Evidence, make_layout
from calibrant.monitoring._members import Members
from calibrant.monitoring._rule import make_rule
from calibrant.monitoring._sequences import GapSums, half_width, sum_gaps
from calibrant.notions import as_notion

NETWORKS = (
    "cifar10_resnet50_gupta",
    "cifar10_densenet40_kull_sample",
    "cifar10_wide_resnet_gupta",
    "focal_cifar10_resnet50_gupta",
)
QUIET, LONGEST, ALPHA = 5_000, 15_000, 0.05
WINDOW, EVERY = 500, 100


def load(folder: Path, name: str) -> Any:
    """Probabilities of the test rows of a network."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        z = file["test_logits"].astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    return p / p.sum(axis=1, keepdims=True)


def draw(truth: Any, rng: Any) -> Any:
    y = (truth.cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    return y.clip(max=truth.shape[1] - 1)


def normalized(p: Any) -> Any:
    return p / p.sum(axis=1, keepdims=True)


def tilted(p: Any, log_tilt: Any) -> Any:
    return normalized(p * np.exp(log_tilt))


DRIFTS: dict[str, Callable[[Any], Any]] = {
    "temperature 1.25": lambda p: normalized(p ** (1 / 1.25)),
    "temperature 1.5": lambda p: normalized(p ** (1 / 1.5)),
    "temperature 0.8": lambda p: normalized(p ** (1 / 0.8)),
    "one class twice as frequent": lambda p: tilted(p, np.log(2) * (np.arange(p.shape[1]) == 0)),
    "all classes tilted by exp(±0.5)": lambda p: tilted(p, 0.5 * (-1.0) ** np.arange(p.shape[1])),
}


READINGS = ("e-process, fixed members", "e-process", "e-detector, fixed members", "e-detector")


class Watch:
    """Tests and detectors beside each other on the same rows, with and without what is learned."""

    def __init__(self, n_classes: int, horizon: int) -> None:
        options = {"arl": None, "lag": 1, "inputs": "proba", "tolerance": 0.0}
        options |= {"notions": ("confidence", "class-wise"), "false_alarm": ALPHA}
        self.layouts, self.limits = [], []
        for mode in ("test", "detector"):
            rule = make_rule(mode=mode, horizon=horizon, **options)
            self.members = Members(rule, n_classes)
            sizes = np.diff(self.members.layout.ends, prepend=0).tolist()
            for own in (sizes[:-1], sizes):
                self.layouts.append(make_layout(own, 1, rule.is_detector))
                self.limits.append(rule.threshold)
        self.evidence = [Evidence.start(layout) for layout in self.layouts]
        self.states = self.members.start()
        self.gap = np.zeros(self.members.n_claims)
        self.n_rows, self.found = 0, [None] * len(READINGS)

    def fork(self) -> Watch:
        other = object.__new__(Watch)
        other.__dict__ = {**self.__dict__, "evidence": list(self.evidence)}
        other.found = [None] * len(READINGS)
        return other

    def feed(self, y: Any, p: Any) -> None:
        step = self.members.block_rows
        for start in range(0, len(y), step):
            rows = slice(start, start + step)
            sums = self.members.of_block(p[rows], y[rows], self.gap, self.states)
            for i, layout in enumerate(self.layouts):
                self._advance(i, layout, sums.log_f[:, : layout.n_members])
            self.states = self.members.learn(self.states, sums.learnt)
            self.n_rows += len(y[rows])

    def _advance(self, i: int, layout: Any, log_f: Any) -> None:
        if self.found[i] is not None:
            return
        self.evidence[i], peak, path = self.evidence[i].advance(log_f, self.n_rows, layout)
        if peak >= self.limits[i]:
            self.found[i] = self.n_rows + int(np.flatnonzero(path[:, 0] >= self.limits[i])[0]) + 1

    def feed_until_found(self, y: Any, p: Any) -> list[int | None]:
        for start in range(0, len(y), 512):
            if all(f is not None for f in self.found):
                break
            self.feed(y[start : start + 512], p[start : start + 512])
        return self.found


def rolling_ece(y: Any, p: Any) -> Any:
    """ECE of the last 500 rows, every 100 rows."""
    ends = range(WINDOW, len(y) + 1, EVERY)
    return np.array(
        [expected_calibration_error(y[e - WINDOW : e], p[e - WINDOW : e]) for e in ends]
    )


class Run(NamedTuple):
    """Alarm rows of each reading and paths of the rolling ECE: an honest stream, and by drift."""

    honest: list[int | None]
    honest_ece: Any
    found: dict[str, list[float]]
    drift_ece: dict[str, Any]


def run_once(proba: Any, rng: Any, with_ece: bool) -> Run:
    """One quiet time, then honest rows, and the same forecasts with each drift."""
    watch = Watch(proba.shape[1], QUIET + LONGEST)
    p, later = (proba[rng.integers(0, len(proba), n)] for n in (QUIET, LONGEST))
    y, y_later = draw(p, rng), draw(later, rng)
    watch.feed(y, p)
    own = watch.fork()
    own.found = list(watch.found)
    honest = own.feed_until_found(y_later, later)
    found, drift_ece, honest_ece = {}, {}, None
    if with_ece:
        honest_ece = rolling_ece(np.append(y, y_later), np.vstack([p, later]))
    for drift, shift in DRIFTS.items():
        y_drift = draw(shift(later), rng)
        rows = watch.fork().feed_until_found(y_drift, later)
        found[drift] = [np.inf if f is None else f - QUIET for f in rows]
        if with_ece:
            drift_ece[drift] = rolling_ece(y_drift, later)
    return Run(honest, honest_ece, found, drift_ece)


def delays(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Points 1 to 3: alarms of honest streams, and rows until a drift is found."""
    yield f"| network | drift | {' | '.join(READINGS)} | ratio | rolling ECE |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in networks:
        rng, proba = np.random.default_rng(11), load(folder, name)
        done = [run_once(proba, rng, with_ece=run < 20) for run in range(runs)]
        with_ece = [run for run in done if run.honest_ece is not None]
        limit = np.quantile([run.honest_ece.max() for run in with_ece], 1 - ALPHA)
        for drift in DRIFTS:
            rows = np.array([run.found[drift] for run in done])
            middle, missed = np.median(rows, axis=0), np.isinf(rows).mean(axis=0)
            ece = [first_above(run.drift_ece[drift], limit) for run in with_ece]
            cells = " | ".join(map(shown, middle, missed))
            yield (
                f"| {name} | {drift} | {cells} | {middle[3] / middle[0]:.2f} | "
                f"{shown(np.median(ece), np.isinf(ece).mean())} |"
            )
        share = np.array([[f is not None for f in run.honest] for run in done]).mean(axis=0)
        cells = " | ".join(f"{one:.3f}" for one in share)
        yield f"| {name} | honest: share alarmed | {cells} | | .05 (set) |"


def first_above(path: Any, limit: float) -> float:
    """Rows until a rolling ECE exceeds a limit."""
    above = path > limit
    return WINDOW + EVERY * int(above.argmax()) if above.any() else np.inf


def shown(rows: float, missed: float) -> str:
    said = "-" if np.isinf(rows) else f"{rows:,.0f}"
    return f"{said} (missed {missed:.0%})" if missed else said


def run_length(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 2: the average run length."""
    yield "| network | A | runs | mean rows to a false alarm | standard error |"
    yield "|---|---|---|---|---|"
    for arl, n_runs in ((1000.0, runs), (10_000.0, max(10, runs // 10))):
        rng, proba = np.random.default_rng(2), load(folder, networks[0])
        lengths = []
        for _ in range(n_runs):
            monitor = CalibrationMonitor(tolerance=0.0, arl=arl, classes=range(proba.shape[1]))
            while not monitor.alarm:
                p = proba[rng.integers(0, len(proba), 1024)]
                monitor.update(draw(p, rng), p)
            lengths.append(monitor.to_dict()["alarm_at"])
        error = np.std(lengths) / np.sqrt(n_runs)
        yield f"| {networks[0]} | {arl:,.0f} | {n_runs} | {np.mean(lengths):,.0f} | {error:,.0f} |"


def tolerance(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 4: gaps of the top claim against a tolerance of 0.02, a test at 5 %."""
    yield "| true gap | share alarmed in 20,000 rows | median rows |"
    yield "|---|---|---|"
    proba, rng = load(folder, networks[0]), np.random.default_rng(3)
    for gap in (0.0, 0.02, 0.03, 0.04, 0.06, 0.10):
        rows = []
        for _ in range(runs):
            top = proba.max(axis=1)[rng.integers(0, len(proba), 20_000)]
            y = (rng.random(len(top)) >= np.maximum(top - gap, 0.0)).astype(int)
            p = np.column_stack([top, 1 - top])
            monitor = CalibrationMonitor(
                tolerance=0.02, mode="test", notions=["confidence"], classes=[0, 1]
            )
            for start in range(0, len(y), 1000):
                if monitor.update(y[start : start + 1000], p[start : start + 1000]).alarm:
                    break
            at = monitor.to_dict()["alarm_at"]
            rows.append(np.inf if at is None else at)
        middle = np.median(rows)
        yield f"| {gap} | {np.isfinite(rows).mean():.2f} | {shown(middle, 0.0)} |"


def sequences(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 5: coverage at all times of 20,000 rows, and the width at 5,000."""
    yield "| network | runs that ever missed | half-width at 5,000 rows | fixed sample |"
    yield "|---|---|---|---|"
    notion = as_notion("confidence")
    for name in networks:
        proba, rng = load(folder, name), np.random.default_rng(4)
        missed, width, fixed = 0, [], []
        for _ in range(runs):
            sums, ever = GapSums.zeros(1), False
            for t in range(200):
                p = proba[rng.integers(0, len(proba), 100)]
                sums = sums + sum_gaps(notion.select(p, draw(p, rng)), sums.mean, 1)
                half = half_width(sums, ALPHA)[0]
                ever |= abs(sums.mean[0]) > half
                if t == 49:
                    width.append(half)
                    fixed.append(1.96 * np.sqrt(sums.variance[0]) / sums.count[0])
            missed += ever
        yield f"| {name} | {missed} of {runs} | {np.mean(width):.4f} | {np.mean(fixed):.4f} |"


def groups(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 6: false discoveries among fifty groups, ten of which are overconfident."""
    proba, rng = load(folder, networks[0]), np.random.default_rng(5)
    shares, power = [], []
    for _ in range(runs):
        group, p = rng.integers(0, 50, 10_000), proba[rng.integers(0, len(proba), 10_000)]
        truth = np.where((group < 10)[:, None], normalized(p**0.4), p)
        monitor = CalibrationMonitor(tolerance=0.0, notions=["confidence"], classes=range(10))
        monitor.update(draw(truth, rng), p, group=group)
        listed = [int(g.claim.split()[1]) for g in monitor.gaps()[1:] if g.is_listed]
        shares.append(sum(g >= 10 for g in listed) / max(1, len(listed)))
        power.append(sum(g < 10 for g in listed) / 10)
    false, found = np.mean(shares), np.mean(power)
    yield f"{runs} runs: share of false discoveries {false:.4f}, found {found:.2f}"


def score_drift(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 10."""
    yield "| reference rows | honest: alarmed in 20,000 rows | a class twice as frequent: rows |"
    yield "|---|---|---|"
    proba, rng = load(folder, networks[0]), np.random.default_rng(6)
    likely = proba[:, 0] + 0.0
    weight = (1 + likely) / (1 + likely).sum()  # the first class, as the model sees it, doubled
    for n_reference in (500, 2_000, 10_000):
        alarms, rows = [], []
        for _ in range(max(10, runs // 4)):
            reference = proba[rng.integers(0, len(proba), n_reference)]
            quiet = ScoreDrift(reference, horizon=20_000)
            alarms.append(quiet.update(proba[rng.integers(0, len(proba), 20_000)]).alarm)
            drift, seen = ScoreDrift(reference, horizon=20_000), np.inf
            for start in range(0, 20_000, 100):
                step = drift.update(proba[rng.choice(len(proba), 100, p=weight)])
                if step.alarm:
                    seen = start + 100
                    break
            rows.append(seen)
        yield f"| {n_reference:,} | {np.mean(alarms):.3f} | {shown(np.median(rows), 0)} |"


def performance(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 9: accuracy without labels under four shifts, real labels; up to twenty classes."""
    yield "| how the target rows were drawn | reference accuracy | estimate | interval holds |"
    yield "|---|---|---|---|"
    files = sorted(f for f in folder.glob("*.npz") if not f.name.startswith(LEFT_OUT))
    results: dict[str, list[tuple[float, float, bool]]] = {}
    for file in files:
        for seed in range(3 if runs >= 200 else 1):
            for shift, one in shifted_errors(file, seed):
                results.setdefault(shift, []).append(one)
    for shift, rows in results.items():
        plain, ours, holds = np.array(rows).mean(axis=0)
        yield f"| {shift} ({len(rows)} cases) | {plain:.4f} | {ours:.4f} | {holds:.0%} |"


LEFT_OUT = ("features_", "cifar10lt_", "imagenet1k", "species")


def shifted_errors(file: Path, seed: int) -> Iterator[tuple[str, tuple[float, float, bool]]]:
    y, p = load_labelled(file)
    if p.shape[1] > 20:  # isotonic regression a class, resampled: minutes
        return
    rng = np.random.default_rng([seed, len(y), p.shape[1]])
    order = rng.permutation(len(y))
    n_ref = min(2000, len(y) // 2)
    ref, rest = order[:n_ref], order[n_ref:]
    top, sure = p[rest].argmax(axis=1), p[rest].max(axis=1)
    tilt = rng.normal(scale=0.7, size=p.shape[1])
    draws = {
        "no shift": np.ones(len(rest)),
        "hard rows preferred, by confidence": np.exp(-3 * (sure - sure.min())),
        "by predicted class": np.exp(tilt[top]),
        "by true class": np.exp(tilt[y[rest]]),
    }
    for shift, weight in draws.items():
        rows = rest[rng.choice(len(rest), 2000, p=weight / weight.sum())]
        truth = float((p[rows].argmax(axis=1) == y[rows]).mean())
        found = estimate_performance((y[ref], p[ref]), p[rows], n_resamples=20, rng=seed)
        plain = abs(found.reference_accuracy - truth)
        yield shift, (plain, abs(found.accuracy - truth), found.low <= truth <= found.high)


def load_labelled(file: Path) -> tuple[Any, Any]:
    with np.load(file, allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    split = "test_" if "test_labels" in arrays else ""
    y = arrays[f"{split}labels"]
    if f"{split}logits" in arrays:
        z = arrays[f"{split}logits"].astype(np.float64)
        p = np.exp(z - z.max(axis=1, keepdims=True))
    else:
        p = arrays[f"{split}probs"].astype(np.float64)
    codes = np.unique(y, return_inverse=True)[1] if y.dtype.kind in "OSU" else y
    return codes.astype(int), normalized(p)


def speed(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 11: rows a second of processor time, one thread, and the size of the state."""
    yield "| classes | tolerance | rows/s | state, bytes |"
    yield "|---|---|---|---|"
    rng = np.random.default_rng(7)
    for n_classes, n_rows in ((2, 100_000), (10, 100_000), (100, 10_000), (1000, 1_000)):
        p = rng.dirichlet(np.full(n_classes, 0.2), n_rows)
        y = draw(p, rng)
        for eps in (0.0, 0.02):
            monitor = CalibrationMonitor(tolerance=eps)
            monitor.update(y[:10], p[:10])
            start = time.process_time()
            monitor.update(y, p)
            rate = n_rows / (time.process_time() - start)
            yield f"| {n_classes:,} | {eps} | {rate:,.0f} | {len(monitor.to_json()):,} |"


PARTS = {
    "delays": delays,
    "run_length": run_length,
    "tolerance": tolerance,
    "sequences": sequences,
    "groups": groups,
    "score_drift": score_drift,
    "performance": performance,
    "speed": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    arguments = parser.parse_args()
    for name in arguments.only:
        print(f"\n### {name}\n", flush=True)
        for line in PARTS[name](arguments.data, arguments.runs, tuple(arguments.networks)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
