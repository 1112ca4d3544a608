"""Measure how often 95% intervals contain the true value.

    OMP_NUM_THREADS=1 python benchmarks/interval_coverage.py --output benchmarks/records/coverage.md
    python benchmarks/interval_coverage.py --quick

Samples have 10 to 1,000 rows and 2 to 100 classes. There are two families of models. The intervals
of the library were designed on the first family. The second differs in the shape of the scores, the
frequencies of the classes and the direction of the error, and no rule was chosen by its coverage
there. A cell of a table is the share of samples, over all temperatures of a family, whose interval
contains the true value. The true value is computed from the true probabilities of 50,000 rows or
more.

Each sample has its own seed, so a cell can be computed alone, and all intervals use the same
samples. Finished cells are kept in a JSON file next to the page, so an interrupted run continues
where it stopped. Both tables take one process about 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from calibrant import HistogramBinning, Identity, MulticlassToBinary, TemperatureScaling
from calibrant.binning import bin_table
from calibrant.inference import bootstrap_interval, calibration_gain, debiased_interval
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.label_shift import adapt
from calibrant.notions import as_notion

ROWS = (10, 30, 100, 1000)
CLASSES = (2, 10, 100)
ENOUGH = 0.93
BLOCK = 10_000
MOST_REFERENCE_ROWS = 200_000
REFERENCE_ELEMENTS = 5_000_000
RESAMPLES = 199
SHIFT_RESAMPLES = 39
NATS = -np.log(1e-12)
"""Largest log-loss of a row."""


def gaussian(rng: np.random.Generator, n_rows: int, n_classes: int, t: float) -> Any:
    """Draw normal logits with equal distributions for all classes. The true logits are t times
    smaller.
    """
    z = 3 * rng.normal(size=(n_rows, n_classes))
    return log_softmax(z, axis=1), log_softmax(z / t, axis=1)


def dirichlet(rng: np.random.Generator, n_rows: int, n_classes: int, t: float) -> Any:
    """Draw true probabilities with class frequencies proportional to 1/k. The predicted logits are
    t times larger.
    """
    shape = 1.0 / np.arange(1, n_classes + 1)
    shape *= 2 / shape.sum()
    size = (n_rows, n_classes)
    gamma = np.log(rng.standard_gamma(shape + 1, size)) + np.log(rng.random(size)) / shape
    truth = log_softmax(gamma, axis=1)
    return log_softmax(t * truth, axis=1), truth


@dataclass(frozen=True)
class Family:
    """A function that draws predicted and true log-probabilities, and its temperatures."""

    draw: Callable[[np.random.Generator, int, int, float], Any]
    temperatures: tuple[float, ...]


FAMILIES = {
    "gaussian": Family(gaussian, (1.0, 1.5, 3.0)),
    "dirichlet": Family(dirichlet, (2 / 3, 1.0, 2.0)),
}


@dataclass(frozen=True)
class Setting:
    """The distribution and the size of a sample."""

    family: str
    n_classes: int
    part: int
    n_rows: int

    @property
    def temperature(self) -> float:
        return FAMILIES[self.family].temperatures[self.part]

    @property
    def reference(self) -> Reference:
        return reference_of(replace(self, n_rows=0))

    def key(self, name: str) -> str:
        return f"{self.family}/{name}/{self.n_classes}/{self.n_rows}/{self.temperature:.3g}"

    def sample(self, seed: int, stream: int = 0) -> Sample:
        """Return sample ``seed`` of the setting. ``stream=1`` gives a second sample."""
        kind = list(FAMILIES).index(self.family)
        rng = np.random.default_rng([kind, self.n_classes, self.part, self.n_rows, seed, stream])
        return self.draw(rng, self.n_rows)

    def draw(self, rng: np.random.Generator, n_rows: int) -> Sample:
        draw = FAMILIES[self.family].draw
        predicted, true = draw(rng, n_rows, self.n_classes, self.temperature)
        truth = np.exp(true)
        y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
        return Sample(self, predicted, truth, y)


@dataclass(frozen=True, eq=False)
class Sample:
    """Predicted log-probabilities, true probabilities and labels."""

    setting: Setting
    log_proba: np.ndarray
    truth: np.ndarray
    y: np.ndarray

    @cached_property
    def proba(self) -> np.ndarray:
        return np.exp(self.log_proba)

    @cached_property
    def top(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the label, the confidence and the true probability of the predicted class."""
        label = self.proba.argmax(axis=1)
        rows = np.arange(len(label))
        return label, self.proba[rows, label], self.truth[rows, label]

    @property
    def means(self) -> np.ndarray:
        """Return the expected accuracy, gap, log-loss, Brier score and calibration error of the
        rows.
        """
        p, q = self.proba, self.truth
        _, score, rate = self.top
        loss = (q * np.minimum(-self.log_proba, NATS)).sum(axis=1)
        least = (q * np.minimum(-np.log(np.maximum(q, 1e-300)), NATS)).sum(axis=1)
        brier = 1 + (p**2).sum(axis=1) - 2 * (p * q).sum(axis=1)
        return np.stack([rate, score - rate, loss, brier, loss - least]).mean(axis=1)


