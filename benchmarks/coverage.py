"""How often do 95 % intervals hold the truth? From 10 to 1,000 rows, of 2 to 100 classes.

    python benchmarks/coverage.py --output docs/coverage.md
    python benchmarks/coverage.py --quick

Logits are z ~ N(0, 9), the model says softmax(z), and the truth is softmax(z / T) for T = 1
(calibrated), 1.5 and 3. A cell of the table is the share of samples, of all three, whose interval
holds the truth, which is known from 10,000 rows with their true probabilities. Cells that are done
are kept in a JSON file beside the output: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import softmax

from calibrant import HistogramBinning, Identity, MulticlassToBinary, TemperatureScaling
from calibrant.binning import bin_table
from calibrant.exceptions import TooFewRowsError
from calibrant.inference import bootstrap_interval, calibration_gain, debiased_interval
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.label_shift import adapt
from calibrant.notions import as_notion

ROWS = (10, 30, 100, 1000)
CLASSES = (2, 10, 100)
TEMPERATURES = (1.0, 1.5, 3.0)
ENOUGH = 0.93
REFERENCE_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Sample:
    """What a model says, what happened, and what was true; with what follows for its means."""

    proba: np.ndarray
    y: np.ndarray
    truth: np.ndarray

    @cached_property
    def top(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Label, confidence and true probability of the top class."""
        label = self.proba.argmax(axis=1)
        rows = np.arange(len(label))
        return label, self.proba[rows, label], self.truth[rows, label]

    @cached_property
    def log_loss(self) -> float:
        return float((self.truth * -np.log(np.maximum(self.proba, 1e-12))).sum(axis=1).mean())

    @cached_property
    def entropy(self) -> float:
        return float((self.truth * -np.log(np.maximum(self.truth, 1e-12))).sum(axis=1).mean())

    @cached_property
    def brier_score(self) -> float:
        p, q = self.proba, self.truth
        return float(((p**2).sum(axis=1) - 2 * (p * q).sum(axis=1) + 1).mean())


def draw(rng: np.random.Generator, n_rows: int, n_classes: int, temperature: float) -> Sample:
    z = 3 * rng.normal(size=(n_rows, n_classes))
    truth = softmax(z / temperature, axis=1)
    y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    return Sample(softmax(z, axis=1), y, truth)


def holds_accuracy(sample: Sample, reference: Sample, seed: int) -> bool:
    found = bootstrap_interval("accuracy", sample.y, sample.proba)
    return found.low <= reference.top[2].mean() <= found.high


def holds_gap(sample: Sample, reference: Sample, seed: int) -> bool:
    found = confidence_gap(sample.y, sample.proba)
    _, score, truth = reference.top
    return found.low <= (score - truth).mean() <= found.high


def holds_log_loss(sample: Sample, reference: Sample, seed: int) -> bool:
    found = bootstrap_interval("log_loss", sample.y, sample.proba, n_resamples=99, rng=seed)
    return found.low <= reference.log_loss <= found.high


def holds_brier(sample: Sample, reference: Sample, seed: int) -> bool:
    found = bootstrap_interval("brier_score", sample.y, sample.proba, n_resamples=99, rng=seed)
    return found.low <= reference.brier_score <= found.high


def binned_error(notion: str, sample: Sample, reference: Sample) -> float:
    """The true L2 error of the bins that `debiased_interval` makes of a sample."""
    claims = as_notion(notion).claims(sample.proba, sample.y, np.ones(len(sample.y)))
    bins = bin_table(claims, strategy="quantile", rows_per_bin=5).bins
    label, score, truth = reference.top
    total, n_classes = 0.0, sample.proba.shape[1]
    if notion == "confidence":
        return square(score, truth, bins.edges_of(0)) ** 0.5
    for k in range(n_classes):
        if notion == "class-wise":
            part = square(reference.proba[:, k], reference.truth[:, k], bins.edges_of(k))
            total += part / n_classes
        elif (label == k).any():
            rows = label == k
            total += rows.mean() * square(score[rows], truth[rows], bins.edges_of(k))
    return total**0.5


def square(score: np.ndarray, truth: np.ndarray, edges: np.ndarray) -> float:
    place = np.searchsorted(edges[:-1], score)
    rows = np.bincount(place, minlength=len(edges))
    gap = np.bincount(place, truth - score, minlength=len(edges))
    return float((gap[rows > 0] ** 2 / rows[rows > 0]).sum() / len(score))


def holds_debiased(notion: str) -> Callable[[Sample, Sample, int], bool]:
    def holds(sample: Sample, reference: Sample, seed: int) -> bool:
        found = debiased_interval(sample.y, sample.proba, notion=notion)
        return found.low <= binned_error(notion, sample, reference) + 1e-12 <= found.high + 2e-12

    return holds


def holds_gain(sample: Sample, reference: Sample, seed: int) -> bool:
    found = calibration_gain(sample.y, sample.proba, TemperatureScaling(), rng=seed)
    return found.low <= reference.log_loss - reference.entropy <= found.high


def holds_guarantee(sample: Sample, reference: Sample, seed: int) -> bool:
    """All bins of a guarantee at once."""
    binning = MulticlassToBinary(HistogramBinning(points_per_bin=10), "confidence")
    fitted = binning.fit(sample.proba, sample.y)
    intervals = fitted.guarantee().intervals
    _, score, truth = reference.top
    place = np.searchsorted(fitted.bins_.edges_of(0)[:-1], score)
    return all(
        found.low <= truth[place == b].mean() <= found.high
        for b, found in enumerate(intervals)
        if (place == b).any()
    )


