"""Intervals of groups and the search for groups on calibrated data, by simulation.

    python benchmarks/group_intervals.py [--runs 1000]

"coverage": share of runs in which the intervals of the gaps of 50 groups all contain the true gap.
"test": share of runs in which the test of a difference between groups rejects at 5%.
"search": share of runs in which `find_groups` reports any group. Probabilities are calibrated,
except in the "skewed" case, where the miscalibration is equal in all groups. Results are written to
``results/group_intervals.csv``.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from calibrant import evaluate
from calibrant._data.sample import ArraySample
from calibrant.datasets import draw_labels
from calibrant.inference import find_groups
from calibrant.metrics._group_difference import compare_groups

RESULTS = Path(__file__).resolve().parent / "results" / "group_intervals.csv"
N_GROUPS, N_SEARCHED = 50, 2_000
CASES = {"3 classes": (3, 1.0), "3 classes, skewed": (3, 0.7), "2 classes": (2, 1.0)}
"""Number of classes, and power of the true probabilities relative to the predicted ones."""


def draw(rng: np.random.Generator, n_classes: int, power: float) -> tuple[Any, ...]:
    """Groups, predicted probabilities, true probabilities and labels."""
    sizes = np.geomspace(10, 200, N_GROUPS).astype(int)
    group = np.repeat(np.arange(N_GROUPS), sizes)
    proba = rng.dirichlet(np.ones(n_classes), len(group))
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    return group, proba, truth, draw_labels(truth, rng=rng)


def covers(seed: int, n_classes: int, power: float) -> bool:
    """Return whether the intervals of all groups contain the true gaps."""
    group, proba, truth, y = draw(np.random.default_rng(seed), n_classes, power)
    # The intervals do not depend on the test, which takes most of the time.
    with mock.patch("calibrant.metrics.groups.MOST_SCORES", 0):
        result = evaluate(y, proba, by=group)
    return all(
        part.gap_low <= _gap(proba[group == number], truth[group == number]) <= part.gap_high
        for number, part in enumerate(result)
    )


def rejects(seed: int, n_classes: int, power: float) -> bool:
    """Return whether the test rejects equal gaps of groups at 5%."""
    group, proba, _, y = draw(np.random.default_rng(seed), n_classes, power)
    sample = ArraySample(proba, y, np.ones(len(y)))
    with mock.patch("calibrant.metrics._group_difference._MOST_RESAMPLES", 199):
        return compare_groups(sample, group, N_GROUPS, "proba").p_value <= 0.05


def finds(seed: int, n_classes: int, power: float) -> bool:
    """Return whether the search reports a group."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_classes), N_SEARCHED)
    table = {
        "age": rng.integers(18, 90, N_SEARCHED),
        "region": rng.choice(["north", "south", "west"], N_SEARCHED),
        "income": rng.lognormal(size=N_SEARCHED),
    }
    return bool(find_groups(draw_labels(p, rng=rng), p, table))


def _gap(proba: Any, truth: Any) -> float:
    """Return the expected gap of a group, given its probabilities."""
    if proba.shape[1] == 2:
        return float((proba - truth)[:, 1].mean())
    top = proba.argmax(axis=1)
    return float((proba - truth)[np.arange(len(top)), top].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    n_runs = parser.parse_args().runs
    lines: list[list[Any]] = []
    for name, case in CASES.items():
        figures = {"coverage": (covers, n_runs), "test": (rejects, n_runs // 5)}
        if case[1] == 1.0:
            figures["search"] = (finds, n_runs)
        for figure, (function, count) in figures.items():
            share = np.mean([function(seed, *case) for seed in range(count)])
            lines.append([name, figure, count, f"{share:.4f}"])
            print(*lines[-1], flush=True)
            write(lines)


def write(lines: list[list[Any]]) -> None:
    """Write the results so far."""
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["case", "figure", "runs", "share"])
        writer.writerows(lines)


if __name__ == "__main__":
    main()