class Curve:
    """Sorted scores with cumulative sums of the score minus the true probability. They give the
    errors of any bins.
    """

    def __init__(self, score: np.ndarray, truth: np.ndarray) -> None:
        order = np.argsort(score)
        self.score = score[order]
        self.truth = np.r_[0.0, np.cumsum(truth[order])]
        self.gap = np.r_[0.0, np.cumsum(score[order] - truth[order])]

    def _ends(self, edges: np.ndarray) -> np.ndarray:
        """Return the ends of bins that contain their right edges. The last bin contains all
        remaining rows.
        """
        inner = np.searchsorted(self.score, edges[:-1], side="right")
        return np.r_[0, inner, len(self.score)]

    def square(self, edges: np.ndarray) -> float:
        """Return the sum over rows of the squared error of their bin."""
        ends = self._ends(edges)
        rows, gap = np.diff(ends), np.diff(self.gap[ends])
        return float((gap[rows > 0] ** 2 / rows[rows > 0]).sum())

    def rates(self, edges: np.ndarray) -> np.ndarray:
        """Return the mean true probability of each bin, or NaN if the bin is empty."""
        ends = self._ends(edges)
        with np.errstate(invalid="ignore"):
            return np.diff(self.truth[ends]) / np.diff(ends)


class Reference:
    """True values of a setting, from many rows with their true probabilities."""

    def __init__(self, setting: Setting) -> None:
        k = setting.n_classes
        self.n_rows = min(MOST_REFERENCE_ROWS, REFERENCE_ELEMENTS // k)
        rng = np.random.default_rng([list(FAMILIES).index(setting.family), k, setting.part])
        parts = [setting.draw(rng, BLOCK) for _ in range(self.n_rows // BLOCK)]
        mean = np.mean([part.means for part in parts], axis=0)
        self.accuracy, self.gap, self.log_loss, self.brier_score, self.error = map(float, mean)
        label, score, rate = (
            np.concatenate(values) for values in zip(*(p.top for p in parts), strict=True)
        )
        self.top = Curve(score, rate)
        self.top_of = [Curve(score[label == j], rate[label == j]) for j in range(k)]
        self.class_of = [
            Curve(
                np.concatenate([part.proba[:, j] for part in parts]),
                np.concatenate([part.truth[:, j] for part in parts]),
            )
            for j in range(k)
        ]

    def binned_error(self, notion: str, bins: Any) -> float:
        """Return the L2 error in the bins of a sample that `debiased_interval` uses."""
        if notion == "confidence":
            return (self.top.square(bins.edges_of(0)) / self.n_rows) ** 0.5
        curves = self.top_of if notion == "top-label" else self.class_of
        each = [curve.square(bins.edges_of(k)) for k, curve in enumerate(curves)]
        columns = 1 if notion == "top-label" else len(curves)
        return (sum(each) / self.n_rows / columns) ** 0.5


@lru_cache(maxsize=1)
def reference_of(setting: Setting) -> Reference:
    """Return the true values of a setting for any number of rows. The last result is cached."""
    return Reference(setting)


def side(low: float, truth: float, high: float) -> int:
    """Return 0 if an interval contains the true value, -1 if it is below, and 1 if it is above."""
    return int(low > truth + 1e-12) - int(high < truth - 1e-12)


def side_of_mean(metric: str) -> Callable[[Sample, Reference, int], int]:
    def side_of(sample: Sample, reference: Reference, seed: int) -> int:
        interval = bootstrap_interval(
            metric, sample.y, sample.proba, n_resamples=RESAMPLES, rng=seed
        )
        return side(interval.low, getattr(reference, metric), interval.high)

    return side_of


def side_of_gap(sample: Sample, reference: Reference, seed: int) -> int:
    interval = confidence_gap(sample.y, sample.proba)
    return side(interval.low, reference.gap, interval.high)


def side_of_debiased(notion: str) -> Callable[[Sample, Reference, int], int]:
    def side_of(sample: Sample, reference: Reference, seed: int) -> int:
        interval = debiased_interval(sample.y, sample.proba, notion=notion)
        truth = reference.binned_error(notion, bins_of(notion, sample))
        if (
            notion == "top-label"
        ):  # the true value is the larger of both errors, see records/coverage.md
            whole = reference.binned_error("confidence", bins_of("confidence", sample))
            truth = max(truth, whole)
        return side(interval.low, truth, interval.high)

    return side_of


def bins_of(notion: str, sample: Sample) -> Any:
    """Return the bins that `debiased_interval` uses for a sample."""
    claims = as_notion(notion).claims(sample.proba, sample.y, np.ones(len(sample.y)))
    return bin_table(claims, strategy="quantile", rows_per_bin=5).bins


def side_of_gain(sample: Sample, reference: Reference, seed: int) -> int:
    interval = calibration_gain(sample.y, sample.proba, TemperatureScaling(), rng=seed)
    return side(interval.low, reference.error, interval.high)


def side_of_guarantee(sample: Sample, reference: Reference, seed: int) -> int:
    """Return the first nonzero side of the intervals of all bins of a guarantee, or 0."""
    binning = MulticlassToBinary(HistogramBinning(points_per_bin=10), "confidence")
    fitted = binning.fit(sample.proba, sample.y)
    rates = reference.top.rates(fitted.bins_.edges_of(0))
    sides = (
        side(interval.low, rate, interval.high)
        for interval, rate in zip(fitted.guarantee().intervals, rates, strict=True)
        if np.isfinite(rate)
    )
    return next((value for value in sides if value), 0)


def side_of_shift(sample: Sample, reference: Reference, seed: int) -> int | None:
    """Return the side of the weights without label shift, or None if the data are rejected."""
    source = sample.setting.sample(seed, stream=1)
    calibrator = Identity().fit(source.truth, source.y)
    try:
        interval = adapt(calibrator, sample.truth, n_resamples=SHIFT_RESAMPLES, rng=seed)
    except ValueError as error:
        if "cannot be" in str(error):
            return None
        raise
    return int((interval.low > 1).any()) or -int((interval.high < 1).any())


INTERVALS: dict[str, Callable[[Sample, Reference, int], int | None]] = {
    "accuracy": side_of_mean("accuracy"),
    "confidence minus accuracy": side_of_gap,
    "Brier score": side_of_mean("brier_score"),
    "log-loss": side_of_mean("log_loss"),
    "debiased error, confidence": side_of_debiased("confidence"),
    "debiased error, top-label": side_of_debiased("top-label"),
    "debiased error, class-wise": side_of_debiased("class-wise"),
    "calibration gain, temperature": side_of_gain,
    "guarantee, all bins at once": side_of_guarantee,
    "label shift, all classes at once": side_of_shift,
}
"""Functions that return the side of the interval of a sample, as `side` does."""

Counts = list[int]
"""Numbers of samples whose interval contains the true value, whose interval is above it, that were
tried, and whose interval is below it. The side 0, 1 or -1 of an interval is the index of its count.
Samples that were tried but have no side were rejected."""
TRIED = 2

COSTLY = (
    "debiased error, top-label",
    "debiased error, class-wise",
    "calibration gain, temperature",
)


def samples_of(name: str, setting: Setting) -> int:
    """Return the number of samples per temperature.

    Costly intervals and the second family have fewer samples. A setting has more samples if the
    data of the other temperatures are rejected.
    """
    if name.startswith("label shift"):
        return 201 if setting.n_classes == 10 and setting.n_rows == 1000 else 67
    is_large = setting.n_rows * setting.n_classes >= 10_000
    return 67 if setting.family != "gaussian" or (name in COSTLY and is_large) else 134


def add_samples(setting: Setting, counts: dict[str, Counts], goal: dict[str, int]) -> None:
    """Add samples up to a goal for each interval. All intervals use the same samples."""
    first = min(counts[name][TRIED] for name in goal)
    for seed in range(first, max(goal.values())):
        sample = setting.sample(seed)
        for name in (name for name in goal if counts[name][TRIED] == seed < goal[name]):
            place = INTERVALS[name](sample, setting.reference, seed)
            counts[name][TRIED] += 1
            if place is not None:
                counts[name][place] += 1


def settings(rows: tuple[int, ...]) -> Iterator[Setting]:
    """Yield all settings. Settings with the same true values follow each other."""
    for family, n_classes in product(FAMILIES, CLASSES):
        for part, n_rows in product(range(len(FAMILIES[family].temperatures)), rows):
            yield Setting(family, n_classes, part, n_rows)


def run(results: dict[str, Counts], names: list[str], most: int, keep: Callable[[], None]) -> None:
    """Compute the missing samples and store the counts after each setting."""
    for setting in settings(ROWS):
        counts = {name: results.setdefault(setting.key(name), [0] * 4) for name in names}
        goal = {name: min(most, samples_of(name, setting)) for name in names}
        goal = {name: size for name, size in goal.items() if counts[name][TRIED] < size}
        if goal:
            add_samples(setting, counts, goal)
            keep()
            print(setting.key("*"), {name: counts[name] for name in goal}, flush=True)


def cell_of(results: dict[str, Counts], family: str, name: str, n_classes: int, n_rows: int) -> Any:
    """Return the counts of each temperature that was run."""
    parts = range(len(FAMILIES[family].temperatures))
    keys = [Setting(family, n_classes, part, n_rows).key(name) for part in parts]
    return [results[key] for key in keys if results.get(key, [0] * 4)[TRIED]]


def count_intervals(counts: Counts) -> int:
    """Return the number of samples that have an interval."""
    return sum(counts) - counts[TRIED]


def share(held: int, total: int) -> tuple[float, float]:
    """Return a proportion and its standard error by Agresti and Coull, which is positive for 0 and
    1, too.
    """
    rate = (held + 2) / (total + 4)
    return held / total, (rate * (1 - rate) / (total + 4)) ** 0.5


def cell_text(cell: list[Counts]) -> str:
    if not cell:
        return ""
    held, total = sum(counts[0] for counts in cell), sum(map(count_intervals, cell))
    if not total:
        return "rejected"
    rate, error = share(held, total)
    return f"{rate:.3f} ± {error:.3f} ({total}){'' if rate >= ENOUGH else ' *'}"


def table(results: dict[str, Counts], family: str) -> str:
    head = ["interval", "classes", *(f"n = {n:,}" for n in ROWS)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, k in product(INTERVALS, CLASSES):
        cells = [cell_text(cell_of(results, family, name, k, n)) for n in ROWS]
        if any(cells):
            lines.append(f"| {name} | {k} | {' | '.join(cells)} |")
    return "\n".join(lines)


def weak_parts(results: dict[str, Counts]) -> str:
    """List temperatures whose coverage is below the limit by more than two standard errors."""
    lines = []
    for family, name, k, n in product(FAMILIES, INTERVALS, CLASSES, ROWS):
        cell = cell_of(results, family, name, k, n)
        for t, counts in zip(FAMILIES[family].temperatures, cell, strict=False):
            if not count_intervals(counts):
                continue
            rate, error = share(counts[0], count_intervals(counts))
            if rate + 2 * error < ENOUGH:
                where = f"{family}, {name}, {k} classes, n = {n:,}, T = {t:.3g}"
                sides = f"{counts[-1]} too low, {counts[1]} too high"
                lines.append(f"- {where}: {rate:.3f} ± {error:.3f} ({sides})")
    return "\n".join(lines) or "- none"


def starred(results: dict[str, Counts], family: str) -> str:
    cells = [
        cell_text(cell_of(results, family, name, k, n))
        for name, k, n in product(INTERVALS, CLASSES, ROWS)
    ]
    done = [text for text in cells if text]
    below = sum(text.endswith("*") for text in done)
    rejected = sum(text == "rejected" for text in done)
    counts = f"{len(done)} of {len(cells)} cells were run."
    if rejected:
        counts += f" In {rejected} of them, all samples were rejected."
    return f"{counts} The coverage of {below or 'no'} cell{'s' if below > 1 else ''} is below 0.93."


TEXT = """# Coverage of the intervals

The tables show how often nominal 95% intervals contain the true value.
`benchmarks/interval_coverage.py` writes the tables, with the standard error of the simulation and,
in parentheses, the number of samples. A star marks coverage below 0.93. Each sample has its own
seed, and `coverage.json` has the counts.
`tests/promises/test_coverage.py` recomputes some cells.

## The family used for the design

The logits z of every class are drawn from N(0, 9). The model predicts softmax(z), and the true
probabilities are softmax(z / T) for T = 1, 1.5 and 3 in equal parts. The predictions range from
calibrated to grossly overconfident. {gaussian_counts}

{gaussian}

## A family not used for the design

The true probabilities q have a Dirichlet distribution, and class frequencies are proportional to
1/k. The model predicts probabilities proportional to q^T for T = 2/3, 1 and 2 in equal parts:
underconfident, calibrated and overconfident. The scores have other shapes, and some classes are
rare. The intervals were designed by their coverage in the first family. {dirichlet_counts}

{dirichlet}

## By temperature

Each cell is the mean over three temperatures. The coverage at these single temperatures is below
0.93 by more than two standard errors:

{weak}

## Notes on the tables

- **Accuracy** and **guarantees** use Clopper-Pearson intervals. They hold for every number of rows
  and are often wider than necessary.
- **Log-loss** and **Brier score**: the width depends on the skewness of the losses (Hall 1992) and
  on their variation if labels are drawn from the model. If rare rows determine a mean, a sample
  without them cannot bound it by any method (Bahadur & Savage 1956). With 10 rows, binary data and
  an overconfident model (T = 3), about one interval in ten is too low. `Interval.note` reports that
  a few rows determine the result. With sharp scores (five classes, logits of standard deviation 8)
  and 1% random labels, intervals from 30, 100, 500 and 2,000 rows contained the log-loss in 0.98,
  1.00, 0.93 and 0.94 of 150 samples. On rows drawn from four files of real predictions (networks on
  CIFAR-10 and CIFAR-100; 30, 100 and 1,000 rows), the coverage of log-loss and Brier score was 0.96
  to 1.00.
- **Debiased errors** are the errors in the bins of the sample. With 10 rows there are two bins, and
  variation within a bin is not measured. Near calibration, the intervals are wide on purpose. The
  upper limit allows any error for a row that is alone in its bin, so top-label intervals for many
  classes and few rows are wide. Top-label errors are at least the confidence errors, whose bins are
  finer if classes have few rows. The true value is therefore the larger of both binned errors. With
  bins of single classes alone (two per class, 100 classes of 10 rows), a gross error (T = 3) nearly
  averages out, and most intervals would lie above it.
- **Calibration gain** refers to a family of calibrators that contains the true calibration
  function. A penalized family, or one without this function, shows only the part that it can
  correct. With heavy tails, the upper limit is too low.
- **Label shift** is rejected if `n * information` is below 100, if a class does not occur in the
  source, or if the rarest class is too rare. Without the last rule, none of 7 bands held with ten
  rows for each of 100 classes. A smaller number of samples in parentheses means that the other
  samples were rejected. Weights are ratios, so nearly all intervals that miss are too low. A band
  on the logarithmic scale held hardly more often (in 111 instead of 108 of 120 samples of ten
  classes) and missed on the other side, so it is not used.
- The intervals of the log-loss and Brier score use {resamples} resamples, and those of label shift
  use {shift_resamples}. The defaults are 1,000 and 200. A percentile interval from B resamples has
  a coverage of about 0.95 - 2/B, so the defaults cover a little more than the tables show. The band
  of {shift_resamples} draws ends at the 38th, which another draw exceeds with probability 2/40.
- Intervals of cross-fitted gains (`compare`, `AutoCalibration`) refer to a calibrator fitted on the
  same number of rows. They are not shown, because their true value differs between samples.
"""


def page_of(results: dict[str, Counts]) -> str:
    tables = {family: table(results, family) for family in FAMILIES}
    counts = {f"{family}_counts": starred(results, family) for family in FAMILIES}
    resamples = {"resamples": RESAMPLES, "shift_resamples": SHIFT_RESAMPLES}
    return TEXT.format(**tables, **counts, **resamples, weak=weak_parts(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="page to write (default: print it)")
    parser.add_argument("--quick", action="store_true", help="use only 3 samples per temperature")
    parser.add_argument(
        "--only", default="", help="intervals whose names start with one of these texts"
    )
    chosen = parser.parse_args()
    kept = chosen.output.with_suffix(".json") if chosen.output else None
    results = json.loads(kept.read_text()) if kept and kept.exists() else {}
    warnings.simplefilter("ignore")
    run(
        results,
        [name for name in INTERVALS if name.startswith(chosen.only)],
        3 if chosen.quick else 10**6,
        lambda: kept.write_text(json.dumps(results, indent=0)) if kept else None,
    )
    page = page_of(results)
    if chosen.output:
        chosen.output.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
