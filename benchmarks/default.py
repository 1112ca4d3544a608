"""What users meet first, `CalibratedClassifier(model)`, beside scikit-learn's calibration.

    python benchmarks/default.py --data ../shared/data/uci --seeds 0 1 --output docs/default.md

Data sets of the UCI repository (as files) and of scikit-learn, eight families of classifiers, and
every method on the same splits: half of the rows, at most 1,200, to train and calibrate on, up to
1,500 others to judge. A classifier is trained once a fold and once on all rows; all methods replay
these fits, so that they differ in nothing but the calibration.

Resumable: a case (data set, family, seed) is a JSON file of losses in ``--results``; scores of its
fits are an ``.npz`` in ``--scores``, which another run replays after a change of the default.

Ends with exit code 1 where a criterion is not met.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
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

from calibrant import CalibratedClassifier
from calibrant._data.folds import stratified_rows
from calibrant.metrics import log_loss

MOST_TRAINED, MOST_JUDGED, N_FOLDS = 1200, 1500, 5
OURS, RAW = "default", "uncalibrated"
RIVALS = {
    f"{method}, {'ensemble' if ensemble else 'one fit'}": (method, ensemble)
    for method in ("sigmoid", "isotonic", "temperature")
    for ensemble in (True, False)
}
UCI = (
    *("abalone", "balance-scale", "car", "cleveland", "dermatology", "glass"),
    *("landsat-satellite", "libras-movement", "mfeat-zernike", "page-blocks", "pendigits"),
    *("segment", "vehicle", "vowel", "waveform-5000", "yeast"),
)
BUNDLED: dict[str, Callable[..., Any]] = {
    "breast": load_breast_cancer,
    "digits": load_digits,
    "iris": load_iris,
    "wine": load_wine,
}
MOST_LOST, MOST_HARM = 0.02, 0.01
MANY_JUDGED, FEW_JUDGED = 500, 75
PARTS = "parts"


class Case(NamedTuple):
    data: str
    family: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.family}-{self.seed}"


class Fits(NamedTuple):
    """Probabilities and, where there are any, decision values of the fits of the folds and of all
    rows (the last), for all rows; labels, the number of rows to train on, and their folds.
    """

    proba: Any
    decision: Any
    y: Any
    n_train: int
    fold: Any


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
    """Rows in the order of the seed, those to train on first, of classes that occur there."""
    X, labels = load(case.data, folder)
    y = np.unique(labels, return_inverse=True)[1]
    order = np.random.default_rng(case.seed).permutation(len(y))
    X, y = X[order], y[order]
    n_train = min(len(y) // 2, MOST_TRAINED)
    n_all = n_train + min(len(y) - n_train, MOST_JUDGED)
    seen = np.unique(y[:n_train])
    kept = np.flatnonzero(np.isin(y[:n_all], seen))
    return X[kept], np.searchsorted(seen, y[kept]), n_train


def fits_of(case: Case, folder: Path, scores: Path | None) -> Fits:
    path = None if scores is None else scores / f"{case.name}.npz"
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as file:
            return Fits(*(file[k] for k in ("P", "DF", "y")), int(file["ntr"]), file["fold"])
    made = train(case, folder)
    if path is not None:
        parts = dict(zip(("P", "DF", "y", "ntr", "fold"), made, strict=True))
        np.savez(path, **parts)
    return made


def train(case: Case, folder: Path) -> Fits:
    return train_on(families(case.seed)[case.family], *drawn(case, folder))


def train_on(model: Any, X: Any, y: Any, n_train: int) -> Fits:
    """Fits of a classifier on the folds and on all of the first rows, with scores of all rows."""
    proba, decision, fold = [], [], np.empty(n_train, dtype=int)
    parts = list(stratified_rows(N_FOLDS, y[:n_train]))
    for j, (_, held) in enumerate(parts):
        fold[held] = j
    for rows in [*(rows for rows, _ in parts), np.arange(n_train)]:
        fitted = clone(model).fit(X[rows], y[rows])
        proba.append(_all_columns(fitted, fitted.predict_proba(X), y, 0.0))
        if hasattr(fitted, "decision_function"):
            decision.append(_all_columns(fitted, fitted.decision_function(X), y, -np.inf))
    return Fits(np.array(proba), np.array(decision), y, n_train, fold)


def _all_columns(fitted: Any, values: Any, y: Any, missing: float) -> Any:
    if values.ndim == 1:
        return values[:, None]
    out = np.full((len(values), y.max() + 1), missing)
    out[:, fitted.classes_] = values
    return out


class Replayed(ClassifierMixin, BaseEstimator):
    """A classifier whose fits were made before: the rows of X are numbers of rows."""

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
    """One that has decision values too."""

    def decision_function(self, X: Any) -> Any:
        values = self.decision_[X[:, 0].astype(int)]
        return values[:, 0] if values.shape[1] == 1 else values[:, self.classes_]


def _key(rows: Any) -> bytes:
    return np.sort(rows).astype(np.int64).tobytes()


def losses(fits: Fits) -> dict[str, Any]:
    """Test log-loss of every method, and in `PARTS` those of as many rows as the smallest sets have
    to judge; of one that fails, that of the uniform forecast.
    """
    n_train, is_decided = fits.n_train, len(fits.decision) > 0
    folds = [(np.flatnonzero(fits.fold != j), np.flatnonzero(fits.fold == j)) for j in _folds(fits)]
    tables = {
        _key(rows): (fits.proba[j], fits.decision[j] if is_decided else None)
        for j, rows in enumerate([*(rows for rows, _ in folds), np.arange(n_train)])
    }
    X, y = np.arange(len(fits.y), dtype=float)[:, None], fits.y
    replayed = (ReplayedDecision if is_decided else Replayed)(tables)
    methods = {OURS: CalibratedClassifier(replayed, cv=folds)} | {
        name: CalibratedClassifierCV(replayed, method=method, cv=folds, ensemble=ensemble)
        for name, (method, ensemble) in RIVALS.items()
    }
    truth, forecasts = y[n_train:], {RAW: fits.proba[-1][n_train:]}
    for name, method in methods.items():
        try:
            proba = method.fit(X[:n_train], y[:n_train]).predict_proba(X[n_train:])
        except (ValueError, IndexError, FloatingPointError):
            proba = np.full((len(truth), y.max() + 1), 1.0 / (y.max() + 1))
        forecasts[name] = proba
    parts = [slice(i, i + FEW_JUDGED) for i in range(0, len(truth) - FEW_JUDGED + 1, FEW_JUDGED)]
    return {name: log_loss(truth, _rows(proba)) for name, proba in forecasts.items()} | {
        PARTS: {
            name: [log_loss(truth[part], _rows(proba[part])) for part in parts]
            for name, proba in forecasts.items()
        }
    }


def _folds(fits: Fits) -> range:
    return range(int(fits.fold.max()) + 1)


def _rows(proba: Any) -> Any:
    return proba / proba.sum(axis=1, keepdims=True)


def run(cases: list[Case], options: argparse.Namespace) -> dict[Case, dict[str, float]]:
    done = {}
    for number, case in enumerate(cases):
        path = options.results / f"{case.name}.json"
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classifiers that are small on purpose
                made = losses(fits_of(case, options.data, options.scores))
            path.write_text(json.dumps(made))
            print(f"{number + 1} of {len(cases)}: {case.name}", file=sys.stderr, flush=True)
        done[case] = json.loads(path.read_text())
    return done


# The report.


def table(done: dict[Case, dict[str, float]]) -> Any:
    """Losses (cases, methods)."""
    return np.array([[row[name] for name in _methods()] for row in done.values()])


def _methods() -> list[str]:
    return [OURS, RAW, *RIVALS]


def by_family(done: dict[Case, dict[str, float]], what: Callable[[Any], Any]) -> Iterator[str]:
    yield "| family | cases | " + " | ".join(_methods()) + " |"
    yield "| --- | ---: " + "| ---: " * len(_methods()) + "|"
    found = dict.fromkeys(case.family for case in done)
    for family in [*found, "all"]:
        own = {c: row for c, row in done.items() if family in (c.family, "all")}
        values = what(table(own))
        best = values.min()
        cells = [f"**{v:.3f}**" if v <= best + 5e-4 else f"{v:.3f}" for v in values.tolist()]
        yield f"| {family} | {len(own)} | " + " | ".join(cells) + " |"


def mean_ranks(values: Any) -> Any:
    return rankdata(values, axis=1).mean(axis=0)


def lost(done: dict[Case, dict[str, float]]) -> dict[Case, float]:
    """By how much the default loses to the best method of scikit-learn."""
    return {case: row[OURS] - min(row[name] for name in RIVALS) for case, row in done.items()}


def over_seeds(done: dict[Case, dict[str, float]]) -> dict[Case, dict[str, float]]:
    """Losses of a data set and a family, averaged over the splits that all of them have."""
    grouped: dict[Case, list[dict[str, float]]] = {}
    for case, row in done.items():
        grouped.setdefault(case._replace(seed=-1), []).append(row)
    return {
        case: {name: float(np.mean([row[name] for row in rows])) for name in _methods()}
        for case, rows in grouped.items()
    }


def share_of_parts_lost(done: dict[Case, dict[str, Any]]) -> float:
    """How often the default would lose, were the test rows as few as those of small sets."""
    parts = [row[PARTS] for row in done.values()]
    own = np.concatenate([part[OURS] for part in parts])
    best = np.concatenate([np.min([part[name] for name in RIVALS], axis=0) for part in parts])
    return float((own > best + MOST_LOST).mean())


def share_lost(done: dict[Case, dict[str, float]]) -> float:
    return float(np.mean([value > MOST_LOST for value in lost(done).values()]))


def n_judged(case: Case, folder: Path) -> int:
    n_rows = len(load(case.data, folder)[1])
    return min(n_rows - min(n_rows // 2, MOST_TRAINED), MOST_JUDGED)


def harm(done: dict[Case, dict[str, float]]) -> dict[Case, float]:
    return {case: row[OURS] - row[RAW] for case, row in done.items()}


def share_harmed(done: dict[Case, dict[str, float]]) -> float:
    return float(np.mean([value > MOST_HARM for value in harm(done).values()]))


def failures(done: dict[Case, dict[str, float]]) -> Iterator[str]:
    """Criteria that are not met."""
    for family in dict.fromkeys(case.family for case in done):
        values = table({c: row for c, row in done.items() if c.family == family})
        for said, figures in (("loss", values.mean(axis=0)), ("rank", mean_ranks(values))):
            best = int(figures.argmin())
            if best:
                rival = f"{_methods()[best]} {min(figures):.3f}"
                yield f"{family}: mean {said} {figures[0]:.3f}, {rival}"
    if (share := share_lost(done)) > 0.02:
        yield f"{share:.1%} lose by more than {MOST_LOST}"
    if (share := share_harmed(done)) > 0.01:
        yield f"{share:.1%} are harmed by more than {MOST_HARM}"


def words_about_losing(done: dict[Case, dict[str, float]], folder: Path) -> str:
    """How much of what is lost is the chance of few test rows."""
    rows = {name: n_judged(Case(name, "", 0), folder) for name in {c.data for c in done}}
    many = {case: row for case, row in done.items() if rows[case.data] >= MANY_JUDGED}
    few = {case: row for case, row in done.items() if rows[case.data] < MANY_JUDGED}
    return (
        "The best of six is chosen by the test rows, for every case anew: nobody can have it. Few "
        f"test rows choose by chance: of the {len(many)} cases that {MANY_JUDGED} or more rows "
        f"judge {share_lost(many):.1%} lose by more than {MOST_LOST}, of the {len(few)} others "
        f"{share_lost(few):.1%}. That is what few rows do: cut into parts of {FEW_JUDGED} test "
        f"rows, the former lose in {share_of_parts_lost(many):.1%} of the parts. With losses "
        "averaged over the splits of a data set, so that the "
        f"best of six is one method for all of them, {share_lost(over_seeds(done)):.1%} of "
        f"{len(over_seeds(done))} pairs of a data set and a family do, and "
        f"{share_harmed(over_seeds(done)):.1%} of the pairs are harmed by more than {MOST_HARM}."
    )


def report(done: dict[Case, dict[str, float]], folder: Path) -> str:
    values, bad = table(done), list(failures(done))
    rivals = values[:, 2:]
    shares = [
        f"| {name} | {(own > rivals.min(axis=1) + MOST_LOST).mean():.1%} | "
        f"{(own > values[:, 1] + MOST_HARM).mean():.1%} |"
        for name, own in zip(_methods(), values.T, strict=True)
    ]
    worst = sorted(lost(done).items(), key=lambda pair: -pair[1])[:10]
    sets, seeds = {c.data for c in done}, sorted({c.seed for c in done})
    return "\n".join(
        [
            "# The default beside scikit-learn",
            "",
            f"Made by `benchmarks/default.py`: `CalibratedClassifier(model)` and scikit-learn's "
            f"`CalibratedClassifierCV` on {len(sets)} data sets, eight families of classifiers and "
            f"seed(s) {', '.join(map(str, seeds))}: {len(done)} cases. Half of the rows, at most "
            f"{MOST_TRAINED:,}, train and calibrate; up to {MOST_JUDGED:,} others judge. All "
            "methods replay the same fits. A method that raises is given the uniform forecast.",
            "",
            "## Mean test log-loss",
            "",
            *by_family(done, lambda x: x.mean(axis=0)),
            "",
            "## Mean rank",
            "",
            *by_family(done, mean_ranks),
            "",
            "## How often it loses, and how often it harms",
            "",
            f"| method | worse than scikit-learn's best of six by > {MOST_LOST} | worse than "
            f"uncalibrated by > {MOST_HARM} |",
            "| --- | ---: | ---: |",
            *shares,
            "",
            words_about_losing(done, folder),
            "",
            "Largest losses of the default: "
            + ", ".join(f"{case.name} {value:+.3f}" for case, value in worst)
            + ".",
            "",
            "Criteria: the best mean log-loss and the best mean rank in every family; at most 2 % "
            f"lose by more than {MOST_LOST}, at most 1 % are harmed by more than {MOST_HARM}. "
            + ("All are met." if not bad else "Not met: " + "; ".join(bad) + "."),
            "",
            f"Data sets: {', '.join(sorted(sets))}.",
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data/uci"))
    parser.add_argument("--sets", nargs="*", default=[*UCI, *BUNDLED])
    parser.add_argument("--families", nargs="*", default=list(families(0)))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--results", type=Path, default=Path("default-results"))
    parser.add_argument("--scores", type=Path, help="where scores of the fits are kept")
    parser.add_argument("--output", type=Path, help="where to write the tables")
    options = parser.parse_args()
    for folder in (options.results, options.scores):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    cases = [
        Case(name, family, seed)
        for seed in options.seeds
        for name in options.sets
        for family in options.families
    ]
    done = run(cases, options)
    text = report(done, options.data)
    print(text)
    if options.output:
        options.output.write_text(text)
    return 1 if list(failures(done)) else 0


if __name__ == "__main__":
    sys.exit(main())
