"""Compare calibrators on one or many data sets by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from calibrant._crossfit.members import fit_clone, set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.fold_plan import FoldPlan, plan_folds
from calibrant._data.group_columns import name_groups
from calibrant._data.read import as_sample
from calibrant._data.sample import Sample
from calibrant._kernels.blocks import sum_in_pairs
from calibrant._output.progress import tracked
from calibrant._typing import (
    AnyArray,
    FloatArray,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import check_option_inputs, one_seed
from calibrant.inference import (
    FriedmanResult,
    Gain,
    LossMoments,
    critical_difference,
    friedman_test,
)
from calibrant.metrics._accumulator import MetricAccumulator
from calibrant.metrics.registry import Metric, MetricLike, as_metric, metric_label
from calibrant.multiclass import Identity
from calibrant.selection import methods as _methods
from calibrant.selection._comparison import UNCALIBRATED, Comparison
from calibrant.selection._held_out import (
    ALL_ROWS,
    MEANS,
    SUMMED,
    KeptRows,
    Moments,
    is_summed,
    sum_held_out,
)

_DEFAULT_METRICS = ("log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece")


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
    by: Any = None,
    rng: Rng = None,
) -> Comparison:
    """Compare calibrators on one or several data sets by cross-validation.

    Every row is predicted by calibrators that were fitted on other rows. Some methods use
    cross-validation themselves, for example to choose the penalty of `DirichletCalibration`. Such
    methods use only the training rows (nested cross-validation), so the results account for this
    choice.

    Parameters
    ----------
    y_true : array-like of shape (n,), or dict of name -> labels
        True labels.
    scores : array-like of shape (n, K), or dict of name -> scores
        Predicted scores. A dict contains one array per data set. Chunked scores
        (`calibrant.io.open_scores`, dask arrays) are read once per pass. Chunked scores are
        assigned to folds in blocks of 60 consecutive rows. Metrics and methods that need all rows
        in memory are not available (Gaussian processes, `CanonicalBinning`).
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores.
    methods : list of names or calibrators, or dict of name -> either, optional
        Calibrators to compare. A name ("temperature", "structured-matrix", "auto", ...) is passed
        to `calibrant.method`. The default methods are temperature scaling, structured vector and
        matrix scaling, isotonic calibration and auto. The method "uncalibrated" is always added.
    cv : int, splitter or iterable of (train, test) rows, default 5
        Folds.
    metrics : list of names or functions, or dict of name -> either, optional
        Metrics to compute. Names refer to `calibrant.metrics`, such as "log_loss", "brier_score",
        "accuracy", "conf_ece", "cw_ece", "tl_ece", "ks", ... Functions receive column codes and
        probabilities. Lower values of a function must be better. If higher values are better, pass
        a `calibrant.metrics.Metric`.
    sample_weight : array-like of shape (n,), or dict of name -> weights, optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.
    random_state : int, optional
        Alias of ``rng``, as in scikit-learn.
    n_jobs : int, optional
        Number of fits that run in parallel.
    progress : bool, default False
        Whether to show a progress bar on a terminal. The progress bar needs the package rich.
    groups : array-like of shape (n,), or dict of name -> array, optional
        Group of each row, for example the patient. Rows of a group are in the same fold, including
        the inner folds of a method. Confidence intervals still treat rows as independent.
    by : array-like of shape (n,), dict or data frame, optional
        Groups of rows within which the methods are also compared. Calibrators are fitted on rows of
        all groups. The results are in the attribute ``by_group``.
    rng : int, Generator or None
        Seed or generator of the folds. None means 0.

    Returns
    -------
    Comparison
        ``str()`` returns a table. ``difference("a", "b")`` compares two methods.

    See Also
    --------
    compare_models : Compare the probabilities of several models on the same rows.
    AutoCalibration : Combine several calibrators.
    calibrant.inference.calibration_gain : Estimate the gain of the true calibration function.

    Notes
    -----
    Metrics are computed once on the held-out rows of all folds. A fold has few rows, so its
    calibration error is mostly sampling noise. The mean calibration error over folds would
    therefore be too large.

    Confidence intervals of gains are the asymptotic "nadeau-bengio" intervals of `Gain`. These
    intervals are for the improvement by a calibrator that is fitted on as many rows.
    `calibration_gain` estimates the improvement by the true calibration function instead. Ranks,
    Friedman's test and critical differences compare methods over data sets. Do not choose a method
    by its ECE, because the ECE rewards coarse predictions.

    The results of the best of several methods are optimistic, especially with few rows. For
    example, eleven methods were compared on 50 rows of a calibrated model. The best method seemed
    to reduce the log-loss by 0.008, but increased the log-loss by 0.030 on new rows. With 200 rows,
    the numbers are 0.002 and 0.016. Evaluate the best method on other rows, or use
    `AutoCalibration`, whose gain is cross-fitted.

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
    chosen, table_metrics = _as_methods(methods), as_metrics(metrics)
    seed = one_seed(rng, random_state)
    names = None if by is None else name_groups(by)
    samples = _as_samples(y_true, scores, sample_weight, groups, inputs, classes, names)
    runs = {
        name: _Run(sample, labels, _plan(cv, sample, seed, name), chosen, table_metrics, inputs)
        for name, (sample, labels) in samples.items()
    }
    results = _evaluate_runs(runs, chosen, n_jobs, progress=progress)
    whole = {name: result[ALL_ROWS] for name, result in results.items()}
    comparison = collect(whole, chosen, table_metrics, is_ranked=True)
    if by is None:
        return comparison
    parts = {name: part for name, part in results["data"].items() if name != ALL_ROWS}
    return replace(comparison, by_group=collect(parts, chosen, table_metrics, is_ranked=False))


