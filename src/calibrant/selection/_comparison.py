"""Many calibrators on one or many sets of predictions, by honest cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_fold, proba_of, set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.folds import Fold, as_folds, check_groups
from calibrant._data.read import as_chunked
from calibrant._output.progress import tracked
from calibrant._output.results import ShortRepr, html_table
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import (
    LOGITS_HINT,
    Predictions,
    check_predictions,
    one_seed,
    unknown_name,
)
from calibrant.inference import FriedmanResult, critical_difference, friedman_test
from calibrant.inference._gain import Gain, paired_gain
from calibrant.metrics._registry import Metric, MetricLike, as_metric, metric_label
from calibrant.multiclass import Identity
from calibrant.selection import _methods
from calibrant.selection._compared_parts import SetResult, compare_parts
from calibrant.selection._table import markdown_table

UNCALIBRATED = "uncalibrated"

SPREAD_NOTE = "±: standard deviation over the folds. Gains are over the scores as they are."

_DEFAULT_METRICS = ("log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece")


_BEST_OF_SEVERAL = (
    "The best of several methods looks better than it is: judge it on rows that did not choose it."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ShortRepr):
    """Methods compared over sets of predictions; the first method is "uncalibrated", the scores as
    they are.

    Attributes
    ----------
    datasets, methods, metrics : tuples of str
    mean, spread : arrays of shape (n_datasets, n_methods, n_metrics)
        Mean and standard deviation of a metric over the folds, each judged by a map that was fitted
        on the others.
    ranks : array of shape (n_datasets, n_methods, n_metrics)
        Of the means; 1 is best, ties share their average.
    gains : dict of (dataset, method, score) -> Gain
        Paired gains over the scores as they are, in log-loss and Brier score.
    friedman : dict of metric -> FriedmanResult
        Where there are several datasets.
    critical_difference : float or None
        Of average ranks, all pairs (Nemenyi, 5 %), where there are several datasets.
    greater_is_better : frozenset of str
        The metrics that are ranked downwards.
    differences : dict of (dataset, method, other, score) -> Gain
        What each method gains over each other; see `difference`.
    notes : tuple of str
        How maps of scores that come in parts differ from those of rows in memory.
    """

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    mean: FloatArray
    spread: FloatArray
    gains: dict[tuple[str, str, str], Gain]
    friedman: dict[str, FriedmanResult]
    critical_difference: float | None
    greater_is_better: frozenset[str] = frozenset()
    differences: dict[tuple[str, str, str, str], Gain] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> FloatArray:
        sign = np.array([-1.0 if name in self.greater_is_better else 1.0 for name in self.metrics])
        return np.asarray(rankdata(sign * self.mean, axis=1))

    @property
    def best(self) -> str:
        """The method of the best average rank in the first metric; of ties the first named.

        It was chosen by these rows, so that its own figures look a little too good; `difference`
        says whether it is better than another.
        """
        return self.methods[int(self.ranks[:, :, 0].mean(axis=0).argmin())]

    def difference(
        self, method: str, other: str, *, score: str = "log_loss", dataset: str | None = None
    ) -> Gain:
        """What ``method`` gains over ``other`` in a proper score, paired over rows, with the
        interval of `Gain`; of the first dataset unless one is named.
        """
        name = self.datasets[0] if dataset is None else dataset
        for value, valid, kind in (
            (method, self.methods, "method"),
            (other, self.methods, "method"),
            (score, tuple(SCORES), "score"),
            (name, self.datasets, "dataset"),
        ):
            if value not in valid:
                raise ValueError(unknown_name(kind, value, valid))
        return self.differences[name, method, other, score]

    def to_frame(self) -> Any:
        """A pandas frame with one row per dataset and method."""
        import pandas

        return pandas.DataFrame(list(self._records())).set_index(["dataset", "method"])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "datasets": list(self.datasets),
            "methods": list(self.methods),
            "metrics": list(self.metrics),
            "results": list(self._records()),
            "friedman": {name: result.to_dict() for name, result in self.friedman.items()},
            "critical_difference": self.critical_difference,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def to_markdown(self, digits: int = 4) -> str:
        """A table per dataset, and of average ranks where there are several."""
        parts = [self._dataset_table(d, digits) for d in range(len(self.datasets))]
        if self.friedman:
            parts.append(self._rank_table())
        if len(self.methods) > 2:
            parts.append(_BEST_OF_SEVERAL)
        return "\n\n".join([*parts, *self.notes])

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        tables = [
            html_table(rows, header=head, title=name, note=SPREAD_NOTE)
            for name, (head, rows) in zip(
                self.datasets, map(self._cells, range(len(self.datasets))), strict=True
            )
        ]
        ranks = f"<pre>{escape(self._rank_table())}</pre>" if self.friedman else ""
        return "".join([*tables, ranks])

    def _records(self) -> Iterator[dict[str, Any]]:
        ranks = self.ranks
        for d, dataset in enumerate(self.datasets):
            for m, method in enumerate(self.methods):
                record: dict[str, Any] = {"dataset": dataset, "method": method}
                for q, metric in enumerate(self.metrics):
                    record[metric] = float(self.mean[d, m, q])
                    record[f"{metric}_spread"] = float(self.spread[d, m, q])
                    record[f"{metric}_rank"] = float(ranks[d, m, q])
                for score in SCORES:
                    gain = self.gains[dataset, method, score]
                    record |= {
                        f"{score}_gain": gain.gain,
                        f"{score}_gain_low": gain.low,
                        f"{score}_gain_high": gain.high,
                    }
                yield record

    def _dataset_table(self, d: int, digits: int) -> str:
        return f"**{self.datasets[d]}**\n\n{markdown_table(*self._cells(d, digits))}"

    def _cells(self, d: int, digits: int = 4) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table of a dataset."""
        head = ["method", *self.metrics, "log-loss gain", "95 % interval"]
        rows = []
        for m, method in enumerate(self.methods):
            gain = self.gains[self.datasets[d], method, "log_loss"]
            cells = [
                f"{self.mean[d, m, q]:.{digits}f} ± {self.spread[d, m, q]:.{digits}f}"
                for q in range(len(self.metrics))
            ]
            interval = f"{gain.low:+.{digits}f} to {gain.high:+.{digits}f}"
            # The first method is the scores as they are, which gain nothing over themselves.
            gained = [f"{gain.gain:+.{digits}f}", interval] if m else ["", ""]
            rows.append([method, *cells, *gained])
        return head, rows

    def _rank_table(self) -> str:
        average = self.ranks.mean(axis=0)
        rows = [
            [name, *(f"{rank:.2f}" for rank in average[m])] for m, name in enumerate(self.methods)
        ]
        tests = [f"{self.friedman[q].p_value:.2g}" for q in self.metrics]
        table = markdown_table(
            ["average rank", *self.metrics], [*rows, ["Friedman p-value", *tests]]
        )
        return (
            f"{table}\n\nCritical difference of average ranks (Nemenyi, 5 %): "
            f"{self.critical_difference:.2f}"
        )


