"""Is the caution of `AutoCalibration` fitted to the files that judge it? Rules chosen with files
left out in turn.

    python benchmarks/caution.py --data ../shared/data --pools pools

A rule says how many folds there are, how much of a row the caution is worth, up to how many errors
it counts in full, whether it ends beyond doubt, and whether many classes with few rows have an
averaged temperature alone. For every file a rule is chosen on all other files: that of highest mean
gain in log-loss among those that harm by more than 0.005 in at most 2 % of the cases (where there
are none, among those that do so least often). It is then judged on the file that was left out. The
correction of the top probability, which few rows hardly ever have, does not take part.

A second table asks which prior of the temperature does best where there are 100 classes or more and
few rows: probabilities averaged over the posterior of the logarithm of the temperature, for priors
of several shapes, centres and widths; and what priors gain that were chosen without the file that
judges them.

Resumable: what members gave to the rows of a case is an ``.npz`` in ``--pools``.
"""

from __future__ import annotations

import _one_thread  # noqa: F401  # must come before NumPy

# isort: split
import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp

from calibrant import Identity
from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.folds import as_folds
from calibrant._kernels.simplex import EPS, true_class
from calibrant._output.progress import tracked
from calibrant.exceptions import ConvergenceWarning
from calibrant.selection._candidates import default_candidates
from calibrant.selection._pool import (
    BEYOND_DOUBT,
    FEW_ERRORS,
    GainOnOthers,
    Pool,
    _best_weights,
    _gain_on_others,
    fit_members,
    is_thin,
    pool_members,
)
from do_no_harm import GROUPS, Case, Rows, cases, load

SIZES, SEEDS, FOLDS = (30, 50, 100, 300), range(5), (5, 20)
MOST_JUDGED, MOST_HARMED, HARM, MANY = 2000, 0.02, 0.005, 100
ALONE = "temperature alone"
MATRIX_CLASSES = 55
"""The member that has all of the weight where many classes have few rows each."""


class Rule(NamedTuple):
    folds: int
    share: float
    few_errors: float
    is_ended: bool
    is_alone: bool

    def __str__(self) -> str:
        ended = "ends beyond doubt" if self.is_ended else "never ends"
        alone = "temperature alone" if self.is_alone else "all members"
        said = f"{self.folds} folds, caution {self.share:g}, {self.few_errors:g} errors"
        return f"{said}, {ended}, {alone}"


RULES = [
    rule
    for each in product(FOLDS, (0.0, 0.5, 1.0), (2.0, 4.0, 8.0), (False, True), (False, True))
    if (rule := Rule(*each)).share or (rule.few_errors == 2.0 and not rule.is_ended)
]
"""Without caution there is nothing that counts, or ends."""

OURS = Rule(20, 1.0, FEW_ERRORS, is_ended=True, is_alone=True)
"""That of the library below 100 rows; it has 5 folds from there on."""


class Given(NamedTuple):
    """Probabilities that members gave to what happened: out of fold, by the number of folds, and in
    test rows.
    """

    names: list[str]
    pools: dict[int, Pool]
    test: Any


def given(case: Case, folder: Path) -> Given:
    path = folder / f"{case.name}.npz"
    if not path.exists():
        np.savez_compressed(path, **fitted(case))
    with np.load(path, allow_pickle=False) as file:
        data = {name: file[name] for name in file.files}
    pools = {
        n: Pool(*(data[f"{field}_{n}"] for field in ("given", "weight", "fold", "wrong")))
        for n in FOLDS
    }
    return Given([str(name) for name in data["names"]], pools, data["test"])


def rows_of(case: Case) -> tuple[str, Any, Any, Any, Any]:
    """Kind of scores, rows to calibrate on and rows that judge, as in `do_no_harm`."""
    kind, pool, test = load(case.file)
    order = np.random.default_rng(case.seed).permutation(len(pool.labels))
    fit, rest = order[: case.n_rows], order[case.n_rows :]
    judge = test or Rows(pool.scores[rest], pool.labels[rest])
    X, Z = (
        np.asarray(scores, np.float64) for scores in (pool.scores[fit], judge.scores[:MOST_JUDGED])
    )
    y, truth = (
        np.asarray(labels, np.intp) for labels in (pool.labels[fit], judge.labels[:MOST_JUDGED])
    )
    return kind, X, y, Z, truth


