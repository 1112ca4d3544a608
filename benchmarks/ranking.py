"""Rank the multiclass methods of Calibrant and of other packages on real predictions.

    python benchmarks/ranking.py --data ../shared/data --output benchmarks/records/ranking.md
    python benchmarks/ranking.py --data FOLDER --files kitti --sizes 50 200

FOLDER may contain files with ``labels`` and with ``logits`` or ``probs``, or with a split
(``val_logits`` and so on). Its subfolder ``uci`` may contain files with ``X`` and ``y``, for which
five scikit-learn classifiers make out-of-fold predictions. A case is a file and a number of
calibration rows. Cases are stored in ``benchmarks/results/ranking.csv``, so an interrupted run
continues. ``--again auto`` repeats the measurements of a method. Packages that cannot be imported
are reported and left out.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # before NumPy

# isort: split
import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from calibrant import method
from calibrant._output.progress import tracked
from calibrant.inference import critical_difference
from calibrant.metrics import brier_score, expected_calibration_error, log_loss
from calibrant.selection._table import markdown_table
from calibrant.selection.methods import METHODS
from prediction_files import LEFT_OUT, MIN_TEST_ROWS, Rows, load
from result_table import append_result, read_results

sys.path.append(str(Path(__file__).parent / "papers"))
from reproduction import short, write_text

RESULTS = Path(__file__).parent / "results" / "ranking.csv"
SIZES = (50, 200, 1000, 5000)
MATRIX_CLASSES = 110
SLOW = {"matrix", "dirichlet", "gp"}  # these are left out for more classes
CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "nbayes": GaussianNB(),
    "forest": RandomForestClassifier(random_state=0),
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
    "lda": LinearDiscriminantAnalysis(),
}
FAILED = [np.inf] * 4
MEASURES = ("log-loss", "Brier score", "debiased confidence error", "debiased class-wise error")


class Case(NamedTuple):
    file: Path
    classifier: str
    n_rows: int

    @property
    def name(self) -> str:
        stem = f"{self.file.stem}-{self.classifier}" if self.classifier else self.file.stem
        return f"{stem}--{self.n_rows}"


# Methods: functions of (probabilities, labels, probabilities to calibrate)


def calibrant_method(name: str) -> Callable[[Any, Any, Any], Any]:
    def run(P: Any, y: Any, Q: Any) -> Any:
        chosen = method(name)
        if METHODS[name].is_binary and P.shape[1] > 2:
            chosen = method(name, notion="class-wise")
        return chosen.fit(P, y).predict_proba(Q)

    return run


class _Echo:
    """A classifier with given probabilities, for the wrappers of scikit-learn."""

    _estimator_type = "classifier"

    def __init__(self, classes: Any = None) -> None:
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _Echo:
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return self.classes_[X.argmax(axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return LogisticRegression().__sklearn_tags__()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"classes": self.classes_}


def sklearn_method(kind: str) -> Callable[[Any, Any, Any], Any]:
    def run(P: Any, y: Any, Q: Any) -> Any:
        frozen = FrozenEstimator(_Echo(np.arange(P.shape[1])))
        return CalibratedClassifierCV(frozen, method=kind).fit(P, y).predict_proba(Q)

    return run


def netcal_method(name: str) -> Callable[[Any, Any, Any], Any]:
    import netcal.binning
    import netcal.scaling

    def run(P: Any, y: Any, Q: Any) -> Any:
        room = netcal.scaling if hasattr(netcal.scaling, name) else netcal.binning
        if P.shape[1] > 2:
            return getattr(room, name)().fit(P, y).transform(Q)
        first = getattr(room, name)().fit(P[:, 1], y).transform(Q[:, 1])
        return np.column_stack([1 - first, first])

    return run


def probmetrics_method(name: str) -> Callable[[Any, Any, Any], Any]:
    from probmetrics.calibrators import get_calibrator

    def run(P: Any, y: Any, Q: Any) -> Any:
        return get_calibrator(name).fit(P, y).predict_proba(Q)

    return run


PEERS = {
    **{
        f"sklearn {kind}": (sklearn_method, kind) for kind in ("sigmoid", "isotonic", "temperature")
    },
    **{
        f"netcal {name}": (netcal_method, name)
        for name in ("TemperatureScaling", "BetaCalibration", "LogisticCalibration", "ENIR", "BBQ")
    },
    **{
        f"probmetrics {name}": (probmetrics_method, name) for name in ("sms", "svs", "temp-scaling")
    },
}


def methods() -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Return the methods that can be imported. The others are reported on standard error."""
    available = {name: calibrant_method(name) for name in METHODS}
    for name, (make, argument) in PEERS.items():
        try:
            available[name] = make(argument)
        except ImportError as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr)
    return available


