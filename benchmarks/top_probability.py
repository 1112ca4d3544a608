"""Is the confidence of `AutoCalibration` calibrated, and what does that cost? On real predictions
with 5,000 calibration rows.

    python benchmarks/top_probability.py --data ../shared/data \\
        --output benchmarks/records/top-probability.md

For every file the debiased confidence error on the test rows (15 bins of equal mass, L2) after the
automatic choice, after its stack alone, and after three methods made for it; the log-loss of the
automatic choice against that of its stack alone. The first draw takes the rows to calibrate on as
the file has them; ``--draws`` others deal all rows of the file anew, and means are over all draws.
Standard errors are of 200 resamples of the rows of the file, drawn alike for all methods and draws.

Resumable: the claims of a file and a draw are a file in ``--results``. Ends with exit code 1 where
a criterion is not met.
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


class Judged(NamedTuple):
    """Top probabilities and whether they were right, and the log-loss."""

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
    """Rows to calibrate on and rows to judge, and which rows of the file the latter are."""

    kind: str
    fit: Rows
    judge: Rows
    row: Any


def drawn(path: Path, draw: int) -> Drawn | None:
    """None of a file that is too small."""
    kind, pool, test = load(path)
    n_rows = min(N_ROWS, len(pool.labels) - (0 if test else MIN_TEST_ROWS))
    if n_rows < MIN_TEST_ROWS:
        return None
    n_pool = len(pool.labels)
    every = Rows(*map(np.concatenate, zip(pool, test, strict=True))) if test else pool
    is_dealt = draw > 0 or not test  # anew, or there are no rows to judge by themselves
    order = np.random.default_rng(draw).permutation(len(every.labels) if is_dealt else n_pool)
    fit = order[:n_rows]
    judge = order[n_rows:] if is_dealt else np.arange(n_pool, len(every.labels))
    return Drawn(kind, *(Rows(every.scores[r], every.labels[r]) for r in (fit, judge)), judge)


def judged(proba: Any, labels: Any) -> Judged:
    return Judged(proba.max(axis=1), proba.argmax(axis=1) == labels, log_loss(labels, proba))


def judged_claim(fitted: MulticlassToBinary, judge: Rows) -> Judged:
    """A map that makes one claim a row, "this label is right"."""
    labels, confidence = fitted.predict_top(judge.scores)
    loss = log_loss(judge.labels, fitted.predict_proba(judge.scores))
    return Judged(confidence, labels == judge.labels, loss)


def error(of: Judged, rows: Any = slice(None)) -> float:
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
    """One draw of a file: what every method claimed of the judged rows, by row of the file."""

    row: Any
    n_classes: int
    n_fit: int
    is_corrected: bool
    by_method: dict[str, Judged]

    def errors(self, counts: Any = None) -> dict[str, float]:
        """Errors by method, where each row of the file counts so many times."""
        rows = slice(None) if counts is None else np.repeat(np.arange(len(self.row)), counts)
        return {name: error(of, rows) for name, of in self.by_method.items()}

    @property
    def lost(self) -> float:
        return self.by_method[OURS].loss - self.by_method[STACK].loss


def figures(path: Path, draw: int) -> Draw | None:
    found = drawn(path, draw)
    if found is None:
        return None
    kind, fit, judge, row = found
    auto = AutoCalibration(inputs=kind).fit(fit.scores, fit.labels)
    kept, auto.top_ = auto.top_, None
    alone = judged(auto.predict_proba(judge.scores), judge.labels)
    auto.top_ = kept
    results = {OURS: judged(auto.predict_proba(judge.scores), judge.labels), STACK: alone}
    for name, method in rivals().items():
        fitted = method.set_params(inputs=kind).fit(fit.scores, fit.labels)
        results[name] = (
            judged_claim(fitted, judge)
            if isinstance(fitted, MulticlassToBinary)
            else judged(fitted.predict_proba(judge.scores), judge.labels)
        )
    return Draw(row, int(fit.scores.shape[1]), len(fit.labels), kept is not None, results)


def keep(path: Path, draw: Draw | None) -> None:
    """An empty file says that the file of predictions is too small."""
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
            name: Judged(
                file[f"{name}/confidence"],
                file[f"{name}/is_right"].astype(bool),
                float(file[f"{name}/loss"]),
            )
            for name in METHODS
        }
        return Draw(file["row"], n_classes, n_fit, bool(is_corrected), by_method)


class Means(NamedTuple):
    """Over draws of a file: errors by method, ours minus 1.2 times that of the best of the three
    with its standard error, the share of draws that were corrected, and the log-loss above that of
    the stack."""

    errors: dict[str, float]
    over: float
    spread: float
    corrected: float
    lost: float

    @property
    def is_above(self) -> bool:
        """By more than chance."""
        return self.over > 2 * self.spread

    @property
    def times(self) -> float:
        best = min(self.errors[name] for name in rivals())
        return self.errors[OURS] / best if best else float(self.errors[OURS] > 0) * np.inf


def mean_errors(draws: list[Draw], counts: Any = None) -> dict[str, float]:
    errors = [draw.errors(None if counts is None else counts[draw.row]) for draw in draws]
    return {name: float(np.mean([found[name] for found in errors])) for name in METHODS}


def means(draws: list[Draw]) -> Means:
    """The best of the three is one for all draws, chosen by all rows. Standard errors are those of
    resampled rows of the file, drawn alike for all methods and all draws; the maps stay."""
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
    """Every draw, the first of which is that of the file, by file."""
    done: dict[str, list[Draw]] = {}
    paths = [p for p in sorted(options.data.glob("*.npz")) if not p.name.startswith(LEFT_OUT)]
    for path, draw in product(paths, range(options.draws + 1)):
        kept = options.results / f"{path.stem}--{draw}.npz"
        if not kept.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                keep(kept, figures(path, draw))
            print(kept.stem, file=sys.stderr, flush=True)
        found = kept_draw(kept)
        if found is not None:
            done.setdefault(path.stem, []).append(found)
    return done


def table(found: dict[str, Means], more: dict[str, Callable[[str, Means], str]]) -> Iterator[str]:
    """Errors of files, and other columns by their heads."""
    heads = [*METHODS, f"ours - {MOST_TIMES} x best (standard error)", "above the stack", *more]
    yield f"| file | {' | '.join(heads)} |"
    yield "| --- " + "| ---: " * len(heads) + "|"
    for file, mean in found.items():
        errors = " | ".join(f"{mean.errors[name]:.4f}" for name in METHODS)
        others = "".join(f" {tell(file, mean)} |" for tell in more.values())
        yield (
            f"| {file} | {errors} | {mean.over:+.4f} ({mean.spread:.4f}) | {mean.lost:+.4f} |"
            + others
        )


def failures(found: dict[str, Means]) -> list[str]:
    """Where the criterion is not met."""
    bad = [
        f"{file}: confidence error {mean.errors[OURS]:.4f}, {mean.over:+.4f} above"
        for file, mean in found.items()
        if mean.is_above
    ]
    return bad + [
        f"{file}: log-loss {mean.lost:+.4f} above that of the stack"
        for file, mean in found.items()
        if mean.lost > MOST_LOST
    ]


def verdict(found: dict[str, Means]) -> str:
    bad = failures(found)
    n_within = sum(mean.over <= 0 for mean in found.values())
    return (
        f"At most {MOST_TIMES} times the error of the best of the three in {n_within} of "
        f"{len(found)} files; above that by more than two standard errors, or above the log-loss "
        f"of the stack by more than {MOST_LOST}: {'; '.join(bad) or 'none'}."
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
            f"Made by `benchmarks/top_probability.py`: debiased confidence errors of {len(first)} "
            f"files of real predictions, calibrated on {N_ROWS:,} rows or as many as there are, "
            "after the automatic choice and after methods that are made for the top probability; "
            "and the log-loss of the automatic choice above that of its stack alone. The best of "
            "the three methods is chosen by the rows that judge, for every file anew; an error of "
            "a hundredth, of a few thousand rows, is mostly chance. So the criterion is that no "
            f"file is above {MOST_TIMES} times the best by two standard errors, and none above "
            f"the log-loss of the stack by {MOST_LOST}. A file passes if it is not shown to fail, "
            "and with these standard errors an excess of several hundredths can be missed.",
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
            f"With chance averaged out as far as a file allows: means over {n_draws} draws, of "
            "which all but the first deal the rows of the file anew. Draws share rows, so the "
            "standard errors are of rows of the file that are resampled in all draws alike; what "
            "chance did to the fits is not in them.",
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
    parser.add_argument("--output", type=Path, help="where to write the table")
    parser.add_argument("--draws", type=int, default=10, help="beside the one of the file")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    draws = run(options)
    first = {file: means(own[:1]) for file, own in draws.items()}
    averaged = {file: means(own) for file, own in draws.items()}
    text = report(first, averaged, draws)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if failures(first) or failures(averaged) else 0


if __name__ == "__main__":
    sys.exit(main())
