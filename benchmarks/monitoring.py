"""What `CalibrationMonitor` and its neighbours keep, on the probabilities of real networks with
simulated labels, so that "calibrated" is exact.

    python benchmarks/monitoring.py --data ../shared/data
    python benchmarks/monitoring.py --data ../shared/data --only delays --runs 200
    python benchmarks/monitoring.py --data ../shared/data --write benchmarks/records/monitoring.md

Prints tables, or writes them into the page, between the marks of their names. Seeded.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import _one_thread  # noqa: F401
from _marks import write_part
from _watch import ALPHA, TOGETHER, Network, Streams, draw, load, normalized, tilted
from calibrant.monitoring import CalibrationMonitor, ScoreDrift, estimate_performance
from calibrant.monitoring._evidence import GapSums, half_width, sum_gaps
from calibrant.notions import ClaimBlock

NETWORKS = (
    "cifar10_resnet50_gupta",
    "cifar10_densenet40_kull_sample",
    "cifar10_wide_resnet_gupta",
    "focal_cifar10_resnet50_gupta",
)
QUIET, LONGEST = 5_000, 15_000
HORIZON = QUIET + LONGEST
WINDOW, EVERY = 500, 100
LIMITS = (1 / ALPHA, HORIZON / ALPHA)
"""Of tests and detectors: an equal budget of false alarms."""


DRIFTS: dict[str, Callable[[Any], Any]] = {
    "temperature 1.25": lambda p: normalized(p ** (1 / 1.25)),
    "temperature 1.5": lambda p: normalized(p ** (1 / 1.5)),
    "temperature 0.8": lambda p: normalized(p ** (1 / 0.8)),
    "one class twice as frequent": lambda p: tilted(p, np.log(2) * (np.arange(p.shape[1]) == 0)),
    "all classes tilted by exp(±0.5)": lambda p: tilted(p, 0.5 * (-1.0) ** np.arange(p.shape[1])),
}

N_GROUPED, N_LATE = 5_000, 4_000
FAMILIES = ("confidence", "class-wise", "temperature", "learned")


def calibrated(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Points 1 and 2: calibrated streams of 20,000 rows, each family alone and all together."""
    titles = [*FAMILIES[:3], "these three", FAMILIES[3], "all four"]
    yield f"| network | reading | {' | '.join(titles)} |"
    yield "|---|---|" + "---|" * len(titles)
    for name in networks:
        network, rng = Network.of(load(folder, name)), np.random.default_rng(1)
        fixed = calibrated_alarms(network, [[0], [1], [2], [0, 1, 2]], runs, rng)
        learned = calibrated_alarms(network, [[3], [0, 1, 2, 3]], runs, rng)
        for i, reading in enumerate(("test", "detector")):
            cells = " | ".join([*fixed[i], *learned[i]])
            yield f"| {name} | {reading} | {cells} |"