def fitted(case: Case) -> dict[str, Any]:
    kind, X, y, Z, truth = rows_of(case)
    members = members_of(case, kind, float(np.count_nonzero(X.argmax(axis=1) != y)))
    out: dict[str, Any] = {"names": np.array([*members, "uniform"])}
    for n in FOLDS:
        folds = as_folds(n, X, y, np.ones(len(y)), None)
        found = pool_members(fit_members(members, X, y, folds, kind), X, y, folds, kind)
        fields = zip(("given", "weight", "fold", "wrong"), found[:4], strict=True)
        out |= {f"{field}_{n}": values for field, values in fields}
    whole = (fit_on(made, X, y, np.ones(len(y)), kind) for made in members.values())
    test_given = [np.maximum(true_class(proba_of(one, Z, kind), truth), EPS) for one in whole]
    return out | {"test": np.column_stack([*test_given, np.full(len(truth), 1 / X.shape[1])])}


def members_of(case: Case, kind: str, n_errors: float) -> dict[str, Any]:
    """Those of the library for as many rows, and those that it leaves out below four rows a class;
    no matrices of many classes.
    """
    chosen = {"identity": Identity(), **default_candidates(case.n_rows, case.n_classes, n_errors)}
    if is_thin(case.n_rows, case.n_classes):
        enough = 4 * case.n_classes
        others = default_candidates(enough, case.n_classes, n_errors)
        chosen = {"identity": Identity(), ALONE: chosen["temperature"], **others}
    return {
        name: set_up(made, kind, case.n_classes)
        for name, made in chosen.items()
        if "matrix" not in name or case.n_classes < MATRIX_CLASSES
    }


def gains(case: Case, found: Given, rules: list[Rule]) -> list[float]:
    """Gain in test log-loss of every rule."""
    kept = [place for place, name in enumerate(found.names) if name != ALONE]
    test = found.test[:, kept]
    pools = {
        n: pool._replace(likelihood=pool.likelihood[:, kept]) for n, pool in found.pools.items()
    }
    gained = {n: _gain_on_others(pool, None) for n, pool in pools.items()}
    out = []
    for rule in rules:
        if rule.is_alone and is_thin(case.n_rows, case.n_classes):
            given = found.test[:, found.names.index(ALONE)]
        else:
            given = test @ ruled_weights(pools[rule.folds], rule, gained[rule.folds])
        out.append(float(np.mean(np.log(given / found.test[:, 0]))))
    return out


def ruled_weights(pool: Pool, rule: Rule, gained: GainOnOthers) -> Any:
    """As `cautious_weights`, by another rule."""
    few = (rule.few_errors / max(float(pool.is_wrong.sum()), rule.few_errors)) ** 2
    kappa = rule.share * (few if few == 1.0 else float(np.clip(1.0 - gained.in_errors, few, 1.0)))
    if rule.is_ended and gained.total >= BEYOND_DOUBT:
        kappa = 0.0
    weights = _best_weights(pool, kappa)
    returned = min(weights[-1], kappa / len(pool.weight))
    weights[-1] -= returned
    weights[0] += returned
    return weights


def best_rule(found: Any) -> int:
    """Of gains by case and rule: the rule of highest mean among those that rarely harm."""
    harmed = (found < -HARM).mean(axis=0)
    allowed = harmed <= max(MOST_HARMED, float(harmed.min()))
    return int(np.argmax(np.where(allowed, found.mean(axis=0), -np.inf)))


def left_out(done: list[Case], found: Any) -> tuple[Any, dict[str, Rule]]:
    """Gains of rules that were chosen without the file, and which these are; a choice for each
    number of rows.
    """
    out, chosen = np.empty(len(done)), {}
    files, sizes = (np.array([getattr(c, key) for c in done]) for key in ("file", "n_rows"))
    for file, n_rows in product(np.unique(files), np.unique(sizes)):
        own = (files == file) & (sizes == n_rows)
        index = best_rule(found[(files != file) & (sizes == n_rows)])
        out[own] = found[own, index]
        chosen[f"{file.stem}, {n_rows}"] = RULES[index]
    return out, chosen


GRID = np.linspace(-1.6, 2.4, 161)
"""Logarithms of temperatures; 0 is one of them."""


class Prior(NamedTuple):
    shape: str
    centre: float
    width: float

    def __str__(self) -> str:
        return f"{self.shape} of width {self.width:g} around {self.centre:g}"

    def log_mass(self) -> Any:
        z = ((GRID - self.centre) / self.width) ** 2
        return -np.log1p(z) if self.shape == "Cauchy" else -0.5 * z


PRIORS = [
    Prior(*each)
    for each in product(("normal", "Cauchy"), (0.0, 0.1, 0.2), (0.05, 0.1, 0.12, 0.2, 0.4))
]


