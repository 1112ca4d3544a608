"""Compare calibrators on one or many data sets by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_clone, proba_of, set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.fold_plan import FoldPlan, HeldOut, plan_folds
from calibrant._data.read import as_sample
from calibrant._data.sample import Sample
from calibrant._output.progress import tracked
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import one_seed
from calibrant.inference import (
    FriedmanResult,
    Gain,
    LossMoments,
    critical_difference,
    friedman_test,
)
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics.registry import METRICS, Metric, MetricLike, as_metric, metric_label
from calibrant.multiclass import Identity
from calibrant.selection import methods as _methods
from calibrant.selection._comparison import UNCALIBRATED, Comparison

_DEFAULT_METRICS = ("log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece")

_SUMMED = frozenset(entry.name for entry in fields(Evaluation)) & set(METRICS) - {"ks"}
"""Metrics that are sums over rows."""


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
        Chunked scores (`calibrant.io.open_scores`, dask arrays) are read once per pass: folds are
        runs of 60 rows, and metrics and methods those that need not see all rows at once, which
        leaves out Gaussian processes and `CanonicalBinning`.
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
    chosen, judges = _as_methods(methods), _as_metrics(metrics)
    seed = one_seed(rng, random_state)
    samples = _as_samples(y_true, scores, sample_weight, groups, inputs, classes)
    runs = {
        name: _Run(sample, _plan(cv, sample, seed, name), chosen, judges, inputs)
        for name, sample in samples.items()
    }
    tasks = [
        (name, method, fold)
        for name, run in runs.items()
        for method in chosen
        for fold in range(run.plan.n_folds)
    ]
    work = (delayed(runs[name].fit)(method, fold) for name, method, fold in tasks)
    fits = tracked(
        Parallel(n_jobs=n_jobs, return_as="generator")(work),
        total=len(tasks),
        description="Comparing",
        progress=progress,
    )
    fitted = dict(zip(tasks, fits, strict=True))
    results = {
        name: run.evaluate({key[1:]: fit for key, fit in fitted.items() if key[0] == name})
        for name, run in runs.items()
    }
    return _collect(results, chosen, judges)


class _Result(NamedTuple):
    """Results on one data set."""

    values: FloatArray
    """The metrics of each fold, (n_methods, n_folds, n_metrics)."""
    differences: dict[tuple[str, str, str], Gain]
    """What a method gains over another in a score."""
    notes: tuple[str, ...]
    """How fits to chunked data differ from fits to rows in memory."""


@dataclass(frozen=True, eq=False)
class _Run:
    """A comparison on one data set."""

    sample: Sample
    plan: FoldPlan
    methods: Mapping[str, Any]
    metrics: Mapping[str, Metric]
    inputs: str

    def __post_init__(self) -> None:
        for name, metric in self.metrics.items():
            if not _is_summed(metric):
                self.sample.rows(f"The metric {name}", f"choose from {', '.join(sorted(_SUMMED))}")
        for name, method in self.methods.items():
            if _methods.needs_rows(method):
                self.sample.rows(name)

    def fit(self, method: str, fold: int) -> Any:
        """Fit a method on the rows that a fold does not hold out."""
        adapted = set_up(self.methods[method], self.inputs, self.sample.n_columns)
        return fit_clone(adapted, self.plan.train(fold), self.inputs)

    def evaluate(self, fitted: Mapping[tuple[str, int], Any]) -> _Result:
        """Evaluate all fits on held-out rows, in one pass."""
        n_folds = self.plan.n_folds
        fits = [[fitted[method, fold] for fold in range(n_folds)] for method in self.methods]
        sums = partial(_sum_held_out, fits, tuple(self.metrics.values()), self.inputs)
        weight, moments, values, *accumulators = self.plan.sum_held_out(sums)
        _check_weights(weight)
        for place, metric in enumerate(self.metrics.values()):
            if _is_summed(metric):
                values[:, :, place] = np.reshape(
                    [getattr(part.compute(), metric.name) for part in accumulators], (-1, n_folds)
                )
        names = tuple(self.methods)
        differences = {
            (method, other, score): moments[score].gain(b, a, self.plan.ratios, score=score)
            for a, method in enumerate(names)
            for b, other in enumerate(names)
            for score in SCORES
        }
        return _Result(values, differences, self._notes(fits))

    def _notes(self, fits: Sequence[Sequence[Any]]) -> tuple[str, ...]:
        notes = [self.sample.note_on(folds[0]) for folds in fits]
        return tuple(
            f"{name}: {note}" for name, note in zip(self.methods, notes, strict=True) if note
        )


class _Moments(dict[str, LossMoments]):
    """Moments of losses by score, which can be added up."""

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments({score: self[score] + other[score] for score in self})


def _sum_held_out(
    fits: Sequence[Sequence[Any]], metrics: Sequence[Metric], inputs: str, held_out: HeldOut
) -> tuple[Any, ...]:
    """Sums over held-out rows: the weight of each fold, moments of losses, metrics that need all
    rows of a fold, and an accumulator per method and fold for the others.
    """
    rows, fold, n_folds = held_out.rows, held_out.fold, len(fits[0])
    weight, values = np.zeros(n_folds), np.zeros((len(fits), n_folds, len(metrics)))
    weight[fold] = rows.weight.sum()
    losses = {score: np.empty((len(fits), rows.shape[0])) for score in SCORES}
    accumulators = [MetricAccumulator(keep_top=0) for _ in range(len(fits) * n_folds)]
    for number, own in enumerate(fits):
        proba = proba_of(own[fold], rows.u[:], inputs)
        for score, rule in SCORES.items():
            losses[score][number] = rule.losses(proba, rows.y) if len(rows.y) else 0.0
        if rows.weight.any():
            accumulators[number * n_folds + fold]._update_checked(rows.with_scores(proba))
        for place, metric in enumerate(metrics):
            if not _is_summed(metric):
                values[number, fold, place] = _measure(metric, rows.y, proba, rows.weight)
    moments = {score: LossMoments.of_rows(own, rows.weight) for score, own in losses.items()}
    return weight, _Moments(moments), values, *accumulators


def _measure(metric: Metric, y: IntArray, proba: FloatArray, weight: FloatArray) -> float:
    """A metric of a fold; a function of the user's gets weights only if there are any."""
    return float(
        metric(y, proba) if (weight == 1).all() else metric(y, proba, sample_weight=weight)
    )