def _evaluate_runs(
    runs: Mapping[str, _Run], chosen: Mapping[str, Any], n_jobs: int | None, *, progress: bool
) -> dict[str, dict[str, Result]]:
    """Fit every method on every fold of every data set, and evaluate the fits."""
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
    return {
        name: run.evaluate({key[1:]: fit for key, fit in fitted.items() if key[0] == name})
        for name, run in runs.items()
    }


class Result(NamedTuple):
    """Results on one data set, or on one group of its rows."""

    values: FloatArray
    """The metrics of all held-out rows, (n_methods, n_metrics)."""
    spread: FloatArray
    """The standard deviation over folds of metrics that are means over rows, or NaN for other
    metrics."""
    differences: dict[tuple[str, str, str], Gain]
    """Gain of a method over another in a score."""
    notes: tuple[str, ...]
    """How fits to chunked data differ from fits to rows in memory."""


@dataclass(frozen=True, eq=False)
class _Run:
    """A comparison on one data set."""

    sample: Sample
    classes: AnyArray
    plan: FoldPlan
    methods: Mapping[str, Any]
    metrics: Mapping[str, Metric]
    inputs: str

    def __post_init__(self) -> None:
        for name, metric in self.metrics.items():
            if not is_summed(metric):
                self.sample.rows(f"The metric {name}", f"choose from {', '.join(sorted(SUMMED))}")
        for name, method in self.methods.items():
            if _methods.needs_rows(method):
                self.sample.rows(name)

    def fit(self, method: str, fold: int) -> Any:
        """Fit a method on the training rows of a fold."""
        adapted = set_up(self.methods[method], self.inputs, self.sample.n_columns, self.classes)
        return fit_clone(adapted, self.plan.train(fold), self.inputs)

    def evaluate(self, fitted: Mapping[tuple[str, int], Any]) -> dict[str, Result]:
        """Evaluate all fits on held-out rows in one pass, over all rows and per group."""
        n_folds = self.plan.n_folds
        fits = [[fitted[method, fold] for fold in range(n_folds)] for method in self.methods]
        sums = partial(sum_held_out, fits, tuple(self.metrics.values()), self.inputs)
        totals = dict(sorted(self.plan.sum_held_out(sums).items()))
        _check_weights(totals[ALL_ROWS][0])
        notes = self._notes(fits)
        return {
            name: self._result(*total)._replace(notes=notes)
            for name, total in totals.items()
            if total[0].any()  # leave out groups in which all weights are zero
        }

    def _result(
        self, weight: FloatArray, moments: Moments, kept: KeptRows, *accumulators: MetricAccumulator
    ) -> Result:
        n_folds, names = self.plan.n_folds, tuple(self.methods)
        by_method = [accumulators[k * n_folds : (k + 1) * n_folds] for k in range(len(names))]
        pooled = [sum_in_pairs(parts).compute() for parts in by_method]
        values = np.empty((len(names), len(self.metrics)))
        spread = np.full(values.shape, np.nan)
        for place, metric in enumerate(self.metrics.values()):
            values[:, place] = (
                [getattr(evaluation, metric.name) for evaluation in pooled]
                if is_summed(metric)
                else [kept.measure(metric, method) for method in range(len(names))]
            )
            if is_summed(metric) and metric.name in MEANS and (weight > 0).all():
                folds = [[getattr(p.compute(), metric.name) for p in parts] for parts in by_method]
                spread[:, place] = np.std(folds, axis=1, ddof=1)
        return Result(values, spread, all_gains(moments, names, self.plan.ratios), ())

    def _notes(self, fits: Sequence[Sequence[Any]]) -> tuple[str, ...]:
        notes = [self.sample.note_on(folds[0]) for folds in fits]
        return tuple(
            f"{name}: {note}" for name, note in zip(self.methods, notes, strict=True) if note
        )


def all_gains(
    moments: Mapping[str, LossMoments], names: Sequence[str], ratios: FloatArray | tuple[()] = ()
) -> dict[tuple[str, str, str], Gain]:
    """Return the gain of each method over each other method in each score."""
    return {
        (method, other, score): moments[score].gain(b, a, ratios, score=score)
        for a, method in enumerate(names)
        for b, other in enumerate(names)
        for score in SCORES
    }


