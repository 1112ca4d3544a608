"""Measure answered rows, exceeded risks, batches, sets, costs and time of decisions.

    python benchmarks/selective.py FOLDER            # files of predictions; writes the CSV file
    python benchmarks/selective.py FOLDER --draws 100 --parts hard batch

Samples are drawn with replacement from a file, so the file is the population and its risk is known.
A temperature is fitted on rows that are not in the population. The hard shapes are simulated: rates
of errors chosen to exceed the risk as often as possible. Results: `results/selective.csv`.
"""

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

import _one_thread  # noqa: F401  # before NumPy is imported
import prediction_files
from calibrant import TemperatureScaling
from calibrant.decisions import PredictionSets, select_answers
from calibrant.decisions._boundary import boundary_of
from calibrant.decisions._proof import count_proved
from calibrant.decisions._threshold import find_threshold
from calibrant.inference import decision_gain
from calibrant.monitoring import RiskMonitor

RESULTS = Path(__file__).parent / "results" / "selective.csv"
DELTA = 0.1
SIZES = (200, 500, 1000, 3000)
RISKS = (0.01, 0.02, 0.05, 0.10)
FILES = {
    "C10 RN50": "cifar10_resnet50_gupta",
    "C100 RN50": "cifar100_resnet50_gupta",
    "C100 WRN": "cifar100_wideresnet164_netcal",
    "LLM emotion": "llm_emotion_mistral-7b-v0.1-task-icl1",
    "TinyImageNet": "tinyimagenet202_effnetlite0",
    "20news": "20news_cleanlab",
    "KITTI forest": "kitti_randomforest_pycalib",
}
EXPECTED = {  # share answered at the four sizes
    ("C10 RN50", 0.01): (0.0, 0.282, 0.444, 0.696),
    ("C10 RN50", 0.02): (0.471, 0.704, 0.821, 0.875),
    ("C10 RN50", 0.05): (0.901, 0.960, 0.975, 0.988),
    ("C100 RN50", 0.05): (0.068, 0.097, 0.162, 0.325),
    ("C100 RN50", 0.10): (0.444, 0.615, 0.666, 0.698),
    ("C100 WRN", 0.05): (0.163, 0.329, 0.429, 0.497),
    ("LLM emotion", 0.10): (0.035, 0.084, 0.133, 0.226),
    ("TinyImageNet", 0.10): (0.044, 0.152, 0.188, 0.226),
    ("20news", 0.02): (0.273, 0.525, 0.660, 0.763),
    ("20news", 0.05): (0.789, 0.888, 0.915, 0.935),
    ("KITTI forest", 0.02): (0.359, 0.690, 0.810, 0.904),
}
HARD_CASES = ((200, 0.1), (500, 0.05), (1000, 0.05), (3000, 0.02))
COLUMNS = ("part", "name", "n", "risk", "value", "expected", "violations", "draws")


