"""Measure how much `AutoCalibration` reduces log-loss, and how often it increases it.

    python benchmarks/do_no_harm.py --results benchmarks/results/do_no_harm.csv
    python benchmarks/do_no_harm.py --results benchmarks/results/do_no_harm.csv \
        --output benchmarks/records/do-no-harm.md
    PYTHONPATH=<other checkout>/src python benchmarks/do_no_harm.py --results other.csv
    python benchmarks/do_no_harm.py --results benchmarks/results/do_no_harm.csv --compare other.csv

There are two kinds of cases:

- ``real``: fit on n rows of a prediction file and evaluate on other rows of it, at most 2,000. The
  result is the reduction of the test log-loss compared with the uncalibrated scores.
- ``calibrated``: the labels are drawn from the scores, so no calibrator can help. The result is
  the reduction of the expected log-loss, which has no sampling noise of test labels.

Results are rows of a CSV file. Cases that it holds are not measured again, so an interrupted run
continues, and several processes can share the work by different ``--draws`` and ``--results``.
``--output`` writes the page from the CSV file alone. ``--compare`` prints the cases that two
versions of the library have in common.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from calibrant import AutoCalibration, StructuredScaling, TemperatureScaling
from prediction_files import Rows, load

SIZES = {"real": (30, 50, 100, 300, 1000), "calibrated": (30, 60, 120, 250)}
N_DRAWS = {"real": 4, "calibrated": 8}
"""More draws of calibrated scores, because the share of harmed fits is small."""

MIN_TEST_ROWS, MAX_TEST_ROWS = 50, 2000
FLOOR = 1e-12
HARM = 0.005
GROUPS = {"up to 10": (2, 10), "11 to 110": (11, 110), "more than 110": (111, 10**9)}
GAUSSIAN = {"gaussian2": (2, 3.0), "gaussian3": (3, 2.0), "gaussian10": (10, 2.0)}
"""Simulated logits: number of classes and standard deviation."""

METHODS = {
    "temperature": TemperatureScaling(),
    "structured-vector": StructuredScaling("vector"),
    "structured-matrix": StructuredScaling("matrix"),
    "auto": AutoCalibration(),
}
FIELDS = ("kind", "file", "n_classes", "n_rows", "draw", *METHODS, "seconds")
"""``seconds`` is the CPU time of the fit of `AutoCalibration`."""

Pool = tuple[str, Rows, Rows | None]


class Case(NamedTuple):
    """One draw of rows."""

    kind: str
    file: str
    n_rows: int
    draw: int


class Split(NamedTuple):
    """Rows to fit on and rows to evaluate on."""

    inputs: str
    fit: Rows
    test: Rows


# ---------------------------------------------------------------- cases


def file_names(folder: Path, wanted: list[str]) -> list[str]:
    """Prediction files and simulated cases whose name has one of the wanted substrings."""
    stems = [path.stem for path in sorted(folder.glob("*.npz"))]
    names = [*GAUSSIAN, *(stem for stem in stems if not stem.startswith("features_"))]
    return [name for name in names if not wanted or any(part in name for part in wanted)]


def read_pool(folder: Path, name: str) -> Pool:
    """Type of scores, rows to draw from and, if the file has a split, its test rows."""
    if name in GAUSSIAN:
        n_classes, scale = GAUSSIAN[name]
        scores = scale * np.random.default_rng(0).normal(size=(12_000, n_classes))
        return "logits", Rows(scores, np.zeros(len(scores), dtype=int)), None
    inputs, pool, test = load(folder / f"{name}.npz")
    # The two parts of this file have different class frequencies. One of them is used.
    return inputs, pool, None if name.startswith("cifar10lt") else test


def cases(pool: Pool, name: str, options: Any) -> Iterator[Case]:
    """Yield the draws of one file."""
    _, rows, test = pool
    for kind, sizes in SIZES.items():
        if kind == "real" and name in GAUSSIAN:
            continue
        most = len(rows.labels) - (MIN_TEST_ROWS if test is None else 0)
        for n_rows in options.sizes or sizes:
            for draw in options.draws or range(N_DRAWS[kind]) if n_rows <= most else ():
                yield Case(kind, name, n_rows, draw)


# ---------------------------------------------------------------- measuring


def split_rows(pool: Pool, case: Case) -> Split:
    """Return a random draw of fit rows, and other rows for the evaluation."""
    inputs, rows, test = pool
    order = np.random.default_rng(case.draw).permutation(len(rows.labels))
    fit, rest = order[: case.n_rows], order[case.n_rows :]
    if test is None:
        test = Rows(rows.scores[rest], rows.labels[rest])
    return Split(
        inputs,
        Rows(rows.scores[fit], rows.labels[fit]),
        Rows(test.scores[:MAX_TEST_ROWS], test.labels[:MAX_TEST_ROWS]),
    )


def probabilities(scores: Any, inputs: str) -> Any:
    """Return uncalibrated probabilities. Rows of rounded probabilities are divided by their sum."""
    proba = softmax(scores, axis=1) if inputs == "logits" else np.asarray(scores, dtype=float)
    return proba / proba.sum(axis=1, keepdims=True)


def draw_labels(split: Split, draw: int) -> Split:
    """Return the same scores with labels drawn from them."""
    proba = probabilities(split.fit.scores, split.inputs)
    uniform = np.random.default_rng(1000 + draw).random((len(proba), 1))
    labels = np.minimum((uniform > proba.cumsum(axis=1)).sum(axis=1), proba.shape[1] - 1)
    return split._replace(fit=Rows(split.fit.scores, labels))


def measure(pool: Pool, case: Case) -> dict[str, Any]:
    """Return the reduction of the log-loss by every method."""
    split = split_rows(pool, case)
    if case.kind == "calibrated":
        split = draw_labels(split, case.draw)
    before = probabilities(split.test.scores, split.inputs)
    results: dict[str, Any] = {**case._asdict(), "n_classes": before.shape[1]}
    for name, method in METHODS.items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits of folds that do not converge
            model = method.set_params(inputs=split.inputs).fit(*split.fit)
            results["seconds"] = f"{time.process_time() - start:.3f}"
            after = model.predict_proba(split.test.scores)
        ratio = np.log(np.maximum(after, FLOOR) / np.maximum(before, FLOOR))
        columns = np.searchsorted(model.classes_, split.test.labels)
        weight = before if case.kind == "calibrated" else np.eye(before.shape[1])[columns]
        results[name] = f"{(weight * ratio).sum(axis=1).mean():.7f}"
    return results


def run(options: Any) -> None:
    """Measure all cases that the CSV file does not have yet."""
    measured = read_results(options.results)
    with options.results.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not measured:
            writer.writeheader()
        for name in file_names(options.data, options.files):
            pool = read_pool(options.data, name)
            for case in cases(pool, name, options):
                if case not in measured:
                    writer.writerow(measure(pool, case))
                    file.flush()


def read_results(path: Path) -> dict[Case, dict[str, str]]:
    """Return the measured cases of a CSV file."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            Case(line["kind"], line["file"], int(line["n_rows"]), int(line["draw"])): line
            for line in csv.DictReader(file)
        }


