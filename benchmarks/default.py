"""Compare `CalibratedClassifier(model)` with scikit-learn's calibration on real data sets.

    python benchmarks/default.py --data ../shared/data/uci --seeds 0 1 2 \\
        --output benchmarks/records/default.md

Half of the rows of a data set, at most 1,200, train and calibrate; up to 4,000 others are test
rows. A classifier is fitted once for each set of training rows, and all methods reuse these fits.

Results are rows of a CSV file (data set, family, seed, method). Cases that it holds are not
measured again, so an interrupted run continues, and several processes can share the work by
different ``--sets`` and ``--results``. Ends with exit code 1 if a criterion is not met.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import csv
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier, TemperatureScaling
from calibrant._data.folds import stratified_rows
from calibrant.classifier._ensemble import combine_folds
from calibrant.metrics import expected_calibration_error, log_loss

MOST_TRAINED, MOST_TESTED, N_FOLDS = 1200, 4000, 5
MANY_TESTED = 2000
"""Number of test rows from which the gap of a single data set is evaluated."""

OURS, SINGLE, AVERAGED, RAW = "default", "one fit", "average of calibrated fits", "uncalibrated"
RIVALS = {
    f"{method}, {'ensemble' if ensemble else 'one fit'}": (method, ensemble)
    for method in ("sigmoid", "isotonic", "temperature")
    for ensemble in (True, False)
}
METHODS = (OURS, RAW, SINGLE, AVERAGED, *RIVALS)

DESIGN = (
    *("abalone", "balance-scale", "breast", "car", "cleveland", "dermatology", "digits", "glass"),
    *("iris", "mfeat-zernike", "page-blocks", "segment", "vehicle", "vowel", "yeast"),
)
"""Data sets on which the ensemble was designed."""

KEPT_BACK = (
    *("landsat-satellite", "libras-movement", "mfeat-karhunen", "mfeat-morphological"),
    *("optdigits", "pendigits", "shuttle", "waveform-5000", "wine"),
)
BUNDLED: dict[str, Callable[..., Any]] = {
    "breast": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}
MOST_GAP, MOST_SINGLE_GAP, MOST_EXCESS = 0.02, 0.05, 0.01


class Case(NamedTuple):
    """A data set, a family of classifiers and the seed of the split."""

    data: str
    family: str
    seed: int


class Scores(NamedTuple):
    """Test scores of a method in a case."""

    loss: float
    """Mean log-loss."""

    gap: float
    """Mean confidence minus accuracy."""

    error: float
    """Debiased root-mean-square calibration error of the confidence, 15 quantile bins."""

    excess: float
    """Log-loss minus the log-loss after a temperature fitted on the test rows."""

    n_tested: float


class Fits(NamedTuple):
    """Probabilities and, if there are any, decision values of all rows, for each set of training
    rows; labels, the number of rows to train on, and their folds.
    """

    tables: dict[bytes, tuple[Any, Any]]
    y: Any
    n_train: int
    folds: list[tuple[Any, Any]]


def families(seed: int) -> dict[str, Any]:
    def scaled(model: Any) -> Any:
        return make_pipeline(StandardScaler(), model)

    return {
        "forest": RandomForestClassifier(100, random_state=seed),
        "hgb": HistGradientBoostingClassifier(max_iter=50, random_state=seed),
        "nb": GaussianNB(),
        "logistic": scaled(LogisticRegression(max_iter=300)),
        "mlp": scaled(MLPClassifier((64,), max_iter=80, random_state=seed)),
        "knn": scaled(KNeighborsClassifier()),
        "tree": DecisionTreeClassifier(random_state=seed),
        "ada": AdaBoostClassifier(n_estimators=50, random_state=seed),
    }


def load(name: str, folder: Path) -> tuple[Any, Any]:
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        return file["X"].astype(float), file["y"]


def drawn(case: Case, folder: Path) -> tuple[Any, Any, int]:
    """Return rows in random order, training rows first, without classes that they lack."""
    X, labels = load(case.data, folder)
    y = np.unique(labels, return_inverse=True)[1]
    order = np.random.default_rng(case.seed).permutation(len(y))
    X, y = X[order], y[order]
    n_train = min(len(y) // 2, MOST_TRAINED)
    n_all = n_train + min(len(y) - n_train, MOST_TESTED)
    seen = np.unique(y[:n_train])
    kept = np.flatnonzero(np.isin(y[:n_all], seen))
    return X[kept], np.searchsorted(seen, y[kept]), n_train


def train_on(model: Any, X: Any, y: Any, n_train: int) -> Fits:
    """Fit a classifier on all of the first rows, without each fold and without each pair."""
    folds = list(stratified_rows(N_FOLDS, y[:n_train]))
    tables = {}
    for rows, _ in [*folds, *combine_folds(folds, n_train), (np.arange(n_train), None)]:
        fitted = clone(model).fit(X[rows], y[rows])
        proba = _all_columns(fitted, fitted.predict_proba(X), y, 0.0)
        decision = None
        if hasattr(fitted, "decision_function"):
            decision = _all_columns(fitted, fitted.decision_function(X), y, -np.inf)
        tables[_key(rows)] = proba, decision
    return Fits(tables, y, n_train, folds)


def _all_columns(fitted: Any, values: Any, y: Any, missing: float) -> Any:
    if values.ndim == 1:
        return values[:, None]
    out = np.full((len(values), y.max() + 1), missing)
    out[:, fitted.classes_] = values
    return out


class Replayed(ClassifierMixin, BaseEstimator):
    """A classifier that returns stored fits. The rows of X are indices of rows."""

    def __init__(self, tables: Any = None) -> None:
        self.tables = tables

    def __sklearn_clone__(self) -> Replayed:
        return type(self)(self.tables)

    def fit(self, X: Any, y: Any) -> Replayed:
        self.classes_ = np.unique(y)
        self.proba_, self.decision_ = self.tables[_key(X[:, 0])]
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:
        return self.proba_[X[:, 0].astype(int)][:, self.classes_]


class ReplayedDecision(Replayed):
    """A replayed classifier with decision values."""

    def decision_function(self, X: Any) -> Any:
        values = self.decision_[X[:, 0].astype(int)]
        return values[:, 0] if values.shape[1] == 1 else values[:, self.classes_]


def _key(rows: Any) -> bytes:
    return np.sort(rows).astype(np.int64).tobytes()


class AveragedFits:
    """One calibrator of single fits, and the average of six calibrated fits: an earlier default.

    It shows what calibrating the members of an ensemble does, compared with calibrating the
    ensemble.
    """

    def __init__(self, replayed: Replayed, folds: Sequence[tuple[Any, Any]]) -> None:
        self.replayed, self.folds = replayed, folds

    def fit(self, X: Any, y: Any) -> AveragedFits:
        self.single_ = CalibratedClassifier(self.replayed, cv=self.folds, ensemble=False).fit(X, y)
        rows = [*(train for train, _ in self.folds), np.arange(len(y))]
        self.fits_ = [clone(self.replayed).fit(X[some], y[some]) for some in rows]
        return self

    def predict_proba(self, X: Any) -> Any:
        single = self.single_
        scores = [getattr(fitted, single.score_method_)(X) for fitted in self.fits_]
        known = [s for s, f in zip(scores, self.fits_, strict=True) if len(f.classes_) == self._k]
        return np.mean([single.calibrator_.predict_proba(_two_columns(s)) for s in known], axis=0)

    @property
    def _k(self) -> int:
        return len(self.single_.classes_)


def _two_columns(scores: Any) -> Any:
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores


def forecasts(fits: Fits) -> dict[str, Any]:
    """Return test probabilities of every method. A method that fails predicts uniformly."""
    n_train, y, folds = fits.n_train, fits.y, fits.folds
    X = np.arange(len(y), dtype=float)[:, None]
    whole, decision = fits.tables[_key(np.arange(n_train))]
    replayed = (Replayed if decision is None else ReplayedDecision)(fits.tables)
    methods = {
        OURS: CalibratedClassifier(replayed, cv=folds),
        SINGLE: CalibratedClassifier(replayed, cv=folds, ensemble=False),
        AVERAGED: AveragedFits(replayed, folds),
    } | {
        name: CalibratedClassifierCV(replayed, method=method, cv=folds, ensemble=ensemble)
        for name, (method, ensemble) in RIVALS.items()
    }
    out = {RAW: whole[n_train:]}
    for name, method in methods.items():
        try:
            out[name] = method.fit(X[:n_train], y[:n_train]).predict_proba(X[n_train:])
        except (ValueError, IndexError, FloatingPointError, RuntimeError):
            out[name] = np.full((len(y) - n_train, y.max() + 1), 1.0 / (y.max() + 1))
    return out


def scores_of(fits: Fits) -> dict[str, Scores]:
    """Return the scores of every method on the test rows."""
    truth = fits.y[fits.n_train :]
    return {name: _score(truth, _rows(proba)) for name, proba in forecasts(fits).items()}


def _score(truth: Any, proba: Any) -> Scores:
    tempered = TemperatureScaling().fit(proba, truth).predict_proba(proba)
    loss = log_loss(truth, proba)
    return Scores(
        loss=loss,
        gap=float(proba.max(axis=1).mean() - (proba.argmax(axis=1) == truth).mean()),
        error=expected_calibration_error(truth, proba, strategy="quantile", norm=2, debias=True),
        excess=loss - log_loss(truth, tempered),
        n_tested=len(truth),
    )


def _rows(proba: Any) -> Any:
    return proba / proba.sum(axis=1, keepdims=True)


Results = dict[Case, dict[str, Scores]]
COLUMNS = ("data", "family", "seed", "method", *Scores._fields)


def read_results(path: Path) -> Results:
    results: Results = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                case = Case(row["data"], row["family"], int(row["seed"]))
                scores = Scores(*(float(row[name]) for name in Scores._fields))
                results.setdefault(case, {})[row["method"]] = scores
    return {case: scores for case, scores in results.items() if len(scores) == len(METHODS)}


def run(cases: Iterable[Case], options: argparse.Namespace) -> Results:
    results, cases = read_results(options.results), list(cases)
    for number, case in enumerate(cases):
        if case in results:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classifiers that are small on purpose
            model = families(case.seed)[case.family]
            results[case] = scores_of(train_on(model, *drawn(case, options.data)))
        _append(options.results, case, results[case])
        print(f"{number + 1} of {len(cases)}: {'-'.join(map(str, case))}", file=sys.stderr)
    return {case: results[case] for case in cases}


def _append(path: Path, case: Case, scores: dict[str, Scores]) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(COLUMNS)
        for name in METHODS:
            writer.writerow([*case, name, *(f"{value:.6g}" for value in scores[name])])


# The report. Values are averaged over the splits of a data set first: data sets are independent,
# splits of one data set are not.


def table(results: Results, family: str, field: Callable[[Scores], float]) -> Any:
    """Return means over splits, (data sets, methods)."""
    sets = dict.fromkeys(case.data for case in results)
    rows = [
        [[field(scores[m]) for m in METHODS] for c, scores in results.items() if _is(c, d, family)]
        for d in sets
    ]
    return np.array([np.mean(row, axis=0) for row in rows if row])


def _is(case: Case, data: str, family: str) -> bool:
    return case.data == data and family in (case.family, "all")


def by_family(
    results: Results, field: Callable[[Scores], float], mean: Callable[[Any], Any]
) -> Iterator[str]:
    yield "| family | cases | " + " | ".join(METHODS) + " |"
    yield "| --- | ---: " + "| ---: " * len(METHODS) + "|"
    families_ = list(dict.fromkeys(case.family for case in results))
    for family in [*families_, "all"]:
        values = mean(table(results, family, field))
        if family == "all" and mean is mean_absolute:  # signs of families must not cancel
            values = np.mean([mean(table(results, one, field)) for one in families_], axis=0)
        n_cases = sum(family in (case.family, "all") for case in results)
        yield f"| {family} | {n_cases} | " + " | ".join(f"{v:.3f}" for v in values) + " |"


def mean_of(values: Any) -> Any:
    return values.mean(axis=0)


def mean_absolute(values: Any) -> Any:
    return abs(values).mean(axis=0)


def mean_ranks(values: Any) -> Any:
    return rankdata(values, axis=1).mean(axis=0)


def differences(results: Results) -> Iterator[str]:
    """Yield the mean difference in log-loss to the default, with standard errors over data sets."""
    values = table(results, "all", lambda s: s.loss)
    yield "| method | mean log-loss minus the default's | standard error | data sets won |"
    yield "| --- | ---: | ---: | ---: |"
    for place, name in enumerate(METHODS[1:], start=1):
        gain = values[:, place] - values[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        yield f"| {name} | {gain.mean():+.4f} | {error:.4f} | {(gain > 0).sum()} of {len(gain)} |"


def failures(results: Results) -> Iterator[str]:
    """Return the criteria that are not met."""
    for family in dict.fromkeys(case.family for case in results):
        losses_ = table(results, family, lambda s: s.loss)
        for what, figures in (("log-loss", mean_of(losses_)), ("rank", mean_ranks(losses_))):
            best = int(figures.argmin())
            if best:
                yield f"{family}: mean {what} {figures[0]:.3f}, {METHODS[best]} {min(figures):.3f}"
        gaps = abs(table(results, family, lambda s: s.gap))[:, 0]
        if gaps.mean() > MOST_GAP:
            yield f"{family}: mean |confidence - accuracy| {gaps.mean():.3f}"
        excess = table(results, family, lambda s: s.excess)[:, 0]
        if excess.mean() > MOST_EXCESS:
            yield f"{family}: a temperature of the test rows gains {excess.mean():.3f}"
    for case, scores in over_seeds(results).items():
        if scores.n_tested >= MANY_TESTED and abs(scores.gap) >= MOST_SINGLE_GAP:
            yield f"{case.data}, {case.family}: confidence - accuracy {scores.gap:+.3f}"


def over_seeds(results: Results) -> dict[Case, Scores]:
    """Return scores of the default, averaged over the splits of a data set and a family."""
    grouped: dict[Case, list[Scores]] = {}
    for case, scores in results.items():
        grouped.setdefault(case._replace(seed=-1), []).append(scores[OURS])
    return {case: Scores(*np.mean(rows, axis=0)) for case, rows in grouped.items()}


def sections(results: Results) -> Iterator[str]:
    for title, field, mean in (
        ("Mean test log-loss", lambda s: s.loss, mean_of),
        ("Mean rank by log-loss", lambda s: s.loss, mean_ranks),
        ("Mean confidence minus accuracy", lambda s: s.gap, mean_of),
        ("Mean absolute value of confidence minus accuracy", lambda s: s.gap, mean_absolute),
        ("Mean debiased calibration error", lambda s: s.error, mean_of),
        ("Log-loss above that after a temperature of the test rows", lambda s: s.excess, mean_of),
    ):
        yield from ("", f"### {title}", "", *by_family(results, field, mean))
    yield from ("", "### Difference to the default", "", *differences(results))


def report(results: Results) -> str:
    seeds = sorted({case.seed for case in results})
    bad = list(failures(results))
    lines = [
        "# Comparison of the default with scikit-learn",
        "",
        "`CalibratedClassifier(model)` compared with scikit-learn's `CalibratedClassifierCV` on "
        f"{len({case.data for case in results})} data sets, eight families of classifiers and "
        f"{len(seeds)} random splits ({len(results)} cases). Half of the rows, at most "
        f"{MOST_TRAINED:,}, train and calibrate; up to {MOST_TESTED:,} others are test rows. All "
        "methods use the same fits. Lower is better, except for confidence minus accuracy, whose "
        "best value is 0. Means are over data sets, after averaging over splits.",
        "",
        "The ensemble was designed on 15 data sets. Its correction for the number of fits was then "
        "chosen among about twenty variants by the results on all 24 data sets. The data sets kept "
        "back are therefore not independent evidence for this correction.",
        "",
        f'"{SINGLE}" is `ensemble=False`. "{AVERAGED}" calibrates six single fits and averages '
        "them, which leaves the average underconfident.",
    ]
    groups = {
        "## All data sets": results,
        f"## Data sets kept back ({', '.join(KEPT_BACK)})": _some(results, KEPT_BACK),
        f"## Data sets used for the design ({', '.join(DESIGN)})": _some(results, DESIGN),
    }
    for heading, chosen in groups.items():
        if chosen:
            lines += ["", heading, *sections(chosen)]
    criteria = "All criteria are met." if not bad else "Not met: " + "; ".join(bad) + "."
    return "\n".join([*lines, "", "## Criteria", "", criteria, ""])


def _some(results: Results, sets: Sequence[str]) -> Results:
    return {case: scores for case, scores in results.items() if case.data in sets}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/uci"))
    parser.add_argument("--sets", nargs="*", default=[*KEPT_BACK, *DESIGN])
    parser.add_argument("--families", nargs="*", default=list(families(0)))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/default.csv"))
    parser.add_argument("--output", type=Path, help="where to write the page")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    cases = (
        Case(name, family, seed)
        for seed in options.seeds
        for name in options.sets
        for family in options.families
    )
    results = run(cases, options)
    text = report(results)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if list(failures(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