def probabilities(folder: Path, stem: str):
    """Probabilities and labels of a file, after a temperature fitted on other rows."""
    inputs, fitted, rest = prediction_files.load(folder / f"{stem}.npz")
    if rest is None:
        n = len(fitted.labels)
        order = np.random.default_rng(0).permutation(n)
        first = min(2000, n // 4)
        fitted, rest = (
            prediction_files.Rows(fitted.scores[rows], fitted.labels[rows])
            for rows in (order[:first], order[first:])
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TemperatureScaling(inputs=inputs).fit(fitted.scores, fitted.labels)
        proba = model.predict_proba(rest.scores).astype(np.float64)
    return proba / proba.sum(axis=1, keepdims=True), rest.labels


def population(folder: Path, stem: str):
    """Confidences and errors of a file."""
    proba, labels = probabilities(folder, stem)
    return proba.max(axis=1), proba.argmax(axis=1) != labels


def file_cells(folder: Path, n_draws: int):
    for name, stem in FILES.items():
        scores, errors = population(folder, stem)
        ordered = np.sort(scores)
        order = np.argsort(scores, kind="stable")
        tail = np.r_[np.cumsum(errors[order][::-1])[::-1], 0]  # errors at or above each rank
        for risk in RISKS:
            for n in SIZES:
                rng = np.random.default_rng(n)
                answered, n_above = 0.0, 0
                for _ in range(n_draws):
                    rows = rng.integers(len(scores), size=n)
                    threshold = find_threshold(
                        scores[rows], errors[rows].astype(float), risk, DELTA, rng
                    )
                    below = np.searchsorted(ordered, threshold.value, side="right")
                    count = len(scores) - below
                    answered += count / len(scores)
                    n_above += count > 0 and tail[below] > risk * count
                expected = dict(zip(SIZES, EXPECTED.get((name, risk), ()), strict=False)).get(n, "")
                yield (
                    "file",
                    name,
                    n,
                    risk,
                    answered / n_draws,
                    expected,
                    n_above / n_draws,
                    n_draws,
                )


def _three_scales(u, risk):
    """Return error rates for which the risk is exceeded at three separate coverages."""
    rate = np.zeros(len(u))
    for low, high in ((0.02, 0.05), (0.15, 0.3), (0.6, 1.0)):
        # Add enough errors between low and high, so that the mean at high is just above the risk.
        before = _mean_rate(rate, u, low)
        needed = (1.001 * risk * high - before * low) / (high - low)
        rate = np.where((u >= low) & (u < high), needed, rate)
    return rate


def _mean_rate(rate, u, high):
    inside = u < high
    return rate[inside].mean() if inside.any() else 0.0


def shapes(risk):
    """Return error rates by rank (0 has the highest confidence) on a fine grid of ranks."""
    u = (np.arange(200_000) + 0.5) / 200_000
    return {
        "constant": np.full(len(u), risk * (1 + 1e-9)),
        "none, then above at half": np.where(
            u < 0.25, 0.0, np.where(u < 0.5, 2.0 * risk * 1.001, risk)
        ),
        "linear, slightly above": 2 * (risk + 0.001) * u,
        "above at three scales": _three_scales(u, risk),
    }


def hard_cells(n_draws: int):
    for n, risk in HARD_CASES:
        for name, rate in shapes(risk).items():
            mean = np.cumsum(rate) / np.arange(1, len(rate) + 1)
            rng = np.random.default_rng(n)
            n_above, answered, is_end = 0, 0, np.ones(n, bool)
            for _ in range(n_draws):
                place = np.sort(rng.random(n))
                errors = rng.random(n) < rate[(place * len(rate)).astype(int)]
                count = count_proved(errors, is_end, risk, DELTA)
                answered += count / n
                if count:
                    following = place[count] if count < n else 1.0
                    at = (place[count - 1] + following) / 2 if count < n else 1.0
                    n_above += mean[min(int(at * len(rate)), len(rate)) - 1] > risk
            limit = DELTA + 3 * np.sqrt(DELTA * (1 - DELTA) / n_draws)
            yield (
                "hard",
                name,
                n,
                risk,
                answered / n_draws,
                round(limit, 4),
                n_above / n_draws,
                n_draws,
            )


def time_cells():
    """Yield the CPU seconds of `find_threshold` for 100,000 rows. The limit is 2."""
    rng = np.random.default_rng(0)
    for risk in (0.001, 0.01, 0.05, 0.1, 0.3):
        n = 100_000
        scores = rng.random(n)
        losses = (rng.random(n) < np.clip(3.2 * risk * (1 - scores) ** 2, 0, 1)).astype(float)
        boundary_of.cache_clear()
        start = time.process_time()
        threshold = find_threshold(scores, losses, risk, DELTA, rng)
        seconds = time.process_time() - start
        yield ("seconds", f"answered {threshold.n_answered / n:.3f}", n, risk, seconds, 2.0, "", 1)


def batch_cells(n_draws: int):
    """Yield shares of wrong answers of `select_answers`. The limit adds 3 standard errors."""
    for shape in ("calibrated", "ties", "not monotone"):
        for risk in (0.02, 0.05, 0.1, 0.2):
            rng, shares, answered = np.random.default_rng(0), [], 0.0
            for _ in range(n_draws):
                proba, labels = _batch_rows(rng, 700, shape)
                chosen = select_answers(labels[:500], proba[:500], proba[500:], risk)
                wrong = (chosen.labels != labels[500:])[chosen.answered]
                shares.append(wrong.mean() if wrong.size else 0.0)
                answered += chosen.answered.mean() / n_draws
            limit = risk + 3 * np.std(shares) / np.sqrt(n_draws)
            yield ("batch", shape, 500, risk, answered, limit, float(np.mean(shares)), n_draws)


def _batch_rows(rng, n, shape):
    confidence = 0.5 + 0.5 * rng.beta(3, 1, size=n)
    if shape == "ties":
        confidence = np.round(confidence, 1)
    chance = confidence
    if shape == "not monotone":  # the most confident rows are not the best
        chance = np.where(confidence > 0.95, 0.9, np.where(confidence > 0.75, 0.995, 0.6))
    labels = (rng.random(n) < chance).astype(int)
    return np.column_stack([1 - confidence, confidence]), labels


def monitor_cells(n_draws: int):
    """Yield false alarms of `RiskMonitor` in 10,000 rows, and median rows until an alarm."""
    for rate, expected in ((0.05, 0.05), (0.075, 470), (0.1, 160), (0.15, 49)):
        rng, delays, monitor = np.random.default_rng(1), [], RiskMonitor(0.05)
        for _ in range(n_draws):
            # The evidence after every row; `update_losses` returns it after the last row only.
            factors = np.where(rng.random((10_000, 1)) < rate, monitor._gains, monitor._costs)
            evidence = np.logaddexp.reduce(np.cumsum(factors, axis=0), axis=1) - np.log(5)
            rows = np.flatnonzero(evidence >= monitor.threshold)
            delays.append(rows[0] + 1 if rows.size else np.inf)
        if rate == 0.05:
            value, name = float(np.mean(np.isfinite(delays))), "false alarms"
        else:
            value, name = float(np.median(delays)), f"median rows, true error rate {rate}"
        yield ("monitor", name, 10_000, 0.05, value, expected, "", n_draws)


def cost_cells(folder: Path):
    """Yield costs saved by a temperature. An error costs 5, and an abstention costs 1."""
    for name, expected in (("TinyImageNet", 0.37), ("LLM emotion", 0.026)):
        inputs, rows, _ = prediction_files.load(folder / f"{FILES[name]}.npz")
        order = np.random.default_rng(0).permutation(len(rows.labels))[:2000]
        n_classes = rows.scores.shape[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gain = decision_gain(
                rows.labels[order],
                rows.scores[order],
                5 * (1 - np.eye(n_classes)),
                TemperatureScaling(),
                abstain=1,
                inputs=inputs,
                rng=0,
            )
        text = f"{name}: {gain.before:.3f} to {gain.after:.3f}, {gain.low:.3f} to {gain.high:.3f}"
        yield ("cost", text, 2000, "", gain.gain, expected, "", 1)


SET_COVERAGE = {  # coverage and mean size: lac, randomized aps, aps
    "C10 RN50": ((0.902, 0.93), (0.902, 1.06), (0.949, 1.00)),
    "20news": ((0.900, 0.95), (0.900, 1.49), (0.927, 1.00)),
    "C100 RN50": ((0.900, 2.3), (0.900, 10.7), (0.899, 4.9)),
}


def set_cells(folder: Path, n_draws: int):
    """Coverage and mean size of prediction sets for 200 calibration rows and coverage 0.9."""
    kinds = ({"score": "lac"}, {"score": "aps", "randomize": True}, {"score": "aps"})
    for name, expected in SET_COVERAGE.items():
        proba, labels = probabilities(folder, FILES[name])
        for options, (coverage, size) in zip(kinds, expected, strict=True):
            held, sizes, rng = [], [], np.random.default_rng(0)
            for seed in range(n_draws):
                rows = rng.permutation(len(labels))
                model = PredictionSets(random_state=seed, **options)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    sets = model.fit(proba[rows[:200]], labels[rows[:200]]).predict_set(
                        proba[rows[200:]]
                    )
                held.append(sets[np.arange(len(sets)), labels[rows[200:]]].mean())
                sizes.append(sets.sum(axis=1).mean())
            kind = "randomized aps" if "randomize" in options else options["score"]
            yield ("coverage", f"{name}, {kind}", 200, 0.1, np.mean(held), coverage, "", n_draws)
            yield ("set size", f"{name}, {kind}", 200, 0.1, np.mean(sizes), size, "", n_draws)


PARTS = ("seconds", "hard", "file", "batch", "monitor", "cost", "sets")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--hard-draws", type=int, default=10_000)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    cells = {
        "seconds": lambda: time_cells(),
        "hard": lambda: hard_cells(options.hard_draws),
        "file": lambda: file_cells(options.folder, options.draws),
        "batch": lambda: batch_cells(min(options.draws, 600)),
        "monitor": lambda: monitor_cells(min(options.draws, 1000)),
        "cost": lambda: cost_cells(options.folder),
        "sets": lambda: set_cells(options.folder, min(options.draws, 300)),
    }
    new = [cell for part in options.parts for cell in cells[part]()]
    write(new)
    report(new)


def write(cells) -> None:
    """Replace the measured parts of the file and keep the others."""
    rows = [
        [f"{value:.4g}" if isinstance(value, float) else value for value in cell] for cell in cells
    ]
    measured = {row[0] for row in rows}
    kept = []
    if RESULTS.exists():
        with RESULTS.open(newline="", encoding="utf-8") as file:
            kept = [row for row in list(csv.reader(file))[1:] if row[0] not in measured]
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([COLUMNS, *kept, *rows])


def report(cells) -> None:
    known = [cell for cell in cells if cell[0] == "file" and cell[5] != ""]
    for _, name, n, risk, value, expected, above, _ in known:
        allowed = 0.02 if n == 200 else 0.01
        mark = "" if abs(value - expected) <= allowed and above <= 0.12 else "  <-- outside"
        print(f"{name:14} {risk:5} {n:5} {value:.3f} {expected:.3f} {above:.3f}{mark}")
    files = [cell for cell in cells if cell[0] == "file"]
    if files:
        print("largest share above the risk", max(cell[6] for cell in files))
    for cell in cells:
        if cell[0] in ("hard", "batch"):
            print(*cell, "" if cell[6] <= cell[5] else "  <-- outside")
        elif cell[0] != "file":
            print(*cell)


if __name__ == "__main__":
    main()
