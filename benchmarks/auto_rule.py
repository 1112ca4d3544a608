"""Compare two versions of `AutoCalibration` on the same draws of real predictions.

    PYTHONPATH=src python benchmarks/auto_rule.py measure new.csv --draws 0 1 2 3
    PYTHONPATH=<other checkout>/src python benchmarks/auto_rule.py measure old.csv --draws 0 1 2 3
    python benchmarks/auto_rule.py table old.csv new.csv

``measure`` appends one line per fit to a CSV file and skips fits that the file already has. A run
can be stopped and resumed. There are two kinds of cases:

- ``real``: calibrate on n rows of a prediction file and evaluate on other rows of it. The gain
  is the reduction of the test log-loss over the uncalibrated scores.
- ``calibrated``: the labels are drawn from the scores, so no calibrator can help. The gain is the
  reduction of the expected log-loss, which has no sampling noise of test labels.

``table`` prints both files side by side, for each group of classes and rows.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from calibrant import AutoCalibration
from do_no_harm import Rows, load

SIZES = (30, 50, 100, 300, 1000)
CALIBRATED_SIZES = (30, 60, 120, 250)
MIN_TEST_ROWS = 50
FLOOR = 1e-12
GROUPS = {"up to 10": (2, 10), "11 to 110": (11, 110), "above 110": (111, 10**9)}
GAUSSIAN = {"gaussian2": (2, 3.0), "gaussian3": (3, 2.0), "gaussian10": (10, 2.0)}
"""Simulated logits: number of classes and standard deviation."""

FIELDS = ("kind", "file", "n_classes", "n_rows", "draw", "gain", "seconds")


class Case(NamedTuple):
    """One fit of the benchmark."""

    kind: str
    file: str
    n_rows: int
    draw: int


class Split(NamedTuple):
    """Rows to fit on and rows to evaluate on."""

    inputs: str
    fit: Rows
    test: Rows


def file_names(folder: Path, wanted: list[str]) -> list[str]:
    """Prediction files and simulated cases whose name has one of the wanted substrings."""
    stems = [path.stem for path in sorted(folder.glob("*.npz"))]
    names = [*GAUSSIAN, *(stem for stem in stems if not stem.startswith("features_"))]
    return [name for name in names if not wanted or any(part in name for part in wanted)]


def read_pool(folder: Path, name: str) -> tuple[str, Rows, Rows | None]:
    """Type of scores, rows to draw from and, if the file has a split, its test rows."""
    if name in GAUSSIAN:
        n_classes, scale = GAUSSIAN[name]
        scores = scale * np.random.default_rng(0).normal(size=(12_000, n_classes))
        return "logits", Rows(scores, np.zeros(len(scores), dtype=int)), None
    inputs, pool, test = load(folder / f"{name}.npz")
    # The two parts of this file have different class frequencies. One of them is used.
    return inputs, pool, None if name.startswith("cifar10lt") else test


def split_rows(pool: tuple[str, Rows, Rows | None], case: Case, n_test: int) -> Split:
    """A random draw of rows to fit on, and at most ``n_test`` other rows."""
    inputs, rows, test = pool
    order = np.random.default_rng(case.draw).permutation(len(rows.labels))
    fit, rest = order[: case.n_rows], order[case.n_rows :]
    if test is None:
        test = Rows(rows.scores[rest], rows.labels[rest])
    return Split(
        inputs,
        Rows(rows.scores[fit], rows.labels[fit]),
        Rows(test.scores[:n_test], test.labels[:n_test]),
    )


def probabilities(scores: Any, inputs: str) -> Any:
    """Uncalibrated probabilities; rows of rounded probabilities are divided by their sum."""
    proba = softmax(scores, axis=1) if inputs == "logits" else np.asarray(scores, dtype=float)
    return proba / proba.sum(axis=1, keepdims=True)


def draw_labels(split: Split, draw: int) -> Split:
    """The same scores with labels that are drawn from them."""
    proba = probabilities(split.fit.scores, split.inputs)
    uniform = np.random.default_rng(1000 + draw).random((len(proba), 1))
    labels = np.minimum((uniform > proba.cumsum(axis=1)).sum(axis=1), proba.shape[1] - 1)
    return split._replace(fit=Rows(split.fit.scores, labels))


def measure(pool: tuple[str, Rows, Rows | None], case: Case, n_test: int) -> dict[str, Any]:
    """Reduction of the log-loss by the calibrator, and the CPU seconds of its fit."""
    split = split_rows(pool, case, n_test)
    if case.kind == "calibrated":
        split = draw_labels(split, case.draw)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of folds that do not converge
        model = AutoCalibration(inputs=split.inputs).fit(*split.fit)
        seconds = time.process_time() - start
        after = model.predict_proba(split.test.scores)
    before = probabilities(split.test.scores, split.inputs)
    if case.kind == "calibrated":
        weight = before
    else:
        weight = np.eye(before.shape[1])[columns(model, split.test.labels)]
    ratio = np.log(np.maximum(after, FLOOR) / np.maximum(before, FLOOR))
    gain = float((weight * ratio).sum(axis=1).mean())
    sizes = {"n_classes": before.shape[1], "gain": f"{gain:.7f}", "seconds": f"{seconds:.3f}"}
    return {**case._asdict(), **sizes}


def columns(model: Any, labels: Any) -> Any:
    """The column of each label."""
    return np.searchsorted(model.classes_, labels)


def cases(pool: tuple[str, Rows, Rows | None], name: str, options: Any) -> Iterator[Case]:
    """The fits of one file."""
    _, rows, test = pool
    for kind in options.kinds:
        if kind == "real" and name in GAUSSIAN:
            continue
        sizes = options.sizes or (SIZES if kind == "real" else CALIBRATED_SIZES)
        most = len(rows.labels) - (MIN_TEST_ROWS if test is None else 0)
        for n_rows in sizes:
            for draw in options.draws if n_rows <= most else ():
                yield Case(kind, name, n_rows, draw)


def read_cases(path: Path) -> dict[Case, dict[str, str]]:
    """Measured fits of a CSV file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {
        Case(line["kind"], line["file"], int(line["n_rows"]), int(line["draw"])): line
        for line in lines
    }