def holds_shift(sample: Sample, reference: Sample, seed: int) -> bool:
    """No shift is found where there is none, with exact probabilities."""
    source = draw(np.random.default_rng(seed + 10**6), *sample.proba.shape, 1.0)
    calibrator = Identity().fit(source.truth, source.y)
    return not adapt(calibrator, sample.truth, n_resamples=60, rng=seed).is_shifted.any()


INTERVALS: dict[str, tuple[Callable[[Sample, Sample, int], bool], int]] = {
    "accuracy": (holds_accuracy, 1),
    "confidence minus accuracy (report)": (holds_gap, 1),
    "Brier score": (holds_brier, 40),
    "log-loss": (holds_log_loss, 40),
    "debiased error, confidence": (holds_debiased("confidence"), 2),
    "debiased error, top-label": (holds_debiased("top-label"), 4),
    "debiased error, class-wise": (holds_debiased("class-wise"), 20),
    "calibration gain, temperature": (holds_gain, 40),
    "guarantee, all bins at once": (holds_guarantee, 2),
    "label shift, all classes at once": (holds_shift, 60),
}
"""Whether an interval of a sample holds the truth, and what it costs compared with others."""


def repetitions(cost: int, n_rows: int, n_classes: int, most: int) -> int:
    """Samples of each temperature: fewer where they cost more."""
    return int(np.clip(300_000 // (cost * max(n_rows, 30) * n_classes), min(10, most), most))


def cover(name: str, n_rows: int, n_classes: int, most: int) -> tuple[int, int] | None:
    """Samples whose interval holds the truth, and samples; None where none is given."""
    holds, cost = INTERVALS[name]
    held = total = 0
    for temperature in TEMPERATURES:
        rng = np.random.default_rng([n_rows, n_classes, int(10 * temperature)])
        reference = draw(rng, REFERENCE_ROWS, n_classes, temperature)
        for seed in range(repetitions(cost, n_rows, n_classes, most)):
            sample = draw(rng, n_rows, n_classes, temperature)
            try:
                held += int(holds(sample, reference, seed))
            except (TooFewRowsError, ValueError):  # refused: no interval, so nothing to cover
                continue
            total += 1
    return (held, total) if total else None


def cell(done: tuple[int, int] | None) -> str:
    if done is None:
        return "refused"
    held, total = done
    mark = "" if held / total >= ENOUGH - 1.64 * (0.05 * 0.95 / total) ** 0.5 else " *"
    return f"{held / total:.3f} ({total}){mark}"


def table(results: dict[str, tuple[int, int] | None]) -> str:
    head = ["interval", "classes", *(f"n = {n:,}" for n in ROWS)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name in INTERVALS:
        for k in CLASSES:
            keys = [f"{name}/{n}/{k}" for n in ROWS]
            cells = [cell(results[key]) if key in results else "" for key in keys]
            lines.append(f"| {name} | {k} | {' | '.join(cells)} |")
    return "\n".join(lines)


TEXT = """# Coverage of the intervals

How often a nominal 95 % interval holds the truth, by `benchmarks/coverage.py`: logits z ~ N(0,
9), the model says softmax(z), the truth is softmax(z / T) for T = 1, 1.5 and 3, in equal parts.
In brackets the number of samples: 450 know a share of 0.95 to 0.01, 60 to 0.03, 30 to 0.04. A
star marks what is below 0.93 by more than such chance; an empty cell was not run.

{table}

What to know beside the table:

- **Accuracy** and **guarantees** rest on Clopper and Pearson's intervals, which hold for every
  number of rows, and are often wider than they need be.
- **Debiased errors** are those of the bins that were made: with 10 rows there are two bins, and
  what varies within a bin is not seen. Near calibration the intervals are wide on purpose. Rows
  that are alone in their bin may have any error in the upper limit, which is why top-label
  intervals of many classes and few rows say little: that is what is known.
- **Log-loss** and **Brier score**: a mean that rare rows decide cannot be bounded by a sample
  that lacks them, and no method can (Bahadur & Savage 1956). With sharp scores that are
  overconfident (T = 3) confident errors are the rule here and not the exception; where one row in
  a hundred is a confident error, intervals of 100 rows miss in a quarter of the cases, nearly
  always because they are too low. `Interval.note` names the samples in which a few rows decide.
- **Calibration gain** is that of a family that holds the true map; one that is penalised, or does
  not hold it, shows only the part that the family can mend. With heavy tails its upper end is too
  low.
- **Label shift** is refused below `n * information = 100`.
- Cells of 30 samples or so show gross failures only: a figure of 0.87 to 0.92 there is neither
  shown to be enough nor not to be.
- Intervals of cross-fitted gains (`compare`, `AutoCalibration`) are of a map fitted on as many
  rows, and are not here: their truth is another one in every sample.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="a page to write; by default it is printed")
    parser.add_argument("--quick", action="store_true", help="3 samples a cell, up to 100 rows")
    parser.add_argument("--samples", type=int, default=100, help="of each temperature, at most")
    parser.add_argument("--only", default="", help="intervals whose name begins so")
    chosen = parser.parse_args()
    kept = Path(f"{chosen.output}.json") if chosen.output else None
    results = json.loads(kept.read_text()) if kept and kept.exists() else {}
    warnings.simplefilter("ignore")
    most = 3 if chosen.quick else chosen.samples
    for name in (name for name in INTERVALS if name.startswith(chosen.only)):
        for n_rows in ROWS[: 3 if chosen.quick else None]:
            for n_classes in CLASSES:
                key = f"{name}/{n_rows}/{n_classes}"
                if key not in results:
                    results[key] = cover(name, n_rows, n_classes, most)
                    print(key, cell(results[key]), flush=True)
                    if kept:
                        kept.write_text(json.dumps(results))
    page = TEXT.format(table=table(results))
    if chosen.output:
        chosen.output.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