def compare(
    y_true: LabelsLike | Mapping[str, LabelsLike],
    scores: ScoresLike | Mapping[str, ScoresLike],
    *,
    inputs: str = "proba",
    methods: Sequence[Any] | Mapping[str, Any] | None = None,
    cv: Any = 5,
    metrics: Sequence[MetricLike] | Mapping[str, MetricLike] | None = None,
    sample_weight: WeightsLike | Mapping[str, WeightsLike] | None = None,
    classes: LabelsLike | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    groups: LabelsLike | Mapping[str, LabelsLike] | None = None,
    rng: Rng = None,
) -> Comparison:
    """Compare calibrators on one or many sets of predictions.

    Every row is judged by maps that were fitted on other rows. What a method chooses by
    cross-validation of its own (the weights of `AutoCalibration`, the strength of
    `DirichletCalibration`) it chooses within these rows: nested cross-validation, so that choosing
    is charged for.

    Parameters
    ----------
    y_true : labels of shape (n,), or dict of name -> labels
    scores : scores of shape (n, K), or dict of name -> scores
        Of one set that comes in parts (`calibrant.io.open_scores`, dask arrays) sums are gathered:
        folds are runs of 60 rows, metrics those that are sums over rows, methods those that take
        parts, which leaves out Gaussian processes and `CanonicalBinning`.
    inputs : {"proba", "logits", "log_proba"}
    methods : list of names or calibrators, or dict of name -> either, optional
        A name ("temperature", "structured-matrix", "auto", ...) is the map of `calibrant.method`.
        By default temperature, structured vector and matrix scaling, isotonic and auto.
        "uncalibrated" is always there.
    cv : int, splitter or iterable of (train, test) rows
    metrics : names or functions, or dict of name -> either, optional
        Names are those of `calibrant.metrics`: "log_loss", "brier_score", "accuracy", "conf_ece",
        "cw_ece", "tl_ece", "ks", ... Functions of your own are given column codes and
        probabilities; smaller is better, unless a `calibrant.metrics.Metric` says otherwise.
    sample_weight : weights of shape (n,), or dict of name -> weights, optional
    classes : labels of the columns, optional
    random_state : int, optional
        The same as ``rng``, by the name that estimators have for it.
    n_jobs : int, optional
        Fits at the same time.
    progress : bool
        Show a bar where the output is a terminal; needs the package rich.
    groups : array of shape (n,), or dict of name -> array, optional
        Rows that belong together, such as those of one patient, are in one fold, also in the folds
        that a method cuts itself. Intervals still count rows, as if they were independent.
    rng : int, Generator or None
        Decides the folds; None is 0.

    Returns
    -------
    Comparison

    Notes
    -----
    Intervals of gains are the "nadeau-bengio" ones of `Gain`: of what a map fitted on as many rows
    gains, asymptotic. `calibration_gain` gives another, of what the best map would gain. Ranks,
    Friedman's test and critical differences are over datasets. Do not choose a method by ECE: it
    rewards coarse forecasts.

    The best of several looks better than it is, the more so the fewer the rows: of eleven methods
    for 50 rows of a calibrated model the winner seemed to gain 0.008 in log-loss and lost 0.030 on
    new rows, for 200 rows 0.002 and 0.016. Judge a winner on rows that did not choose it, or take
    `AutoCalibration`, whose gain is one of rows that its weights have not seen.

    References
    ----------
    Demšar (2006), JMLR 7:1-30; Nadeau & Bengio (2003), doi:10.1023/A:1024068626366.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> labels, proba = data.val_labels, data.val_proba
    >>> result = compare(labels, proba, methods=["temperature"], metrics=["log_loss"])
    >>> result.methods, result.gains["data", "temperature", "log_loss"].gain > 0
    (('uncalibrated', 'temperature'), True)
    """
    chosen = _as_methods(methods)
    judges = _as_metrics(metrics)
    seed = one_seed(rng, random_state)
    if as_chunked(scores) is not None:
        _check_no_groups(groups)
        parts = as_chunked(scores).source(y_true, sample_weight)  # type: ignore[union-attr]
        how = {"cv": cv, "inputs": inputs, "classes": classes}
        return _collect({"data": compare_parts(parts, chosen, judges, **how)}, chosen, judges)
    sets = _as_sets(y_true, scores, sample_weight, inputs, classes)
    together = _per_set(groups, scores, "groups")
    folds = {
        name: _check_folds(
            as_folds(cv, *data[:3], seed, check_groups(together.get(name), len(data.scores))),
            name,
        )
        for name, data in sets.items()
    }
    tasks = [
        _Task(name, method, f)
        for name in sets
        for method in chosen
        for f in range(len(folds[name]))
    ]
    work = (
        delayed(_judge)(sets[t.dataset], chosen[t.method], folds[t.dataset][t.fold], inputs, judges)
        for t in tasks
    )
    results = tracked(
        Parallel(n_jobs=n_jobs, return_as="generator")(work),
        total=len(tasks),
        description="Comparing",
        progress=progress,
    )
    judged = dict(zip(tasks, results, strict=True))
    found = {name: _set_result(name, tuple(chosen), folds[name], judged) for name in sets}
    return _collect(found, chosen, judges)