# Cases


def cases(folder: Path, wanted: list[str], sizes: list[int]) -> Iterator[Case]:
    files = [(p, "") for p in sorted(folder.glob("*.npz")) if not p.name.startswith(LEFT_OUT)]
    files += [(p, name) for p in sorted(folder.glob("uci/*.npz")) for name in CLASSIFIERS]
    for path, name in files:
        if not wanted or any(part in f"{path.stem}-{name}" for part in wanted):
            yield from (Case(path, name, n_rows) for n_rows in sizes)


def predictions(case: Case) -> tuple[Rows, Rows] | None:
    """Return calibration and test probabilities, or None if there are too few rows."""
    if case.classifier:
        with np.load(case.file, allow_pickle=False) as file:
            X, y = file["X"].astype(np.float64), np.unique(file["y"], return_inverse=True)[1]
        P = cross_val_predict(CLASSIFIERS[case.classifier], X, y, cv=3, method="predict_proba")
        pool, test = Rows(P, y), None
    else:
        kind, pool, test = load(case.file)
        as_proba = (lambda z: softmax(z.astype(np.float64), axis=1)) if kind == "logits" else normal
        pool = Rows(as_proba(pool.scores), pool.labels)
        test = test and Rows(as_proba(test.scores), test.labels)
    if case.n_rows > len(pool.labels) - (0 if test else MIN_TEST_ROWS):
        return None
    order = np.random.default_rng(0).permutation(len(pool.labels))
    fit, rest = order[: case.n_rows], order[case.n_rows :]
    return Rows(pool.scores[fit], pool.labels[fit]), test or Rows(
        pool.scores[rest], pool.labels[rest]
    )


def normal(P: Any) -> Any:
    P = P.astype(np.float64)
    return P / P.sum(axis=1, keepdims=True)


def errors_of(y: Any, proba: Any) -> list[float]:
    debiased = {"norm": 2, "debias": True}
    return [
        log_loss(y, proba),
        brier_score(y, proba),
        expected_calibration_error(y, proba, **debiased),
        expected_calibration_error(y, proba, notion="class-wise", **debiased),
    ]


def measure(case: Case, again: Sequence[str] = ()) -> None:
    """Measure and store the errors and the CPU seconds of every method, or the message of its
    failure.

    For a stored case, only the methods in ``again`` are measured.
    """
    warnings.simplefilter("ignore")
    results = read_results(RESULTS)
    outcomes: dict[str, Any] = results.get(case.name, {})
    parts = predictions(case) if outcomes or case.name not in results else None
    wanted = {name: run for name, run in methods().items() if not outcomes or name in again}
    for name, run in wanted.items() if parts else ():
        fit, test = parts
        if name in SLOW and fit.scores.shape[1] > MATRIX_CLASSES:
            continue
        begin = time.process_time()
        try:
            proba = run(fit.scores, fit.labels, test.scores)
            seconds = time.process_time() - begin
            measures = errors_of(test.labels, normal(proba))  # NaN counts as a failure
        except Exception as failure:
            outcomes[name] = {"failed": f"{type(failure).__name__}: {failure}"[:200]}
            continue
        outcomes[name] = {"measures": short(measures), "cpu": short(seconds)}
    append_result(RESULTS, case.name, outcomes)


# The page


FILES, UCI, MANY = "files", "UCI classifiers", f"more than {MATRIX_CLASSES} classes"
OURS = "auto"
Outcomes = dict[str, Any]
"""Results of a case by method."""