def _is_summed(metric: Metric) -> bool:
    known = METRICS.get(metric.name, metric)
    is_same = known.function is metric.function and known.options == metric.options
    return is_same and metric.name in _SUMMED


def _check_weights(weight: FloatArray) -> None:
    if not (weight > 0).all():
        raise ValueError(
            f"{(weight == 0).sum()} of {len(weight)} folds have no rows of positive weight: "
            "pass fewer folds by cv"
        )


def _plan(cv: Any, sample: Sample, seed: Rng, name: str) -> FoldPlan:
    plan = plan_folds(cv, sample, seed, by_runs=True)
    if plan.n_folds < 2:
        raise ValueError(
            f"{name} cannot be cross-validated: at least two rows of positive weight are needed"
        )
    return plan


def _as_samples(
    y_true: Any, scores: Any, sample_weight: Any, groups: Any, inputs: str, classes: Any
) -> dict[str, Sample]:
    weights = _per_set(sample_weight, scores, "sample_weight")
    together = _per_set(groups, scores, "groups")
    if not isinstance(scores, Mapping):
        y_true, scores = {"data": y_true}, {"data": scores}
    elif not isinstance(y_true, Mapping) or set(y_true) != set(scores):
        raise ValueError("with scores given as a dict, y_true must be a dict with the same names")
    return {
        name: as_sample(
            one,
            y_true[name],
            weights.get(name),
            together.get(name),
            classes=classes,
            inputs=inputs,
        )[0].countable()
        for name, one in scores.items()
    }


def _per_set(values: Any, scores: Any, name: str) -> Mapping[str, Any]:
    """What was given for each data set, or for the only one."""
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


def _collect(
    results: Mapping[str, _Result], chosen: Mapping[str, Any], judges: Mapping[str, Metric]
) -> Comparison:
    mean = np.array([result.values.mean(axis=1) for result in results.values()])
    spread = np.array([result.values.std(axis=1, ddof=1) for result in results.values()])
    differences = {
        (name, *key): gain
        for name, result in results.items()
        for key, gain in result.differences.items()
    }
    upwards = frozenset(name for name, judge in judges.items() if judge.greater_is_better)
    friedman, difference = (
        _rank_tests(mean, tuple(judges), upwards)
        if len(results) > 1 and len(chosen) > 1
        else ({}, None)
    )
    return Comparison(
        tuple(results),
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
        tuple(note for result in results.values() for note in result.notes),
    )


def _rank_tests(
    mean: FloatArray, metrics: tuple[str, ...], greater_is_better: frozenset[str]
) -> tuple[dict[str, FriedmanResult], float]:
    sign = [-1.0 if name in greater_is_better else 1.0 for name in metrics]
    tests = {name: friedman_test(sign[q] * mean[:, :, q]) for q, name in enumerate(metrics)}
    return tests, critical_difference(mean.shape[1], mean.shape[0], method="nemenyi")