def prior_gains(case: Case) -> list[float]:
    """Gains of the likeliest temperature, then of every prior."""
    kind, X, y, Z, truth = rows_of(case)
    seen, test = log_given(X, y, kind), np.maximum(log_given(Z, truth, kind), np.log(EPS))
    likelihood, before = seen.sum(axis=0), test[:, np.abs(GRID).argmin()]
    posterior = [likelihood + prior.log_mass() for prior in PRIORS]
    given = [logsumexp(test + one - logsumexp(one), axis=1) for one in posterior]
    return [float((one - before).mean()) for one in (test[:, likelihood.argmax()], *given)]


def log_given(scores: Any, y: Any, kind: str) -> Any:
    """Log-probabilities of what happened, at every temperature of the grid."""
    logits = scores if kind == "logits" else np.log(np.maximum(scores, EPS))
    rows = np.arange(len(y))
    return np.column_stack([log_softmax(logits * np.exp(-g), axis=1)[rows, y] for g in GRID])


def left_out_priors(done: list[Case], found: Any) -> Any:
    """Gains of the prior of highest mean gain on all other files, one for all numbers of rows."""
    out, files = np.empty(len(done)), np.array([case.file for case in done])
    for file in np.unique(files):
        out[files == file] = found[files == file, best_rule(found[files != file])]
    return out


def report_priors(done: list[Case], found: Any, auto: Any) -> str:
    columns = {"the rule of the library": auto, "the likeliest temperature": found[:, 0]}
    columns["priors chosen with files left out"] = left_out_priors(done, found[:, 1:])
    columns |= dict(zip(map(str, PRIORS), found[:, 1:].T, strict=True))
    sizes = np.array([case.n_rows for case in done])
    lines = [
        f"| {name} | " + " | ".join(said(gain[sizes == n]) for n in SIZES) + " |"
        for name, gain in columns.items()
    ]
    return "\n".join(
        [
            "## Priors of the temperature, for 100 classes or more",
            "",
            f"{len(done)} cases; mean gain (worst case, share of cases that lose more than 0.005).",
            "",
            "| prior of the logarithm | " + " | ".join(f"{n} rows" for n in SIZES) + " |",
            "| --- " + "| ---: " * len(SIZES) + "|",
            *lines,
            "",
        ]
    )


def table(done: list[Case], columns: dict[str, Any]) -> Iterator[str]:
    yield "| classes | rows | cases | " + " | ".join(columns) + " |"
    yield "| --- | ---: | ---: " + "| ---: " * len(columns) + "|"
    for (name, (low, high)), n_rows in product(GROUPS.items(), SIZES):
        own = np.array([low <= c.n_classes <= high and c.n_rows == n_rows for c in done])
        if own.any():
            cells = " | ".join(said(gain[own]) for gain in columns.values())
            yield f"| {name} | {n_rows} | {own.sum()} | {cells} |"


def said(gain: Any) -> str:
    return f"{gain.mean():+.4f} ({gain.min():+.4f}, {(gain < -HARM).mean():.1%})"


def report(done: list[Case], found: Any) -> str:
    chosen_gains, chosen = left_out(done, found)
    ours = found[:, RULES.index(OURS)]
    lines = [f"| {n} | {rule} |" for rule, n in Counter(chosen.values()).most_common()]
    return "\n".join(
        [
            "## Rules chosen with files left out",
            "",
            "Mean gain in test log-loss (worst case, share of cases that lose more than 0.005). "
            "*Left out*: the rule was chosen, for this number of rows, without the file that "
            "judges it.",
            "",
            *table(done, {"rule of the library": ours, "left out": chosen_gains}),
            "",
            f"Over all {len(done)} cases: the rule of the library {said(ours)}, rules that had not "
            f"seen the file {said(chosen_gains)}.",
            "",
            "| times chosen | rule |",
            "| ---: | --- |",
            *lines,
            "",
            "All rules on all files, so that what was not chosen can be seen:",
            "",
            "| rule | gain |",
            "| --- | ---: |",
            *(f"| {rule} | {said(own)} |" for rule, own in zip(RULES, found.T, strict=True)),
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--pools", type=Path, required=True, help="where cases are kept")
    options = parser.parse_args()
    options.pools.mkdir(parents=True, exist_ok=True)
    done = list(cases(options.data, [], options.sizes, options.seeds))
    if not done:
        print(f"no files of predictions in {options.data}", file=sys.stderr)
        return 2
    shown = tracked(done, total=len(done), description="cases", progress=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = np.array([gains(case, given(case, options.pools), RULES) for case in shown])
    print(report(done, found))
    many = [case for case in done if case.n_classes >= MANY]
    if many:
        shown = tracked(many, total=len(many), description="priors", progress=True)
        by_prior = np.array([prior_gains(case) for case in shown])
        own = found[[case.n_classes >= MANY for case in done], RULES.index(OURS)]
        print(report_priors(many, by_prior, own))
    return 0


if __name__ == "__main__":
    sys.exit(main())