# ---------------------------------------------------------------- tables


class Results(NamedTuple):
    """Reductions in log-loss: one row per case, one column per method."""

    cases: list[Case]
    n_classes: np.ndarray
    reductions: np.ndarray

    def select(self, mask: np.ndarray) -> Results:
        chosen = [case for case, is_chosen in zip(self.cases, mask, strict=True) if is_chosen]
        return Results(chosen, self.n_classes[mask], self.reductions[mask])

    def of_kind(self, kind: str) -> Results:
        return self.select(np.array([case.kind == kind for case in self.cases]))

    def of_size(self, n_rows: int) -> Results:
        return self.select(np.array([case.n_rows == n_rows for case in self.cases]))

    def of_group(self, group: str) -> Results:
        low, high = GROUPS[group]
        return self.select((low <= self.n_classes) & (self.n_classes <= high))

    @property
    def sizes(self) -> list[int]:
        return sorted({case.n_rows for case in self.cases})

    @property
    def auto(self) -> np.ndarray:
        return self.reductions[:, list(METHODS).index("auto")]

    def by_file(self) -> np.ndarray:
        """Mean over the draws of each file. Draws of one file share rows, files do not."""
        names = np.array([case.file for case in self.cases])
        return np.stack([self.reductions[names == name].mean(axis=0) for name in np.unique(names)])


def as_results(lines: Iterable[dict[str, str]]) -> Results:
    lines = list(lines)
    return Results(
        [Case(row["kind"], row["file"], int(row["n_rows"]), int(row["draw"])) for row in lines],
        np.array([int(line["n_classes"]) for line in lines]),
        np.array([[float(line[name]) for name in METHODS] for line in lines]),
    )


def signed(value: float) -> str:
    """Format four decimals with a sign and without a negative zero."""
    text = f"{value:+.4f}"
    return text if float(text) else "0.0000"


def with_error(values: np.ndarray) -> str:
    """Return a mean over files with its standard error."""
    if len(values) < 3:
        return signed(values.mean())
    return f"{signed(values.mean())} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def means_table(results: Results) -> Iterator[str]:
    """Return the mean reduction by method, and how often `AutoCalibration` increases log-loss."""
    yield f"| rows | files | {' | '.join(METHODS)} | worst fit of auto | auto worse by > {HARM} |"
    yield "| ---: " * (len(METHODS) + 4) + "|"
    for n_rows in results.sizes:
        rows = results.of_size(n_rows)
        means = rows.by_file()
        cells = [f"{n_rows:,}", str(len(means)), *(signed(mean) for mean in means.mean(axis=0))]
        cells += [signed(rows.auto.min()), f"{(rows.auto < -HARM).mean():.1%}"]
        yield f"| {' | '.join(cells)} |"