def _check_weights(weight: FloatArray) -> None:
    if not (weight > 0).all():
        raise ValueError(
            f"{(weight == 0).sum()} of {len(weight)} folds have no rows with positive weight. Pass "
            f"fewer folds, for example cv=2."
        )


def _plan(cv: Any, sample: Sample, seed: Rng, name: str) -> FoldPlan:
    plan = plan_folds(cv, sample, seed, by_runs=True)
    if plan.n_folds < 2:
        raise ValueError(
            f"{name!r} cannot be cross-validated, because it has fewer than two rows with "
            "positive weight. Pass more rows."
        )
    return plan


def _as_samples(
    y_true: Any,
    scores: Any,
    sample_weight: Any,
    groups: Any,
    inputs: str,
    classes: Any,
    names: AnyArray | None,
) -> dict[str, tuple[Sample, AnyArray]]:
    """Return the sample and the labels of the columns of each data set."""
    if names is not None and isinstance(scores, Mapping):
        raise ValueError(
            "by= is only allowed with one data set, but scores is a dict of several data sets. "
            "Call compare(y_true, scores, by=...) once per data set."
        )
    weights = _per_set(sample_weight, scores, "sample_weight")
    together = _per_set(groups, scores, "groups")
    if not isinstance(scores, Mapping):
        y_true, scores = {"data": y_true}, {"data": scores}
    elif not isinstance(y_true, Mapping) or set(y_true) != set(scores):
        raise ValueError(
            "If scores is a dict, y_true must be a dict with the same names. To compare models on "
            "the same rows, call calibrant.compare_models(y_true, scores)."
        )
    for table in scores.values():
        check_option_inputs(table, inputs, "compare")
    samples = {
        name: as_sample(
            table,
            y_true[name],
            weights.get(name),
            together.get(name),
            classes=classes,
            inputs=inputs,
            columns=() if names is None else (names,),
        )
        for name, table in scores.items()
    }
    n_rows = samples["data"][0].n_rows if names is not None else None
    if names is not None and n_rows not in (None, len(names)):
        raise ValueError(
            f"by has {len(names)} rows, but there are {n_rows} labels. Pass one group per row."
        )
    return {name: (sample.countable(), labels) for name, (sample, labels) in samples.items()}


def _per_set(values: Any, scores: Any, name: str) -> Mapping[str, Any]:
    """Return a dict with the values of each data set."""
    if not isinstance(scores, Mapping):
        return {"data": values}
    if values is not None and not isinstance(values, Mapping):
        raise ValueError(
            f"If scores is a dict, {name} must be a dict with the same names. Pass "
            f"{name}={{name: ... for name in scores}}."
        )
    return values or {}


def _as_methods(methods: Any) -> dict[str, Any]:
    chosen = _methods.default_methods() if methods is None else _methods.by_name(methods)
    chosen.pop(UNCALIBRATED, None)
    return {UNCALIBRATED: Identity(), **chosen}


def as_metrics(metrics: Any) -> dict[str, Metric]:
    """Return metrics by their labels in the table of a comparison."""
    if isinstance(metrics, Mapping):
        return {name: as_metric(metric) for name, metric in metrics.items()}
    listed = _DEFAULT_METRICS if metrics is None else metrics
    return {metric_label(metric): as_metric(metric) for metric in listed}


def collect(
    results: Mapping[str, Result],
    chosen: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    *,
    is_ranked: bool,
) -> Comparison:
    """Build the comparison from results per data set. Gains are relative to the first method."""
    values, first = np.array([result.values for result in results.values()]), next(iter(chosen))
    differences = {
        (name, *key): gain
        for name, result in results.items()
        for key, gain in result.differences.items()
    }
    greater_is_better = frozenset(
        name for name, metric in metrics.items() if metric.greater_is_better
    )
    friedman, difference = (
        _rank_tests(values, tuple(metrics), greater_is_better)
        if is_ranked and len(results) > 1 and len(chosen) > 1
        else ({}, None)
    )
    return Comparison(
        tuple(results),
        tuple(chosen),
        tuple(metrics),
        values,
        np.array([result.spread for result in results.values()]),
        {
            (name, method, score): gain
            for (name, method, other, score), gain in differences.items()
            if other == first
        },
        friedman,
        difference,
        greater_is_better,
        differences,
        tuple(note for result in results.values() for note in result.notes) if is_ranked else (),
    )


def _rank_tests(
    mean: FloatArray, metrics: tuple[str, ...], greater_is_better: frozenset[str]
) -> tuple[dict[str, FriedmanResult], float]:
    sign = [-1.0 if name in greater_is_better else 1.0 for name in metrics]
    tests = {name: friedman_test(sign[q] * mean[:, :, q]) for q, name in enumerate(metrics)}
    return tests, critical_difference(mean.shape[1], mean.shape[0], method="nemenyi")
