"""Measure the calibration of the confidence after `AutoCalibration`, and its cost in log-loss.

    python benchmarks/top_probability.py --data ../shared/data \
        --output benchmarks/records/top-probability.md

For each file with 5,000 calibration rows, the script computes the debiased confidence error of the
test rows (15 quantile bins, L2). It compares the automatic choice with its stack alone and with
three methods designed for the confidence. It also compares the log-loss of the automatic choice
with that of its stack. The first draw takes the calibration rows of the file. Further ``--draws``
split all rows of the file at random, and means are over all draws. Standard errors come from 200
resamples of the rows of the file, which all methods and draws share.

The results of each file and draw are stored in ``--results``, so an interrupted run continues. The
script ends with exit code 1 if a criterion is not met.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant import (
    AutoCalibration,
    HistogramBinning,
    MulticlassToBinary,
    SplineCalibration,
    TemperatureScaling,
)
from calibrant.metrics import expected_calibration_error, log_loss
from prediction_files import LEFT_OUT, MIN_TEST_ROWS, Rows, load

N_ROWS, N_RESAMPLES = 5000, 200
MOST_TIMES, MOST_LOST = 1.2, 0.001
OURS, STACK = "auto", "its stack alone"
METHODS = (OURS, STACK, "temperature", "confidence spline", "top-label binning")


class Evaluation(NamedTuple):
    """Confidences, whether the predictions are correct, and the log-loss."""

    confidence: Any
    is_right: Any
    loss: float


def rivals() -> dict[str, Any]:
    return dict(
        zip(
            METHODS[2:],
            (
                TemperatureScaling(),
                MulticlassToBinary(SplineCalibration(), notion="confidence"),
                MulticlassToBinary(HistogramBinning(), notion="top-label"),
            ),
            strict=True,
        )
    )


class Drawn(NamedTuple):
    """Calibration rows and test rows, and the indices of the test rows in the file."""

    kind: str
    fit: Rows
    test_rows: Rows
    row: Any


def drawn(path: Path, draw: int) -> Drawn | None:
    """Return the rows of a draw, or None if the file is too small."""
    kind, pool, test = load(path)
    n_rows = min(N_ROWS, len(pool.labels) - (0 if test else MIN_TEST_ROWS))
    if n_rows < MIN_TEST_ROWS:
        return None
    n_pool = len(pool.labels)
    every = Rows(*map(np.concatenate, zip(pool, test, strict=True))) if test else pool
    is_random = draw > 0 or not test  # always if the file has no test rows
    order = np.random.default_rng(draw).permutation(len(every.labels) if is_random else n_pool)
    fit = order[:n_rows]
    test_rows = order[n_rows:] if is_random else np.arange(n_pool, len(every.labels))
    return Drawn(
        kind, *(Rows(every.scores[r], every.labels[r]) for r in (fit, test_rows)), test_rows
    )


def evaluated(proba: Any, labels: Any) -> Evaluation:
    return Evaluation(proba.max(axis=1), proba.argmax(axis=1) == labels, log_loss(labels, proba))


def evaluate_confidence(fitted: MulticlassToBinary, test_rows: Rows) -> Evaluation:
    """Evaluate a calibrator of the binary problem that the predicted class is correct."""
    labels, confidence = fitted.predict_top(test_rows.scores)
    loss = log_loss(test_rows.labels, fitted.predict_proba(test_rows.scores))
    return Evaluation(confidence, labels == test_rows.labels, loss)


def error(of: Evaluation, rows: Any = slice(None)) -> float:
    return float(
        expected_calibration_error(
            of.is_right[rows].astype(int),
            of.confidence[rows],
            notion="class-1",
            norm=2,
            debias=True,
            strategy="quantile",
        )
    )


class Draw(NamedTuple):
    """One draw of a file: the results of every method on the test rows."""

    row: Any
    n_classes: int
    n_fit: int
    is_corrected: bool
    by_method: dict[str, Evaluation]

    def errors(self, counts: Any = None) -> dict[str, float]:
        """Return the errors by method. ``counts`` repeats the rows of the file."""
        rows = slice(None) if counts is None else np.repeat(np.arange(len(self.row)), counts)
        return {name: error(of, rows) for name, of in self.by_method.items()}

    @property
    def lost(self) -> float:
        return self.by_method[OURS].loss - self.by_method[STACK].loss


def figures(path: Path, draw: int) -> Draw | None:
    parts = drawn(path, draw)
    if parts is None:
        return None
    kind, fit, test_rows, row = parts
    auto = AutoCalibration(inputs=kind).fit(fit.scores, fit.labels)
    kept, auto.top_ = auto.top_, None
    alone = evaluated(auto.predict_proba(test_rows.scores), test_rows.labels)
    auto.top_ = kept
    results = {
        OURS: evaluated(auto.predict_proba(test_rows.scores), test_rows.labels),
        STACK: alone,
    }
    for name, method in rivals().items():
        fitted = method.set_params(inputs=kind).fit(fit.scores, fit.labels)
        results[name] = (
            evaluate_confidence(fitted, test_rows)
            if isinstance(fitted, MulticlassToBinary)
            else evaluated(fitted.predict_proba(test_rows.scores), test_rows.labels)
        )
    return Draw(row, int(fit.scores.shape[1]), len(fit.labels), kept is not None, results)


def keep(path: Path, draw: Draw | None) -> None:
    """Store a draw. An empty archive means that the prediction file is too small."""
    arrays: dict[str, Any] = {}
    if draw is not None:
        arrays = {"row": draw.row, "about": [draw.n_classes, draw.n_fit, draw.is_corrected]}
        for name, of in draw.by_method.items():
            arrays |= {f"{name}/{field}": value for field, value in of._asdict().items()}
    np.savez_compressed(path, **arrays)


def kept_draw(path: Path) -> Draw | None:
    with np.load(path, allow_pickle=False) as file:
        if not file.files:
            return None
        n_classes, n_fit, is_corrected = file["about"].tolist()
        by_method = {
            name: Evaluation(
                file[f"{name}/confidence"],
                file[f"{name}/is_right"].astype(bool),
                float(file[f"{name}/loss"]),
            )
            for name in METHODS
        }
        return Draw(file["row"], n_classes, n_fit, bool(is_corrected), by_method)


class Means(NamedTuple):
    """Means over the draws of a file.

    ``over`` is our error minus 1.2 times that of the best of the three methods, and ``spread`` is
    its standard error. ``corrected`` is the share of draws with a correction of the confidence.
    ``lost`` is the log-loss above that of the stack.
    """

    errors: dict[str, float]
    over: float
    spread: float
    corrected: float
    lost: float

    @property
    def is_above(self) -> bool:
        """Return whether the excess is significant."""
        return self.over > 2 * self.spread

    @property
    def times(self) -> float:
        best = min(self.errors[name] for name in rivals())
        return self.errors[OURS] / best if best else float(self.errors[OURS] > 0) * np.inf


def mean_errors(draws: list[Draw], counts: Any = None) -> dict[str, float]:
    errors = [draw.errors(None if counts is None else counts[draw.row]) for draw in draws]
    return {name: float(np.mean([results[name] for results in errors])) for name in METHODS}


def means(draws: list[Draw]) -> Means:
    """Return the means over draws.

    The best of the three methods is chosen once, by all rows of all draws. Standard errors come
    from resampled rows of the file, which all methods and draws share. The calibrators are not
    fitted again.
    """
    errors = mean_errors(draws)
    best = min(rivals(), key=lambda name: errors[name])
    n_rows = 1 + max(int(draw.row.max()) for draw in draws)
    rng = np.random.default_rng(0)
    values = []
    for _ in range(N_RESAMPLES):
        again = mean_errors(draws, np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows))
        values.append(again[OURS] - MOST_TIMES * again[best])
    return Means(
        errors,
        errors[OURS] - MOST_TIMES * errors[best],
        float(np.std(values)),
        float(np.mean([draw.is_corrected for draw in draws])),
        float(np.mean([draw.lost for draw in draws])),
    )


def run(options: argparse.Namespace) -> dict[str, list[Draw]]:
    """Return all draws by file. The first draw has the split of the file."""
    done: dict[str, list[Draw]] = {}
    paths = [p for p in sorted(options.data.glob("*.npz")) if not p.name.startswith(LEFT_OUT)]
    for path, draw in product(paths, range(options.draws + 1)):
        kept = options.results / f"{path.stem}--{draw}.npz"
        if not kept.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                keep(kept, figures(path, draw))
            print(kept.stem, file=sys.stderr, flush=True)
        results = kept_draw(kept)
        if results is not None:
            done.setdefault(path.stem, []).append(results)
    return done


def table(results: dict[str, Means], more: dict[str, Callable[[str, Means], str]]) -> Iterator[str]:
    """Yield the rows of a table with the errors of files and with further columns."""
    header = [*METHODS, f"ours - {MOST_TIMES} x best (standard error)", "above the stack", *more]
    yield f"| file | {' | '.join(header)} |"
    yield "| --- " + "| ---: " * len(header) + "|"
    for file, mean in results.items():
        errors = " | ".join(f"{mean.errors[name]:.4f}" for name in METHODS)
        others = "".join(f" {cell(file, mean)} |" for cell in more.values())
        yield (
            f"| {file} | {errors} | {mean.over:+.4f} ({mean.spread:.4f}) | {mean.lost:+.4f} |"
            + others
        )


def failures(results: dict[str, Means]) -> list[str]:
    """List the files that do not meet the criterion."""
    lines = [
        f"{file}: confidence error {mean.errors[OURS]:.4f}, {mean.over:+.4f} above"
        for file, mean in results.items()
        if mean.is_above
    ]
    return lines + [
        f"{file}: log-loss {mean.lost:+.4f} above that of the stack"
        for file, mean in results.items()
        if mean.lost > MOST_LOST
    ]


def verdict(results: dict[str, Means]) -> str:
    failed = failures(results)
    n_within = sum(mean.over <= 0 for mean in results.values())
    return (
        f"In {n_within} of {len(results)} files, the error is at most {MOST_TIMES} times that of "
        "the best of the three methods. "
        f"Files that fail a condition: {'; '.join(failed) or 'none'}."
    )


def report(first: dict[str, Means], averaged: dict[str, Means], draws: dict[str, Any]) -> str:
    n_draws = len(next(iter(draws.values())))
    totals = {
        name: float(np.mean([mean.errors[name] for mean in averaged.values()])) for name in METHODS
    }
    return "\n".join(
        [
            "# Calibration of the confidence",
            "",
            f"The table shows debiased confidence errors on {len(first)} files of real "
            f"predictions, calibrated on {N_ROWS:,} rows or all available rows. It compares the "
            "automatic choice with methods designed for the confidence. The log-loss of the "
            "automatic choice is shown relative to its stack alone. "
            "`benchmarks/top_probability.py` writes this page.",
            "",
            "The best of the three methods is chosen on the test rows of each file. With a few "
            "thousand rows, an error of 0.01 is mostly sampling noise. Two conditions must "
            f"therefore hold for every file. The error exceeds {MOST_TIMES} times the best by at "
            "most two standard errors, and the log-loss exceeds that of the stack by at most "
            f"{MOST_LOST}. With these standard errors, an excess of several hundredths can remain "
            "undetected.",
            "",
            *table(
                first,
                {
                    "classes": lambda file, _: f"{draws[file][0].n_classes:,}",
                    "rows": lambda file, _: f"{draws[file][0].n_fit:,}",
                    "corrected": lambda _, mean: "yes" if mean.corrected else "no",
                },
            ),
            "",
            verdict(first),
            "",
            "## Averaged over draws",
            "",
            f"Means over {n_draws} draws reduce sampling noise. All draws but the first split the "
            "rows of the file at random. Draws share rows, so the standard errors come from "
            "resampled rows of the file, which all draws share. They do not include the variation "
            "of the fits.",
            "",
            *table(
                averaged,
                {
                    "ours / best": lambda _, mean: f"{mean.times:.2f}",
                    "corrected": lambda _, mean: f"{mean.corrected:.0%}",
                },
            ),
            "",
            f"{verdict(averaged)} Mean error over the files: "
            + ", ".join(f"{name} {total:.4f}" for name, total in totals.items())
            + ".",
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("top-probability-results"))
    parser.add_argument("--output", type=Path, help="page to write")
    parser.add_argument(
        "--draws",
        type=int,
        default=10,
        help="number of random splits in addition to the split of the file",
    )
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    draws = run(options)
    first = {file: means(values[:1]) for file, values in draws.items()}
    averaged = {file: means(values) for file, values in draws.items()}
    text = report(first, averaged, draws)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if failures(first) or failures(averaged) else 0


if __name__ == "__main__":
    sys.exit(main())