def run(options: Any) -> None:
    """Measure all cases that the CSV file does not have yet."""
    known = read_cases(options.output)
    with options.output.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not known:
            writer.writeheader()
        for name in file_names(options.data, options.files):
            pool = read_pool(options.data, name)
            for case in cases(pool, name, options):
                if case not in known:
                    writer.writerow(measure(pool, case, options.test_rows))
                    file.flush()


def group_of(line: dict[str, str]) -> tuple[str, str, int]:
    """Type of case, group of classes, and rows."""
    n_classes = int(line["n_classes"])
    name = next(name for name, (low, high) in GROUPS.items() if low <= n_classes <= high)
    return line["kind"], name, int(line["n_rows"])


def summarize(lines: list[dict[str, str]]) -> str:
    """Mean gain, worst case, shares of cases harmed by 0.005 and 0.01, and CPU seconds."""
    gain = np.array([float(line["gain"]) for line in lines])
    seconds = np.mean([float(line["seconds"]) for line in lines])
    harm = f"{(gain < -0.005).mean():.1%} / {(gain < -0.01).mean():.1%}"
    return f"{gain.mean():+.4f} ({gain.min():+.4f}, {harm}, {seconds:.2f} s)"


def print_table(old_path: Path, new_path: Path) -> None:
    """Print the cases that both files have, group by group."""
    old, new = read_cases(old_path), read_cases(new_path)
    common = [case for case in old if case in new]
    groups: dict[tuple[str, str, int], list[Case]] = {}
    for case in common:
        kind, name, n_rows = group_of(new[case])
        for key in ((kind, name, n_rows), (kind, "all", n_rows), (kind, "all", 0)):
            groups.setdefault(key, []).append(case)
    print("| kind | classes | rows | cases | old | new | difference |")
    print("|---|---|---:|---:|---|---|---:|")
    for key in sorted(groups, key=lambda key: (key[0], [*GROUPS, "all"].index(key[1]), key[2])):
        rows = groups[key]
        difference = np.mean([float(new[c]["gain"]) - float(old[c]["gain"]) for c in rows])
        cells = (summarize([old[c] for c in rows]), summarize([new[c] for c in rows]))
        print(
            f"| {key[0]} | {key[1]} | {key[2] or 'all'} | {len(rows)} | {cells[0]} | {cells[1]} "
            f"| {difference:+.4f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("output", type=Path)
    measured.add_argument("--data", type=Path, default=Path("../shared/data"))
    measured.add_argument("--files", nargs="*", default=[], help="substrings of file names")
    measured.add_argument("--kinds", nargs="*", default=["real", "calibrated"])
    measured.add_argument("--sizes", nargs="*", type=int, default=[])
    measured.add_argument("--draws", nargs="*", type=int, default=[0, 1, 2, 3])
    measured.add_argument("--test-rows", type=int, default=2000)
    table = commands.add_parser("table")
    table.add_argument("old", type=Path)
    table.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        run(options)
    else:
        print_table(options.old, options.new)


if __name__ == "__main__":
    main()