class _Task(NamedTuple):
    dataset: str
    method: str
    fold: int


class _Judged(NamedTuple):
    """Metrics of one fold, and the proper scores of its rows."""

    metrics: FloatArray
    rows: dict[str, FloatArray]


def _judge(
    data: Predictions, method: Any, fold: Fold, inputs: str, judges: Mapping[str, Metric]
) -> _Judged:
    """Judge a method on the rows of a fold, by a map fitted on the others."""
    adapted = set_up(method, inputs, data.scores.shape[1])
    fitted = fit_fold(adapted, data.scores, data.y, fold, inputs)
    return _judge_map(fitted, data, fold, inputs, judges)


def _judge_map(
    fitted: Any, data: Predictions, fold: Fold, inputs: str, judges: Mapping[str, Metric]
) -> _Judged:
    y, weight = data.y[fold.judge], fold.judge_weight
    proba = proba_of(fitted, data.scores, inputs, fold.judge)
    values = [_measure(judge, y, proba, weight) for judge in judges.values()]
    losses = {name: rule.losses(proba, y) for name, rule in SCORES.items()}
    return _Judged(np.array(values), losses)


def _measure(judge: Metric, y: IntArray, proba: FloatArray, weight: FloatArray) -> float:
    """A metric of a fold; a function of the user's is given weights only where there are any."""
    return float(judge(y, proba) if (weight == 1).all() else judge(y, proba, sample_weight=weight))