def page(results: dict[str, Outcomes]) -> str:
    filled = {case: outcomes for case, outcomes in results.items() if outcomes}
    names = list(dict.fromkeys(name for outcomes in filled.values() for name in outcomes))
    head = {"n_cases": len(filled), "n_methods": len(names), "most": MATRIX_CLASSES}
    head["n_sets"] = len(set(map(set_of, filled)))
    parts = [HEAD.format(**head, missing=missing(results))]
    parts.append(f"## Where the automatic choice is first, and where not\n\n{summary(filled)}")
    for size in SIZES:
        chosen = of_size(filled, size)
        usual = {case: f for case, f in chosen.items() if group_of(case, f) != MANY}
        many = {case: f for case, f in chosen.items() if group_of(case, f) == MANY}
        if usual:
            parts.append(f"## {size:,} rows to calibrate on\n\n{table(usual, names)}")
        if many:
            parts.append(f"### {size:,} rows, {MANY}\n\n{table(many, names)}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


HEAD = """# A ranking of today

`benchmarks/ranking.py` compares {n_methods} methods on {n_cases} cases of {n_sets} data sets. A
case is a file of real predictions, or a classifier on a UCI data set, with a number of calibration
rows. Methods of other packages have the name of the package in front.

Ranks are averaged within each data set first, because several classifiers of one data set are not
independent. They are then averaged over data sets, and 1 is best. Only methods that were run in all
cases are ranked. A method that failed in a case ranks last there, and counts as harm. Methods of
scikit-learn fail if a class has no rows, and NaN in a prediction is a failure. *Behind the first*
is the mean difference of the log-loss ranks to the first method, with its standard error over data
sets. Differences below two standard errors are not significant even without a correction for the
number of pairs. The critical difference (Nemenyi, 0.05) corrects for all pairs of methods.
*Harmed* is the share of cases whose log-loss exceeds the uncalibrated one by more than 0.005. CPU
seconds include a fit and a prediction, and are the median over cases. Files with more than {most}
classes have separate tables, without the methods that take minutes there.

**Used for the design.** The rules of the automatic choice were designed on these files, and its
rule for Dirichlet calibration on these UCI data sets. No data set was kept back, so the ranks of
`auto` are optimistic.
{missing}
"""


def missing(results: dict[str, Outcomes]) -> str:
    """List the cases of measured files that are missing."""
    files = dict.fromkeys(case.rpartition("--")[0] for case in results)
    left = [
        f"{file} with {size:,} rows"
        for file, size in product(files, SIZES)
        if f"{file}--{size}" not in results
    ]
    return f"Not run: {', '.join(left)}." if left else ""


def of_size(results: dict[str, Outcomes], size: int) -> dict[str, Outcomes]:
    return {case: outcomes for case, outcomes in results.items() if case.endswith(f"--{size}")}


def group_of(case: str, outcomes: Outcomes) -> str:
    if "matrix" not in outcomes:
        return MANY
    return UCI if case.rpartition("--")[0].rpartition("-")[2] in CLASSIFIERS else FILES


def summary(results: dict[str, Outcomes]) -> str:
    """Return mean log-losses of the best method, `auto` and the best other package, by rows and by
    group.
    """
    rows = []
    for size, group in product(SIZES, (FILES, UCI, MANY)):
        of_group = [f for case, f in of_size(results, size).items() if group_of(case, f) == group]
        if of_group:
            rows.append([f"{size:,}", group, len(of_group), *standing(mean_losses(of_group))])
    header = ["rows", "cases of", "cases", "first, mean log-loss", "automatic choice, place"]
    header += ["best peer", "ours - best peer"]
    note = "The means are over all cases. Only methods that never failed are shown."
    return f"{note}\n\n{markdown_table(header, rows)}"


def mean_losses(chosen: list[Outcomes]) -> dict[str, float]:
    """Return the mean log-loss of the methods that never failed, in ascending order."""
    names = [n for n in chosen[0] if all("measures" in outcomes.get(n, ()) for outcomes in chosen)]
    losses = {n: float(np.mean([outcomes[n]["measures"][0] for outcomes in chosen])) for n in names}
    return dict(sorted(losses.items(), key=lambda item: item[1]))


def standing(losses: dict[str, float]) -> list[str]:
    """Return the best method, the place of the automatic choice, the best other package, and the
    difference of the last two.
    """
    (first, least), place = next(iter(losses.items())), list(losses).index(OURS) + 1
    ours = losses[OURS]
    peers = {name: loss for name, loss in losses.items() if name in PEERS}
    cells = [f"{first} {least:.4f}", f"{ours:.4f}, {place} of {len(losses)}"]
    if not peers:
        return [*cells, "none without a failure", ""]
    peer, loss = next(iter(peers.items()))
    return [*cells, f"{peer} {loss:.4f}", f"{ours - loss:+.4f}"]


def set_of(case: str) -> str:
    """Return the data set of a case. For networks, it is the first part of the file name."""
    name = case.rpartition("--")[0]
    data, _, classifier = name.rpartition("-")
    return data if classifier in CLASSIFIERS else name.removeprefix("focal_").partition("_")[0]


def set_ranks(chosen: dict[str, Outcomes], common: list[str]) -> Any:
    """Return ranks averaged over the cases of each data set, (data sets, methods, measures)."""
    values = np.array(
        [
            [outcomes[name].get("measures", FAILED) for name in common]
            for outcomes in chosen.values()
        ]
    )
    ranks = rankdata(values, axis=1)
    sets = np.array([set_of(case) for case in chosen])
    return np.array([ranks[sets == name].mean(axis=0) for name in np.unique(sets)])


def table(chosen: dict[str, Outcomes], names: list[str]) -> str:
    outcomes = list(chosen.values())
    common = [name for name in names if all(name in case for case in outcomes)]
    ranks = set_ranks(chosen, common)
    mean, n_sets = ranks.mean(axis=0), len(ranks)
    behind = ranks[:, :, 0] - ranks[:, [mean[:, 0].argmin()], 0]
    rows = [
        [name, *mean[i], difference(behind[:, i]), *harm(outcomes, name)]
        for i, name in enumerate(common)
    ]
    rows.sort(key=lambda row: row[1])
    counts = f"{len(chosen)} cases of {n_sets} data sets"
    if n_sets > 1:
        gap = critical_difference(len(common), n_sets, method="nemenyi")
        counts += f", critical difference {gap:.2f}"
    measures = (f"rank, {measure}" for measure in MEASURES)
    header = ["method", *measures, "behind the first", "harmed", "CPU seconds"]
    return f"{counts}.\n\n{markdown_table(header, rows)}"


def difference(values: Any) -> str:
    """Return the mean and the standard error over data sets."""
    if len(values) < 2:
        return f"{values.mean():.2f}"
    return f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}"


def harm(chosen: list[dict[str, Any]], name: str) -> list[str]:
    base = [outcomes["identity"]["measures"][0] for outcomes in chosen]
    losses = [outcomes[name].get("measures", FAILED)[0] for outcomes in chosen]
    share = np.mean(np.subtract(losses, base) > 0.005)
    return [
        f"{share:.0%}",
        f"{np.nanmedian([outcomes[name].get('cpu', np.nan) for outcomes in chosen]):.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--files", nargs="*", default=[], help="parts of file names (default: all files)"
    )
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--output", type=Path, help="page to write (default: print it)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", nargs="*", default=[], help="methods to measure again")
    chosen = parser.parse_args()
    wanted = cases(chosen.data, chosen.files, chosen.sizes)
    finished = read_results(RESULTS)
    left = [case for case in wanted if chosen.again or case.name not in finished]
    done = Parallel(n_jobs=chosen.jobs, return_as="generator_unordered")(
        delayed(measure)(case, chosen.again) for case in left
    )
    for _ in tracked(done, total=len(left), description="ranking", progress=True):
        pass
    results = read_results(RESULTS)
    if chosen.output:
        write_text(chosen.output, page(results))
    else:
        print(page(results))


if __name__ == "__main__":
    main()