def differences_table(results: Results) -> Iterator[str]:
    """`AutoCalibration` compared with each method, file by file."""
    others = [name for name in METHODS if name != "auto"]
    yield f"| rows | auto | {' | '.join(f'auto - {name}' for name in others)} |"
    yield "| ---: " * (len(others) + 2) + "|"
    for n_rows in results.sizes:
        means = results.of_size(n_rows).by_file()
        auto = means[:, -1]
        cells = [with_error(auto), *(with_error(auto - means[:, k]) for k in range(len(others)))]
        yield f"| {n_rows:,} | {' | '.join(cells)} |"


def files_table(results: Results) -> Iterator[str]:
    """Return the mean and the worst reduction of `AutoCalibration` for each file."""
    yield f"| file | {' | '.join(f'{n:,} rows' for n in results.sizes)} |"
    yield "| --- " + "| ---: " * len(results.sizes) + "|"
    for name in sorted({case.file for case in results.cases}):
        rows = results.select(np.array([case.file == name for case in results.cases]))
        cells = []
        for n_rows in results.sizes:
            auto = rows.of_size(n_rows).auto
            cells.append(f"{signed(auto.mean())} ({signed(auto.min())})" if len(auto) else "")
        yield f"| {name} | {' | '.join(cells)} |"


def page(results: Results) -> str:
    """Return the text of the page."""
    real, calibrated = results.of_kind("real"), results.of_kind("calibrated")
    n_files = len({case.file for case in real.cases})
    many = real.select(np.array([case.n_rows >= 50 for case in real.cases]))
    lines = [
        "# Does automatic calibration do harm?",
        "",
        f"`AutoCalibration` was fitted {len(real.cases):,} times to real predictions ({n_files} "
        f"files, {N_DRAWS['real']} random draws of rows). From 50 rows on, it increased the test "
        f"log-loss by more than {HARM} in {(many.auto < -HARM).mean():.1%} of the fits. The tables "
        "show the reduction of the log-loss in nats compared with the uncalibrated predictions. "
        "Positive values are better.",
        "",
        "The figures are means over files. They are written by `benchmarks/do_no_harm.py`. The "
        "rule of `AutoCalibration` was designed on these files, so they are not independent "
        "evidence. [The default compared with scikit-learn](default.md) uses other data.",
        "",
        "## All files",
        "",
        *means_table(real),
        "",
        "Fits with few rows vary. The next table compares the methods file by file, with standard "
        "errors over files.",
        "",
        *differences_table(real),
        "",
    ]
    for group in GROUPS:
        lines += [f"## Files with {group} classes", "", *means_table(real.of_group(group)), ""]
    lines += [
        "## Scores that are already calibrated",
        "",
        "Here labels were drawn from the scores of the same files and of three simulated models, "
        "so no calibrator can reduce the log-loss. The best possible value is zero. There are "
        f"{N_DRAWS['calibrated']} draws of each file.",
        "",
        *means_table(calibrated),
        "",
        "## Reduction by file",
        "",
        "Each cell shows the mean over the draws of `AutoCalibration` and, in parentheses, the "
        "worst draw. Empty cells: the file has too few rows.",
        "",
        *files_table(real),
        "",
    ]
    return "\n".join(lines)


def print_comparison(results: dict[Case, Any], others: dict[Case, Any]) -> None:
    """Compare `AutoCalibration` of two versions on the cases that both have measured."""
    common = [case for case in others if case in results]
    new, old = (as_results(lines[case] for case in common) for lines in (results, others))
    print("| kind | classes | rows | fits | this version | other version | difference |")
    for kind in SIZES:
        for group in GROUPS:
            rows, other = (one.of_kind(kind).of_group(group) for one in (new, old))
            for n_rows in rows.sizes:
                pair = rows.of_size(n_rows).auto, other.of_size(n_rows).auto
                cells = (f"{one.mean():+.4f} (worst {one.min():+.4f})" for one in pair)
                difference = f"{(pair[0] - pair[1]).mean():+.4f}"
                row = (kind, group, n_rows, len(pair[0]), *cells, difference)
                print(f"| {' | '.join(map(str, row))} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--files", nargs="*", default=[], help="substrings of file names")
    parser.add_argument("--sizes", nargs="*", type=int, default=[])
    parser.add_argument("--draws", nargs="*", type=int, default=[])
    parser.add_argument("--results", type=Path, required=True, help="CSV file of the results")
    parser.add_argument("--output", type=Path, help="write the page from the results")
    parser.add_argument("--compare", type=Path, help="CSV file of another version")
    options = parser.parse_args()
    if options.compare:
        print_comparison(read_results(options.results), read_results(options.compare))
    elif options.output:
        text = page(as_results(read_results(options.results).values()))
        options.output.write_text(text, encoding="utf-8")
    else:
        run(options)


if __name__ == "__main__":
    main()