def _as_sets(
    y_true: Any, scores: Any, sample_weight: Any, inputs: str, classes: Any
) -> dict[str, Predictions]:
    weights = _per_set(sample_weight, scores, "sample_weight")
    if not isinstance(scores, Mapping):
        y_true, scores = {"data": y_true}, {"data": scores}
    elif not isinstance(y_true, Mapping) or set(y_true) != set(scores):
        raise ValueError("with scores given as a dict, y_true must be a dict with the same names")
    return {
        name: check_predictions(
            y_true[name], one, weights.get(name), classes, inputs=inputs, hint=LOGITS_HINT
        )
        for name, one in scores.items()
    }


def _per_set(values: Any, scores: Any, name: str) -> Mapping[str, Any]:
    """What was given for each set of predictions, or for the only one."""
    if not isinstance(scores, Mapping):
        return {"data": values}
    if values is not None and not isinstance(values, Mapping):
        raise ValueError(f"with scores given as a dict, {name} must be a dict with the same names")
    return values or {}


def _as_methods(methods: Any) -> dict[str, Any]:
    chosen = _methods.default_methods() if methods is None else _methods.by_name(methods)
    chosen.pop(UNCALIBRATED, None)
    return {UNCALIBRATED: Identity(), **chosen}


def _as_metrics(metrics: Any) -> dict[str, Metric]:
    if isinstance(metrics, Mapping):
        return {name: as_metric(metric) for name, metric in metrics.items()}
    asked = _DEFAULT_METRICS if metrics is None else metrics
    return {metric_label(metric): as_metric(metric) for metric in asked}


def _check_folds(folds: list[Fold], name: str) -> list[Fold]:
    if len(folds) < 2:
        raise ValueError(
            f"{name} cannot be cross-validated: at least two rows of positive weight are needed"
        )
    return folds


def _check_no_groups(groups: Any) -> None:
    if groups is not None:
        raise TypeError("groups are for scores in memory: parts of scores are not cut by them")


def _set_result(
    name: str, methods: tuple[str, ...], folds: list[Fold], judged: Mapping[_Task, _Judged]
) -> SetResult:
    """What was found on a set of predictions in memory."""
    values = [
        [judged[_Task(name, method, f)].metrics for f in range(len(folds))] for method in methods
    ]
    differences = {
        (method, other, score): _gain(name, method, score, folds, judged, other)
        for method in methods
        for other in methods
        for score in SCORES
    }
    return SetResult(np.array(values), differences)


def _collect(
    found: Mapping[str, SetResult], chosen: Mapping[str, Any], judges: Mapping[str, Metric]
) -> Comparison:
    mean = np.array([result.values.mean(axis=1) for result in found.values()])
    spread = np.array([result.values.std(axis=1, ddof=1) for result in found.values()])
    differences = {
        (name, *key): gain
        for name, result in found.items()
        for key, gain in result.differences.items()
    }
    upwards = frozenset(name for name, judge in judges.items() if judge.greater_is_better)
    friedman, difference = (
        _rank_tests(mean, tuple(judges), upwards)
        if len(found) > 1 and len(chosen) > 1
        else ({}, None)
    )
    return Comparison(
        tuple(found),
        tuple(chosen),
        tuple(judges),
        mean,
        spread,
        {
            (name, method, score): gain
            for (name, method, other, score), gain in differences.items()
            if other == UNCALIBRATED
        },
        friedman,
        difference,
        upwards,
        differences,
        tuple(note for result in found.values() for note in result.notes),
    )


def _gain(
    name: str,
    method: str,
    score: str,
    folds: list[Fold],
    judged: Mapping[_Task, _Judged],
    other: str,
) -> Gain:
    def rows(of: str) -> FloatArray:
        return np.concatenate([judged[_Task(name, of, f)].rows[score] for f in range(len(folds))])

    weight = np.concatenate([fold.judge_weight for fold in folds])
    return paired_gain(rows(other), rows(method), weight, folds, score=score)


def _rank_tests(
    mean: FloatArray, metrics: tuple[str, ...], greater_is_better: frozenset[str]
) -> tuple[dict[str, FriedmanResult], float]:
    sign = [-1.0 if name in greater_is_better else 1.0 for name in metrics]
    tests = {name: friedman_test(sign[q] * mean[:, :, q]) for q, name in enumerate(metrics)}
    return tests, critical_difference(mean.shape[1], mean.shape[0], method="nemenyi")
