"""Measure false alarms, delays and intervals of `calibrant.monitoring` in simulations.

    python benchmarks/monitoring.py --data ../shared/data
    python benchmarks/monitoring.py --data ../shared/data --only delays --runs 200
    python benchmarks/monitoring.py --data ../shared/data --write benchmarks/records/monitoring.md

The probabilities come from real networks and the labels are simulated, so calibration is exact. The
script prints tables, or writes them into the page between the marks of their names. All runs are
seeded.
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
"""Alarm limits of tests and detectors with equal probabilities of a false alarm."""


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
    """Points 1 and 2: measure false alarms in calibrated streams, for sets of families."""
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
    """Return the number of streams with an alarm, by reading and set of families."""
    weights = [network.weight(part) for part in parts]
    alarms = [
        Streams.start(network, weights, LIMITS, rng).feed(network.proba, HORIZON)
        for _ in range(runs // TOGETHER)
    ]
    is_alarm = np.isfinite(np.concatenate(alarms, axis=2))
    return [[f"{part.sum()} of {part.size:,}" for part in reading] for reading in is_alarm]


def delays(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 3: measure the rows until a drift is found, at equal probabilities of a false alarm."""
    yield (
        "| network | drift | plain e-process | e-process of the monitor | e-detector without "
        "learned members | e-detector | ratio | rolling ECE |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name in networks:
        network = Network.of(load(folder, name))
        limit, paths = ece_paths(network.proba, 20)
        alarms = find_drifts(network, runs)
        for drift in DRIFTS:
            # Plain e-process, e-process of the monitor, detectors without and with learned members.
            rows = alarms[drift][[0, 0, 1, 1], [0, 2, 1, 2]]
            middle, missed = np.median(rows, axis=1), np.isinf(rows).mean(axis=1)
            ece = [first_above(path, limit) for path in paths[drift]]
            cells = " | ".join(map(shown, middle, missed))
            yield (
                f"| {name} | {drift} | {cells} | {middle[3] / middle[0]:.2f} | "
                f"{shown(np.median(ece), np.isinf(ece).mean())} |"
            )


def find_drifts(network: Network, runs: int) -> dict[str, Any]:
    """Return the rows until the alarm after calibrated rows that all drifts share.

    The result has arrays (2, 3, runs) by drift: tests and detectors, for fixed members with equal
    weights, fixed members with the weights of a monitor, and all members.
    """
    fixed = list(range(len(network.members.families)))
    weights = [
        network.weight(fixed, alike=True),
        network.weight(fixed),
        network.weight([*fixed, len(fixed)]),
    ]
    rng, alarms = np.random.default_rng(11), {drift: [] for drift in DRIFTS}
    truths = {drift: shift(network.proba) for drift, shift in DRIFTS.items()}
    for _ in range(runs // TOGETHER):
        quiet = Streams.start(network, weights, LIMITS, rng)
        quiet.feed(network.proba, QUIET)
        for drift, truth in truths.items():
            alarms[drift].append(quiet.fork().feed(truth, LONGEST))
    return {drift: np.concatenate(parts, axis=2) for drift, parts in alarms.items()}


def ece_paths(proba: Any, runs: int) -> tuple[float, dict[str, list[Any]]]:
    """Return the rolling ECE of drifting streams, and the limit that 5% of calibrated streams of
    20,000 rows exceed.
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
    """Return the ECE of the last 500 rows after every 100 rows, with 15 bins of the confidence."""
    score, right = p.max(axis=1), p.argmax(axis=1) == y
    cells = np.zeros((len(y) + 1, 15))
    cells[np.arange(1, len(y) + 1), np.minimum(score * 15, 14).astype(int)] = right - score
    sums, ends = cells.cumsum(axis=0), np.arange(WINDOW, len(y) + 1, EVERY)
    return np.abs(sums[ends] - sums[ends - WINDOW]).sum(axis=1) / WINDOW


def first_above(path: Any, limit: float) -> float:
    """Return the rows until a rolling ECE exceeds a limit."""
    above = path > limit
    return WINDOW + EVERY * int(above.argmax()) if above.any() else np.inf


def shown(rows: float, missed: float) -> str:
    if np.isnan(rows):
        return "not installed"
    text = "-" if np.isinf(rows) else f"{rows:,.0f}"
    share = f"{missed:.0%}" if missed >= 0.01 else "below 1%"
    return f"{text} (missed {share})" if missed else text


def peers(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 3: compare with a rolling ECE and the risk monitoring of MAPIE on the same streams.

    MAPIE monitors the accuracy, with 5,000 reference rows and no tolerance. Its column is empty of
    results if MAPIE is not installed.
    """
    yield "| network | drift | calibrant, e-detector | rolling ECE | MAPIE, accuracy |"
    yield "|---|---|---|---|---|"
    for name in networks[:1]:
        limit, alarms = watch_together(load(folder, name), runs)
        for drift, rows in alarms.items():
            cells = [shown(np.median(times), np.isinf(times).mean()) for times in rows]
            if drift == CALIBRATED:
                counts = [f"{np.isfinite(times).sum()} of {runs}" for times in rows]
                cells = [counts[0], f"5% (by choice of the limit {limit:.4f})", counts[2]]
            yield f"| {name} | {drift} | {' | '.join(cells)} |"


CALIBRATED = "calibrated: alarms"


def watch_together(proba: Any, runs: int) -> tuple[float, dict[str, Any]]:
    """Return the limit of a rolling ECE that 5% of the calibrated streams exceed, and the rows
    until each of the three methods raises an alarm, (3, runs) by drift.
    """
    rng = np.random.default_rng(13)
    highest, alarms = [], {drift: [] for drift in (CALIBRATED, *DRIFTS)}
    for _ in range(runs):
        p = proba[rng.integers(0, len(proba), HORIZON)]
        quiet = draw(p[:QUIET], rng)
        state = after_quiet(quiet, p[:QUIET])
        before = rolling_ece(quiet, p[:QUIET]).max()
        for drift, delays in alarms.items():
            later = draw(DRIFTS.get(drift, lambda p: p)(p[QUIET:]), rng)
            path = rolling_ece(later, p[QUIET:])
            right = p.argmax(axis=1) == np.append(quiet, later)
            mapie = mapie_alarm(right[:QUIET], right[QUIET:])
            delays.append((monitor_alarm(state, later, p[QUIET:]), path, mapie))
        highest.append(max(before, alarms[CALIBRATED][-1][1].max()))
    limit = float(np.quantile(highest, 1 - ALPHA))
    return limit, {
        drift: np.array([(ours, first_above(path, limit), mapie) for ours, path, mapie in delays]).T
        for drift, delays in alarms.items()
    }


def after_quiet(y: Any, p: Any) -> str:
    """Return the state of a monitor without a tolerance after its first rows."""
    monitor = CalibrationMonitor(tolerance=0.0, horizon=HORIZON, classes=range(p.shape[1]))
    monitor.update(y, p)
    return monitor.to_json()


def monitor_alarm(state: str, y: Any, p: Any) -> float:
    """Return the rows until a monitor that continues from a state raises an alarm: 0 for an earlier
    alarm, infinity for none.
    """
    monitor = CalibrationMonitor.from_json(state)
    before = monitor.n_rows
    for start in range(0, len(y), WINDOW):
        rows = slice(start, start + WINDOW)
        if monitor.update(y[rows], p[rows]).alarm:
            return max(0, monitor.to_dict()["alarm_at"] - before)
    return np.inf


def mapie_alarm(reference: Any, later: Any) -> float:
    """Return the row at which MAPIE's bound of the accuracy raises an alarm, NaN without MAPIE.

    MAPIE computes its bound by a root search for each row, and every update repeats this for all
    rows so far (2.3 s for 15,000 rows). The mean risk minus the bound exceeds the threshold if and
    only if MAPIE's supermartingale at the excess of the mean over the threshold exceeds its own
    limit. This function evaluates the supermartingale once per row, and only if the mean is above
    the threshold. On five streams, the `update` of MAPIE with all rows raised its alarms at the
    same rows.
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
    """Point 3 for binary data: compare with the monitor of probcal on the same streams.

    probcal is checked after every update of 500 rows, so delays are whole updates for both.
    """
    yield "| drift | calibrant, e-detector | probcal |"
    yield "|---|---|---|"
    proba = load_labelled(folder / "kitti_1layernn_pycalib.npz")[1]
    rng, alarms = np.random.default_rng(14), {drift: [] for drift in (CALIBRATED, *DRIFTS)}
    for _ in range(runs):
        p = proba[rng.integers(0, len(proba), HORIZON)]
        quiet = draw(p[:QUIET], rng)
        state = after_quiet(quiet, p[:QUIET])
        for drift, delays in alarms.items():
            later = draw(DRIFTS.get(drift, lambda p: p)(p[QUIET:]), rng)
            ours = np.ceil(monitor_alarm(state, later, p[QUIET:]) / WINDOW) * WINDOW
            delays.append((ours, probcal_alarm(np.append(quiet, later), p)))
    for drift, delays in alarms.items():
        rows = np.array(delays).T
        cells = [shown(np.median(times), np.isinf(times).mean()) for times in rows]
        if drift == CALIBRATED:
            cells = [f"{np.isfinite(times).sum()} of {runs}" for times in rows]
        yield f"| {drift} | {' | '.join(cells)} |"


def probcal_alarm(y: Any, p: Any) -> float:
    """Return the rows from the end of the calibrated rows until probcal raises an alarm: 0 for an
    earlier alarm, NaN if probcal is not installed.
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
    """Point 2: measure the average run length."""
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
    """Point 4: test gaps of the confidence at 5% with a tolerance of 0.02."""
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
        delays = np.concatenate(
            [
                Streams.start(network, weights, LIMITS, rng).feed(truth, HORIZON, wanted=0)[0, 0]
                for _ in range(runs // TOGETHER)
            ]
        )
        middle, share = np.median(delays), np.isfinite(delays).mean()
        yield f"| {gap} | {len(delays):,} | {share:.3f} | {shown(middle, 0.0)} |"


def sequences(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 5: measure the coverage at all times of 20,000 rows, checked every 100 rows, and the
    width at 5,000 rows.
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
    """Point 6: measure false discoveries among fifty groups, ten of which are overconfident."""
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
    false, detected = np.mean(shares), np.mean(power)
    yield f"{runs} runs: share of false discoveries {false:.4f}, found {detected:.2f}"


def late(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 8: measure false alarms of a test at 5% with late labels and with dependent outcomes.

    There are 4,000 rows. Labels come late in an order that depends on the predictions. The outcomes
    of a window of rows depend on one random number, so each row is calibrated, but rows are far
    from independent.
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
        cells = " | ".join(f"{np.mean(is_alarm):.3f}" for is_alarm in (arrived, kept, broken))
        yield f"| {window:,} | {runs:,} | {cells} |"


def watch_late(most: int, rng: Any) -> bool:
    """Return whether calibrated rows with late labels raise an alarm. Labels of uncertain rows come
    last.
    """
    score = rng.uniform(0.55, 0.95, N_LATE)
    y = (rng.random(N_LATE) >= score).astype(int)
    delay = most * (1.0 - score) * rng.random(N_LATE)
    order = np.argsort(np.arange(N_LATE) + delay)
    monitor = CalibrationMonitor(tolerance=0.0, mode="test", classes=[0, 1])
    return monitor.update(y[order], np.column_stack([score, 1 - score])[order]).alarm


def watch_alike(window: int, lag: int, rng: Any) -> bool:
    """Return whether rows raise an alarm if one random number decides the outcomes of a window."""
    score = rng.uniform(0.55, 0.95, N_LATE)
    shared = np.repeat(rng.random(N_LATE // window), window)
    options = {"tolerance": 0.0, "mode": "test", "notions": ["confidence"], "lag": lag}
    monitor = CalibrationMonitor(classes=[0, 1], **options)
    p = np.column_stack([score, 1 - score])
    return monitor.update((shared >= score).astype(int), p).alarm


def score_drift(folder: Path, runs: int, networks: tuple[str, ...]) -> Iterator[str]:
    """Point 10: measure false alarms and delays of `ScoreDrift`."""
    yield (
        "| reference rows | calibrated: alarmed in 20,000 rows | a class twice as frequent: rows |"
    )
    yield "|---|---|---|"
    proba, rng = load(folder, networks[0]), np.random.default_rng(6)
    likely = proba[:, 0] + 0.0
    weight = (1 + likely) / (1 + likely).sum()  # twice the predicted frequency of the first class
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
    """Point 9: estimate the accuracy without labels under four shifts, with real labels."""
    yield "| how the target rows were drawn | reference accuracy | estimate | interval holds |"
    yield "|---|---|---|---|"
    files = sorted(f for f in folder.glob("*.npz") if not f.name.startswith(LEFT_OUT))
    results: dict[str, list[tuple[float, float, bool]]] = {}
    for file in files:
        for seed in range(runs):
            for shift, errors in shifted_errors(file, seed):
                results.setdefault(shift, []).append(errors)
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
        estimate = estimate_performance((y[ref], p[ref]), p[rows], n_resamples=20, rng=seed)
        plain = abs(estimate.reference_accuracy - truth)
        yield shift, (plain, abs(estimate.accuracy - truth), estimate.low <= truth <= estimate.high)


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
    """Point 11: measure rows per second of CPU time, with one thread, and the size of the state."""
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
    parser.add_argument("--runs", type=int, help="number of runs (default: a number per table)")
    parser.add_argument("--networks", nargs="*", default=NETWORKS)
    parser.add_argument("--write", type=Path, help="page to write the tables into")
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
