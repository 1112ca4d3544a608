"""Compare methods for groups on real and simulated data.

    python benchmarks/groups.py [--data ../shared/data] [--draws 3]

Real data: covertype, groups by soil type. Gradient boosting is trained with and without the soil
types. The figure is the reduction of the test log-loss in nats (higher is better).
Simulated data: 20 groups of 30 to 1,500 rows, ten classes. The figures are the excess of the
log-loss over that of the true probabilities, mean over groups and worst group (lower is better).
Results are kept in ``results/groups.csv`` after every draw and are not computed again.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from calibrant import AutoCalibration, GroupCalibration
from calibrant._kernels.simplex import softmax, true_class

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "groups.csv"
FIELDS = ("data", "rows", "draw", "method", "figure", "worst")

N_TRAIN, N_TEST, FIRST_SOIL, N_SOILS = 20_000, 50_000, 14, 40
STAGES = {"one stage": (0.0, 1.0, 0.0), "two stages": (0.0, 0.0, 1.0)}
FEWEST_ROWS = 30
"""Smaller groups have the pooled calibrator in the column "per group"."""


def fit_stage(weights: tuple[float, ...], p: Any, y: Any, group: Any) -> GroupCalibration:
    """`GroupCalibration` whose weights are given, to evaluate a stage alone."""
    name = "calibrant.selection._group_calibration.stack_weights"
    with mock.patch(name, return_value=np.array(weights)):
        return GroupCalibration().fit(p, y, by=group)


def predict_methods(
    p: Any, y: Any, group: Any, p_test: Any, group_test: Any
) -> Iterator[tuple[str, Any]]:
    """Return calibrated test probabilities of each method."""
    yield "raw", p_test
    model = GroupCalibration().fit(p, y, by=group)
    pooled = model.pooled_.predict_proba(p_test)
    yield "pooled", pooled
    yield "per group", predict_separately(p, y, group, p_test, group_test, pooled)
    for name, weights in STAGES.items():
        yield name, fit_stage(weights, p, y, group).predict_proba(p_test, by=group_test)
    yield "GroupCalibration", model.predict_proba(p_test, by=group_test)


def predict_separately(
    p: Any, y: Any, group: Any, p_test: Any, group_test: Any, pooled: Any
) -> Any:
    """Return predictions of one `AutoCalibration` per group with enough rows."""
    out = pooled.copy()
    for name in np.unique(group_test):
        rows = group == name
        if rows.sum() >= FEWEST_ROWS:
            fitted = AutoCalibration().fit(p[rows], y[rows])
            out[group_test == name] = fitted.predict_proba(p_test[group_test == name])
    return out


def soils(data: Path, n_rows: int, draw: int, *, is_seen: bool) -> Iterator[tuple[str, float, str]]:
    """Return reductions of the log-loss on covertype."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    with np.load(data / "features_covtype.npz") as file:
        X, y = file["X"], file["y"].astype(int)
    y -= y.min()
    rows = np.random.default_rng(draw).permutation(len(y))[: N_TRAIN + n_rows + N_TEST]
    X, y = X[rows], y[rows]
    soil = X[:, FIRST_SOIL : FIRST_SOIL + N_SOILS].argmax(axis=1)
    features = X if is_seen else X[:, :FIRST_SOIL]
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(features[:N_TRAIN], y[:N_TRAIN])
    p = model.predict_proba(features[N_TRAIN:])
    y, soil = y[N_TRAIN:], soil[N_TRAIN:]
    fit, test = slice(None, n_rows), slice(n_rows, None)
    losses = {
        name: -np.log(np.maximum(true_class(proba, y[test]), 1e-12)).mean()
        for name, proba in predict_methods(p[fit], y[fit], soil[fit], p[test], soil[test])
    }
    for name, loss in losses.items():
        yield name, float(losses["raw"] - loss), ""


def simulate(spread: float, draw: int) -> Iterator[tuple[str, float, str]]:
    """Excess log-loss on simulated groups, whose effects have this standard deviation."""
    rng = np.random.default_rng(draw)
    n_classes, n_groups, scale = 10, 20, 3.0
    sizes = np.geomspace(30, 1500, n_groups).astype(int)
    slopes = np.exp(spread / 3 * rng.normal(size=n_groups)) * 0.7
    offsets = spread * rng.normal(size=(n_groups, n_classes))

    def rows(counts: Any) -> tuple[Any, ...]:
        group = np.repeat(np.arange(n_groups), counts)
        u = scale * rng.normal(size=(len(group), n_classes))
        z = slopes[group, None] * u + offsets[group]
        return softmax(u), (z + rng.gumbel(size=z.shape)).argmax(axis=1), group, softmax(z)

    p, y, group, _ = rows(sizes)
    p_test, _, group_test, truth = rows(np.full(n_groups, 1000))
    for name, proba in predict_methods(p, y, group, p_test, group_test):
        floored = np.maximum(proba, 1e-12)
        excess = (truth * np.log(np.maximum(truth, 1e-300) / floored)).sum(axis=1)
        means = [excess[group_test == number].mean() for number in range(n_groups)]
        yield name, float(np.mean(means)), f"{max(means):.4f}"


def cases(data: Path, n_draws: int) -> Iterator[tuple[str, str, int, Any]]:
    """All cases: data, rows, draw, and a function that computes the figures."""
    for draw in range(n_draws):
        for spread in (0.0, 0.3, 0.8):
            yield f"simulated, spread {spread:g}", "8,000", draw, (simulate, (spread, draw), {})
        for n_rows in (2_000, 10_000):
            for is_seen in (False, True):
                name = f"covertype, soils {'seen' if is_seen else 'unseen'}"
                arguments = (soils, (data, n_rows, draw), {"is_seen": is_seen})
                yield name, f"{n_rows:,}", draw, arguments


def show() -> None:
    """Print the mean over draws of each case and method."""
    with RESULTS.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    for key in dict.fromkeys((row["data"], row["rows"]) for row in table):
        print(*key)
        chosen = [row for row in table if (row["data"], row["rows"]) == key]
        for method in dict.fromkeys(row["method"] for row in chosen):
            rows = [row for row in chosen if row["method"] == method]
            worst = np.mean([float(row["worst"] or "nan") for row in rows])
            mean = np.mean([float(row["figure"]) for row in rows])
            print(f"  {method:<18} {mean:8.4f}  {worst:8.4f}  {len(rows)} draws")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data")
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    is_new = not RESULTS.exists()
    known = set()
    if not is_new:
        with RESULTS.open(encoding="utf-8") as file:
            known = {(row["data"], row["rows"], int(row["draw"])) for row in csv.DictReader(file)}
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(FIELDS)
        for name, rows, draw, (function, arguments, keywords) in cases(options.data, options.draws):
            if (name, rows, draw) not in known:
                figures = list(function(*arguments, **keywords))
                writer.writerows(
                    [name, rows, draw, method, f"{figure:.5f}", worst]
                    for method, figure, worst in figures
                )
                file.flush()
    show()


if __name__ == "__main__":
    main()