def calibrated_alarms(network: Network, parts: list[list[int]], runs: int, rng: Any) -> Any:
    """How many streams ring, of how many, by reading and set of families."""
    weights = [network.weight(part) for part in parts]
    found = [
        Streams.start(network, weights, LIMITS, rng).feed(network.proba, HORIZON)
        for _ in range(runs // TOGETHER)
    ]
    rung = np.isfinite(np.concatenate(found, axis=2))
    return [[f"{part.sum()} of {part.size:,}" for part in reading] for reading in rung]


def delays(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 3: rows until a drift is found, at an equal budget."""
    yield (
        "| network | drift | plain e-process | e-process of the monitor | e-detector without "
        "learned members | e-detector | ratio | rolling ECE |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name in networks:
        network = Network.of(load(folder, name))
        limit, paths = ece_paths(network.proba, 20)
        found = find_drifts(network, runs)
        for drift in DRIFTS:
            # Plain e-process, that of the monitor, detectors without and with what is learned.
            rows = found[drift][[0, 0, 1, 1], [0, 2, 1, 2]]
            middle, missed = np.median(rows, axis=1), np.isinf(rows).mean(axis=1)
            ece = [first_above(path, limit) for path in paths[drift]]
            cells = " | ".join(map(shown, middle, missed))
            yield (
                f"| {name} | {drift} | {cells} | {middle[3] / middle[0]:.2f} | "
                f"{shown(np.median(ece), np.isinf(ece).mean())} |"
            )


def find_drifts(network: Network, runs: int) -> dict[str, Any]:
    """Rows until the alarm after a quiet time that all drifts share, (2, 3, runs) by drift: tests
    and detectors of the fixed members alike, as the monitor weighs them, and with learned ones.
    """
    fixed = list(range(len(network.members.families)))
    weights = [
        network.weight(fixed, alike=True),
        network.weight(fixed),
        network.weight([*fixed, len(fixed)]),
    ]
    rng, found = np.random.default_rng(11), {drift: [] for drift in DRIFTS}
    truths = {drift: shift(network.proba) for drift, shift in DRIFTS.items()}
    for _ in range(runs // TOGETHER):
        quiet = Streams.start(network, weights, LIMITS, rng)
        quiet.feed(network.proba, QUIET)
        for drift, truth in truths.items():
            found[drift].append(quiet.fork().feed(truth, LONGEST))
    return {drift: np.concatenate(parts, axis=2) for drift, parts in found.items()}


def ece_paths(proba: Any, runs: int) -> tuple[float, dict[str, list[Any]]]:
    """Rolling ECE of drifting streams, and the limit that 5 % of calibrated ones of 20,000 rows
    exceed.
    """
    rng, paths = np.random.default_rng(12), {drift: [] for drift in DRIFTS}
    highest = []
    for _ in range(runs):
        p = proba[rng.integers(0, len(proba), HORIZON)]
        highest.append(rolling_ece(draw(p, rng), p).max())
        for drift, shift in DRIFTS.items():
            paths[drift].append(rolling_ece(draw(shift(p[QUIET:]), rng), p[QUIET:]))
    return float(np.quantile(highest, 1 - ALPHA)), paths


def rolling_ece(y: Any, p: Any) -> Any:
    """ECE of the last 500 rows, every 100 rows: 15 bins of the top score, by running sums."""
    score, right = p.max(axis=1), p.argmax(axis=1) == y
    cells = np.zeros((len(y) + 1, 15))
    cells[np.arange(1, len(y) + 1), np.minimum(score * 15, 14).astype(int)] = right - score
    sums, ends = cells.cumsum(axis=0), np.arange(WINDOW, len(y) + 1, EVERY)
    return np.abs(sums[ends] - sums[ends - WINDOW]).sum(axis=1) / WINDOW


def first_above(path: Any, limit: float) -> float:
    """Rows until a rolling ECE exceeds a limit."""
    above = path > limit
    return WINDOW + EVERY * int(above.argmax()) if above.any() else np.inf


def shown(rows: float, missed: float) -> str:
    if np.isnan(rows):
        return "not installed"
    said = "-" if np.isinf(rows) else f"{rows:,.0f}"
    share = f"{missed:.0%}" if missed >= 0.01 else "below 1%"
    return f"{said} (missed {share})" if missed else said


def peers(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 3: beside a rolling ECE and, where it is installed, the risk monitoring of MAPIE (the
    accuracy, 5,000 reference rows, no tolerance), all on the same streams.
    """
    yield "| network | drift | calibrant, e-detector | rolling ECE | MAPIE, accuracy |"
    yield "|---|---|---|---|---|"
    for name in networks[:1]:
        limit, found = watch_together(load(folder, name), runs)
        for drift, rows in found.items():
            cells = [shown(np.median(one), np.isinf(one).mean()) for one in rows]
            if drift == CALIBRATED:
                rung = [f"{np.isfinite(one).sum()} of {runs}" for one in rows]
                cells = [rung[0], f"5 % (limit {limit:.4f}, set so)", rung[2]]
            yield f"| {name} | {drift} | {' | '.join(cells)} |"


CALIBRATED = "calibrated: alarms"


def watch_together(proba: Any, runs: int) -> tuple[float, dict[str, Any]]:
    """The limit of a rolling ECE that 5% of the calibrated streams exceed, and the rows until each
    of the three raises an alarm, (3, runs) by drift.
    """
    rng = np.random.default_rng(13)
    highest, rung = [], {drift: [] for drift in (CALIBRATED, *DRIFTS)}
    for _ in range(runs):
        p = proba[rng.integers(0, len(proba), HORIZON)]
        quiet = draw(p[:QUIET], rng)
        state = after_quiet(quiet, p[:QUIET])
        before = rolling_ece(quiet, p[:QUIET]).max()
        for drift, found in rung.items():
            later = draw(DRIFTS.get(drift, lambda p: p)(p[QUIET:]), rng)
            path = rolling_ece(later, p[QUIET:])
            right = p.argmax(axis=1) == np.append(quiet, later)
            mapie = mapie_alarm(right[:QUIET], right[QUIET:])
            found.append((monitor_alarm(state, later, p[QUIET:]), path, mapie))
        highest.append(max(before, rung[CALIBRATED][-1][1].max()))
    limit = float(np.quantile(highest, 1 - ALPHA))
    return limit, {
        drift: np.array([(ours, first_above(path, limit), mapie) for ours, path, mapie in found]).T
        for drift, found in rung.items()
    }


def after_quiet(y: Any, p: Any) -> str:
    """The state of a monitor that asks for exactness, after its first rows."""
    monitor = CalibrationMonitor(tolerance=0.0, horizon=HORIZON, classes=range(p.shape[1]))
    monitor.update(y, p)
    return monitor.to_json()


def monitor_alarm(state: str, y: Any, p: Any) -> float:
    """Rows until a monitor rings that goes on from a state, 0 where it rang before; infinite
    where it does not.
    """
    monitor = CalibrationMonitor.from_json(state)
    before = monitor.n_rows
    for start in range(0, len(y), WINDOW):
        rows = slice(start, start + WINDOW)
        if monitor.update(y[rows], p[rows]).alarm:
            return max(0, monitor.to_dict()["alarm_at"] - before)
    return np.inf


def mapie_alarm(reference: Any, later: Any) -> float:
    """The row at which MAPIE's bound of the accuracy rings; NaN without MAPIE.

    Its bound is a root that is searched for row by row, 2.3 s for 15,000 rows, which every update
    repeats for all rows so far. The mean risk minus the bound exceeds the threshold where MAPIE's
    supermartingale, at their distance, exceeds its own: one look a row, and none where the mean is
    below the threshold. Its `update` with all rows rang at the same rows of five streams.
    """
    try:
        from mapie.exchangeability_testing import RiskMonitoring
        from mapie.exchangeability_testing.bounds import GammaExponentialMixtureBound
    except ImportError:
        return np.nan
    known = (np.ones(len(reference), dtype=int), reference.astype(int))
    other = RiskMonitoring("accuracy", ALPHA, tolerance=0.0, reference_data=known, warn=False)
    level = other.test_level_online / 2
    mixture = GammaExponentialMixtureBound(v_opt=1, c=1, alpha_opt=level)
    wrong, rows = 1.0 - later, np.arange(1, len(later) + 1)
    mean = np.cumsum(wrong) / rows
    spread = np.cumsum((wrong - np.append(0.5, mean[:-1])) ** 2)
    above = (mean - other.threshold) * rows
    for t in np.flatnonzero(above > 0).tolist():
        if mixture.log_supermg(above[t], spread[t]) > np.log(1 / level):
            return t + 1
    return np.inf


def binary(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 3 with two classes: beside the monitor of probcal, where it is installed, on the same
    streams. It looks after every update, of 500 rows, so that delays are whole updates for both.
    """
    yield "| drift | calibrant, e-detector | probcal |"
    yield "|---|---|---|"
    proba = load_labelled(folder / "kitti_1layernn_pycalib.npz")[1]
    rng, rung = np.random.default_rng(14), {drift: [] for drift in (CALIBRATED, *DRIFTS)}
    for _ in range(runs):
        p = proba[rng.integers(0, len(proba), HORIZON)]
        quiet = draw(p[:QUIET], rng)
        state = after_quiet(quiet, p[:QUIET])
        for drift, found in rung.items():
            later = draw(DRIFTS.get(drift, lambda p: p)(p[QUIET:]), rng)
            ours = np.ceil(monitor_alarm(state, later, p[QUIET:]) / WINDOW) * WINDOW
            found.append((ours, probcal_alarm(np.append(quiet, later), p)))
    for drift, found in rung.items():
        rows = np.array(found).T
        cells = [shown(np.median(one), np.isinf(one).mean()) for one in rows]
        if drift == CALIBRATED:
            cells = [f"{np.isfinite(one).sum()} of {runs}" for one in rows]
        yield f"| {drift} | {' | '.join(cells)} |"


def probcal_alarm(y: Any, p: Any) -> float:
    """Rows until probcal rings, counted from the end of the quiet time, 0 where it rang before;
    NaN where it is not installed.
    """
    try:
        from probcal.monitor import CalibrationMonitor as Other
    except ImportError:
        return np.nan
    other = Other(alpha=ALPHA)
    for end in range(WINDOW, len(y) + 1, WINDOW):
        if other.update(y[end - WINDOW : end], p[end - WINDOW : end, 1]).alarm:
            return max(0, end - QUIET)
    return np.inf


def run_length(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 2: the average run length."""
    yield "| network | A | runs | mean rows to a false alarm | standard error |"
    yield "|---|---|---|---|---|"
    network = Network.of(load(folder, networks[0]))
    families = list(range(len(FAMILIES)))
    for arl, n_runs in ((1_000, runs), (10_000, max(TOGETHER, runs // 4))):
        rng, lengths = np.random.default_rng(2), []
        for _ in range(n_runs // TOGETHER):
            streams = Streams.start(network, [network.weight(families)], (np.inf, arl), rng)
            lengths.append(streams.feed(network.proba, 10**9, wanted=1)[1, 0])
        length = np.concatenate(lengths)
        error = length.std() / np.sqrt(len(length))
        yield f"| {networks[0]} | {arl:,} | {len(length)} | {length.mean():,.0f} | {error:,.0f} |"


def tolerance(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 4: gaps of the top claim against a tolerance of 0.02, a test at 5 %."""
    yield "| true gap | runs | share alarmed in 20,000 rows | median rows |"
    yield "|---|---|---|---|"
    top = load(folder, networks[0]).max(axis=1)
    network = Network.of(
        np.column_stack([1 - top, top]), tolerance=0.02, notions=("class-1",), mode="test"
    )
    rng, weights = np.random.default_rng(3), [network.weight([0])]
    for gap in (0.0, 0.02, 0.03, 0.04, 0.06, 0.10):
        true = np.maximum(top - gap, 0.0)
        truth = np.column_stack([1 - true, true])
        found = np.concatenate(
            [
                Streams.start(network, weights, LIMITS, rng).feed(truth, HORIZON, wanted=0)[0, 0]
                for _ in range(runs // TOGETHER)
            ]
        )
        middle, share = np.median(found), np.isfinite(found).mean()
        yield f"| {gap} | {len(found):,} | {share:.3f} | {shown(middle, 0.0)} |"


def sequences(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 5: coverage at all times of 20,000 rows, looked at every 100, and the width at
    5,000.
    """
    yield "| network | runs that ever missed | half-width at 5,000 rows | fixed sample |"
    yield "|---|---|---|---|"
    for name in networks:
        top, rng = load(folder, name).max(axis=1), np.random.default_rng(4)
        sums, missed = GapSums.zeros(runs), np.zeros(runs, dtype=bool)
        for t in range(HORIZON // 100):
            score = top[rng.integers(0, len(top), (100, runs))]
            hit = np.flatnonzero((rng.random(score.shape) < score).ravel())
            sums = sums + sum_gaps(ClaimBlock(score, None, hit), sums.mean, 1)
            half = half_width(sums, ALPHA)
            missed |= np.abs(sums.mean) > half
            if t == 49:
                width, fixed = half.mean(), (1.96 * np.sqrt(sums.variance) / sums.count).mean()
        yield f"| {name} | {missed.sum()} of {runs:,} | {width:.4f} | {fixed:.4f} |"


def groups(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 6: false discoveries among fifty groups, ten of which are overconfident."""
    proba, rng = load(folder, networks[0]), np.random.default_rng(5)
    shares, power = [], []
    for _ in range(runs):
        group, p = rng.integers(0, 50, N_GROUPED), proba[rng.integers(0, len(proba), N_GROUPED)]
        truth = np.where((group < 10)[:, None], normalized(p**0.4), p)
        monitor = CalibrationMonitor(tolerance=0.0, notions=["class-0"], classes=range(10), lag=1)
        monitor.update(draw(truth, rng), p, group=group)
        listed = [int(g.claim.split()[1]) for g in monitor.gaps()[1:] if g.is_listed]
        shares.append(sum(g >= 10 for g in listed) / max(1, len(listed)))
        power.append(sum(g < 10 for g in listed) / 10)
    false, found = np.mean(shares), np.mean(power)
    yield f"{runs} runs: share of false discoveries {false:.4f}, found {found:.2f}"


def late(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 8: labels that come late, in an order that the forecasts decide, to all members; and
    outcomes of a window of rows that are all alike, so that rows are calibrated one by one and far
    from independent. 4,000 rows, a test at 5 %.
    """
    yield "| rows | runs | late, learned members | alike, `lag` of so many | alike, `lag=1` |"
    yield "|---|---|---|---|---|"
    rng = np.random.default_rng(8)
    for window in (1, 10, 1_000):
        arrived = [watch_late(window, rng) for _ in range(runs)]
        kept, broken = (
            [watch_alike(window, lag, rng) for _ in range(n_runs)]
            for lag, n_runs in ((window, runs), (1, runs // 5))
        )
        cells = " | ".join(f"{np.mean(rung):.3f}" for rung in (arrived, kept, broken))
        yield f"| {window:,} | {runs:,} | {cells} |"


def watch_late(most: int, rng: Any) -> bool:
    """Whether calibrated rows with late labels raise an alarm; unsure rows come last."""
    score = rng.uniform(0.55, 0.95, N_LATE)
    y = (rng.random(N_LATE) >= score).astype(int)
    delay = most * (1.0 - score) * rng.random(N_LATE)
    order = np.argsort(np.arange(N_LATE) + delay)
    monitor = CalibrationMonitor(tolerance=0.0, mode="test", classes=[0, 1])
    return monitor.update(y[order], np.column_stack([score, 1 - score])[order]).alarm


def watch_alike(window: int, lag: int, rng: Any) -> bool:
    """Whether rows ring whose outcomes are decided by one number a window."""
    score = rng.uniform(0.55, 0.95, N_LATE)
    shared = np.repeat(rng.random(N_LATE // window), window)
    options = {"tolerance": 0.0, "mode": "test", "notions": ["confidence"], "lag": lag}
    monitor = CalibrationMonitor(classes=[0, 1], **options)
    p = np.column_stack([score, 1 - score])
    return monitor.update((shared >= score).astype(int), p).alarm


def score_drift(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 10."""
    yield (
        "| reference rows | calibrated: alarmed in 20,000 rows | a class twice as frequent: rows |"
    )
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
    """Point 9: accuracy without labels under four shifts, real labels, three splits of a file."""
    yield "| how the target rows were drawn | reference accuracy | estimate | interval holds |"
    yield "|---|---|---|---|"
    files = sorted(f for f in folder.glob("*.npz") if not f.name.startswith(LEFT_OUT))
    results: dict[str, list[tuple[float, float, bool]]] = {}
    for file in files:
        for seed in range(runs):
            for shift, one in shifted_errors(file, seed):
                results.setdefault(shift, []).append(one)
    for shift, rows in results.items():
        plain, ours, holds = np.array(rows).mean(axis=0)
        yield f"| {shift} ({len(rows)} cases) | {plain:.4f} | {ours:.4f} | {holds:.0%} |"


LEFT_OUT = ("features_", "cifar10lt_", "imagenet1k", "species")


def shifted_errors(file: Path, seed: int) -> Iterator[tuple[str, tuple[float, float, bool]]]:
    y, p = load_labelled(file)
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
    "calibrated": (calibrated, 1_000),
    "delays": (delays, 200),
    "peers": (peers, 60),
    "binary": (binary, 50),
    "run_length": (run_length, 400),
    "tolerance": (tolerance, 1_000),
    "sequences": (sequences, 400),
    "groups": (groups, 500),
    "late": (late, 1_000),
    "score_drift": (score_drift, 200),
    "performance": (performance, 3),
    "speed": (speed, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--runs", type=int, help="instead of what each table takes")
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--write", type=Path, help="the page to write the tables into")
    arguments = parser.parse_args()
    for name in arguments.only:
        measure, runs = PARTS[name]
        print(f"\n### {name}\n", flush=True)
        lines = []
        for line in measure(arguments.data, arguments.runs or runs, tuple(arguments.networks)):
            print(line, flush=True)
            lines.append(line)
        if arguments.write:
            write_part(arguments.write, name, lines)


if __name__ == "__main__":
    main()
