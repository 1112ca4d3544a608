"""Simulate error rates that the documentation states.

    OMP_NUM_THREADS=1 python benchmarks/statements.py --output benchmarks/records/statements.md
    python benchmarks/statements.py --quick

The statements are about tests, intervals, bands, bounds and alarms. All models are calibrated
unless a row says otherwise, so a rejection, a miss or an alarm is an error. One process takes about
ten minutes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

import _one_thread  # noqa: F401
from calibrant import TemperatureScaling, evaluate, inference
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.monitoring import CalibrationMonitor, OnlineCalibration
from calibrant.report import summarize

LEVEL = 0.05
SEED = 20

PAGE = """# Simulated statements

This page compares error rates that the documentation states with simulated ones.
`benchmarks/statements.py` writes it. Models are calibrated unless a row says otherwise, so every
rejection, miss or alarm is an error. A statement holds here if the observed rate is at most the
stated one plus three standard errors. Rows without a stated rate show power.

"""


class Row(NamedTuple):
    """A statement, the simulated setting, the outcome of each run, and the stated error rate."""

    statement: str
    setting: str
    errors: list[bool]
    stated: float | None

    def cells(self) -> list[str]:
        runs, rate = len(self.errors), float(np.mean(self.errors))
        assumed = rate if self.stated is None else self.stated
        error = np.sqrt(assumed * (1 - assumed) / runs)
        numbers = [f"{runs}", f"{rate:.3f}", f"{error:.3f}"]
        if self.stated is None:
            return [*numbers, "-", "-"]
        holds = "yes" if rate <= self.stated + 3 * error else "no"
        return [*numbers, f"at most {self.stated:g}", holds]

    def line(self) -> str:
        return f"| {' | '.join([self.statement, self.setting, *self.cells()])} |"


def draw(proba: Any, rng: np.random.Generator) -> Any:
    """Labels from rows of probabilities."""
    places = (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1)
    return np.minimum(places, proba.shape[1] - 1)


def normal_rows(rng: np.random.Generator, n_rows: int, n_classes: int, scale: float = 2.0) -> Any:
    return softmax(scale * rng.normal(size=(n_rows, n_classes)), axis=1)


WEIGHTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "none": lambda rng, n: None,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "1 / propensity (0.05, 0.5)": lambda rng, n: rng.choice([2.0, 20.0], n),
    "lognormal, sd 1": lambda rng, n: rng.lognormal(0, 1, n),
    "lognormal, sd 1.5": lambda rng, n: rng.lognormal(0, 1.5, n),
}


def weighted_groups(runs: int) -> Iterator[Row]:
    for name, weights in WEIGHTS.items():
        rng, missed = np.random.default_rng(SEED), []
        for _ in range(runs):
            proba = normal_rows(rng, 1000, 3)
            result = evaluate(
                draw(proba, rng), proba, by=np.arange(1000) % 5, sample_weight=weights(rng, 1000)
            )
            missed.append(len(result.miscalibrated) > 0)
        yield Row("`evaluate(by=)`: intervals of 5 groups hold together", name, missed, LEVEL)


def excludes(interval: Any, value: float) -> bool:
    return not interval.low <= value <= interval.high


def line_test(y: Any, p: Any, w: Any) -> Any:
    return inference.calibration_line(y, p, sample_weight=w)


WEIGHTED: dict[str, Callable[[Any, Any, Any], bool]] = {
    "slope and intercept test": lambda y, p, w: line_test(y, p, w).test.p_value < LEVEL,
    "interval of the slope": lambda y, p, w: excludes(line_test(y, p, w).slope, 1.0),
    "interval of the intercept": lambda y, p, w: excludes(line_test(y, p, w).intercept, 0.0),
    **{
        function.__name__: lambda y, p, w, f=function: f(y, p, sample_weight=w).p_value < LEVEL
        for function in (
            inference.spiegelhalter_test,
            inference.ks_test,
            inference.kuiper_test,
            inference.hosmer_lemeshow_test,
            inference.mean_test,
        )
    },
    "`debiased_interval` excludes 0": lambda y, p, w: (
        inference.debiased_interval(y, p, sample_weight=w).low > 0
    ),
    "interval of confidence minus accuracy": lambda y, p, w: excludes(confidence_gap(y, p, w), 0.0),
}


def weighted_tests(runs: int) -> Iterator[Row]:
    for name in ("none", "1 / propensity (0.05, 0.5)", "lognormal, sd 1"):
        rng = np.random.default_rng(SEED)
        errors: dict[str, list[bool]] = {test: [] for test in WEIGHTED}
        for _ in range(runs):
            proba = normal_rows(rng, 500, 3)
            y, weight = draw(proba, rng), WEIGHTS[name](rng, 500)
            for test, function in WEIGHTED.items():
                errors[test].append(bool(function(y, proba, weight)))
        for test, result in errors.items():
            yield Row(test, f"500 rows, weights: {name}", result, LEVEL)


def weighted_consistency(runs: int) -> Iterator[Row]:
    for scale in (1.0, 1.0001):
        rng, errors = np.random.default_rng(SEED), []
        for seed in range(runs):
            proba = normal_rows(rng, 300, 3)
            y, weight = draw(proba, rng), scale * rng.choice([2, 20], 300)
            test = inference.consistency_test(
                y, proba, "conf_ece", 99, rng=seed, sample_weight=weight
            )
            errors.append(test.p_value <= LEVEL)
        yield Row("`consistency_test`", f"300 rows, weights 2 and 20, times {scale}", errors, LEVEL)


def weighted_gain(runs: int) -> Iterator[Row]:
    rng, errors = np.random.default_rng(SEED), []
    for seed in range(runs):
        proba = normal_rows(rng, 300, 3)
        gain = inference.calibration_gain(
            draw(proba, rng),
            proba,
            TemperatureScaling(),
            sample_weight=rng.lognormal(0, 1, 300),
            rng=seed,
        )
        errors.append(gain.low > 0)
    yield Row("`calibration_gain` above 0", "300 rows, weights: lognormal, sd 1", errors, LEVEL)


SMALL = {
    "confidence 0.997, 50 rows": (50, 2, lambda rng: np.full((50, 2), [0.997, 0.003])),
    "probability near 0.01, 50 rows": (50, 2, lambda rng: beta_rows(rng, 50, 0.01)),
    "class-wise, 100 classes, 200 rows": (200, 100, lambda rng: normal_rows(rng, 200, 100)),
    "class-wise, 100 classes, 1,000 rows": (1000, 100, lambda rng: normal_rows(rng, 1000, 100, 1)),
}


def beta_rows(rng: np.random.Generator, n_rows: int, mean: float) -> Any:
    score = rng.beta(2, 2 / mean - 2, n_rows)
    return np.column_stack([1 - score, score])


def small_counts(runs: int) -> Iterator[Row]:
    tests = (inference.ks_test, inference.kuiper_test, inference.spiegelhalter_test)
    for name, (_, n_classes, make) in SMALL.items():
        rng, errors = np.random.default_rng(SEED), {test.__name__: [] for test in tests}
        for _ in range(5 * runs if n_classes == 2 else runs // 4):
            proba = make(rng)
            y = draw(proba, rng)
            for test in tests:
                notion = "class-1" if n_classes == 2 else "class-wise"
                result = test(y, proba, notion=notion, classes=range(n_classes))
                errors[test.__name__].append(result.p_value <= LEVEL)
        for test_name, result in errors.items():
            yield Row(f"`{test_name}`", name, result, LEVEL)


def cox(runs: int) -> Iterator[Row]:
    for rate, stated in ((None, LEVEL), (0.97, None)):
        rng, errors = np.random.default_rng(SEED), []
        for _ in range(runs):
            score = rng.uniform(0.7, 0.9, 30)
            y = (rng.random(30) < (score if rate is None else rate)).astype(int)
            line = inference.calibration_line(y, score, notion="class-1")
            errors.append(line.test.p_value <= LEVEL)
        truth = "calibrated" if rate is None else "correct in 0.97: power"
        yield Row("Cox's test", f"30 rows, probability 0.7 to 0.9, {truth}", errors, stated)


def bands(runs: int) -> Iterator[Row]:
    grid = np.linspace(0.001, 0.999, 500)
    for n_rows in (50, 200, 1000, 5000):
        rng, errors = np.random.default_rng(SEED), []
        for _ in range(runs):
            score = rng.random(n_rows)
            y = (rng.random(n_rows) < score**1.5).astype(int)
            low, high = inference.calibration_band(y, score, notion="class-1")(grid)
            errors.append(bool((low > grid**1.5).any() or (high < grid**1.5).any()))
        yield Row("`calibration_band` holds the curve s^1.5", f"{n_rows:,} rows", errors, LEVEL)


def issued(runs: int) -> Iterator[Row]:
    streams = {
        "temperature 1 and 2 in turn": lambda rng, b: np.full(3, 1.0 / (1, 2)[b % 2]),
        "random temperature per batch": lambda rng, b: np.full(3, np.exp(rng.normal(0, 0.5))),
        "odds reversed in every other batch": lambda rng, b: np.full(3, (1.0, -1.0)[b % 2]),
    }
    for name, power in streams.items():
        for size in (50, 1000):
            rng, beyond, misreported = np.random.default_rng(SEED), [], []
            for _ in range(runs):
                online, loss = OnlineCalibration(classes=range(3)), 0.0
                for batch in range(20):
                    proba = normal_rows(rng, size, 3)
                    y = draw(softmax(power(rng, batch) * np.log(proba), axis=1), rng)
                    forecast = online.predict_proba(proba)
                    loss -= np.log(forecast[np.arange(size), y]).sum()
                    online.partial_fit(proba, y)
                beyond.append(-online.saved_ > online.bound_)
                misreported.append(abs(online.log_loss_ - loss) > 1e-6 * loss)
            setting = f"20 batches of {size:,} rows, {name}"
            yield Row(
                "`OnlineCalibration`: issued forecasts within the bound", setting, beyond, 0.0
            )
            yield Row("`log_loss_` is that of issued forecasts", setting, misreported, 0.0)


def rare_class(rng: np.random.Generator, accuracy: float) -> Any:
    """1,000 calibrated rows, 20 of which are predicted as a third class with 0.9."""
    score = rng.uniform(0.5, 1, 1000)
    proba = np.column_stack([score, 1 - score, np.zeros(1000)])
    proba[:20] = [0.05, 0.05, 0.9]
    y = draw(proba, rng)
    y[:20] = np.where(rng.random(20) < accuracy, 2, rng.integers(0, 2, 20))
    return y, proba


def reports(runs: int) -> Iterator[Row]:
    for accuracy, stated in ((0.9, LEVEL), (0.4, None), (0.2, None)):
        rng, detected = np.random.default_rng(SEED), []
        for _ in range(runs):
            y, proba = rare_class(rng, accuracy)
            report = summarize(y, proba, calibrator=TemperatureScaling(), n_resamples=199)
            detected.append(min(test.p_holm_before for test in report.tests) < LEVEL)
        truth = "calibrated" if stated else f"correct in {accuracy}: power"
        setting = f"1,000 rows, 20 predicted as a rare class with 0.9, {truth}"
        yield Row("Report: tests before calibration, adjusted", setting, detected, stated)


def monitors(runs: int) -> Iterator[Row]:
    early, late, rare = [], [], []
    rng = np.random.default_rng(SEED)
    for _ in range(runs):
        monitor = CalibrationMonitor(horizon=1000, classes=range(2), tolerance=0.0)
        for period in range(20):
            proba = normal_rows(rng, 1000, 2)
            monitor.update(draw(proba, rng), proba)
            if period == 0:
                early.append(monitor.alarm)
        late.append(monitor.alarm)
        proba = np.repeat([[0.99, 0.01]], 10_000, axis=0)
        strict = CalibrationMonitor(
            mode="test", classes=range(2), notions=["class-wise"], relative_tolerance=0.5
        )
        rare.append(strict.update((rng.random(10_000) < 0.015).astype(int), proba).alarm)
    yield Row("Detector: false alarm within the horizon", "horizon 1,000 rows", early, LEVEL)
    yield Row("Detector: false alarm within 20 horizons (no bound below 1)", "the same", late, None)
    setting = "probability 0.01, true 0.015, 10,000 rows"
    yield Row("Test with `relative_tolerance=0.5`: alarm", setting, rare, LEVEL)


SIMULATIONS = (
    (weighted_groups, 200),
    (weighted_tests, 80),
    (weighted_consistency, 100),
    (weighted_gain, 60),
    (small_counts, 200),
    (cox, 400),
    (bands, 200),
    (issued, 5),
    (reports, 20),
    (monitors, 40),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="page to write (default: print it)")
    parser.add_argument("--only", nargs="*", help="names of simulations")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    head = "| statement | setting | runs | observed | standard error | stated | holds |"
    lines = [head, "|---|---|---:|---:|---:|---|---|"]
    print(*lines, sep="\n")
    for simulate, runs in SIMULATIONS:
        if arguments.only and simulate.__name__ not in arguments.only:
            continue
        for row in simulate(max(4, runs // 10) if arguments.quick else runs):
            lines.append(row.line())
            print(lines[-1], flush=True)
    if arguments.output:
        arguments.output.write_text(PAGE + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
