"""From scores and labels to the content of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant import __version__, inference
from calibrant._blocks import BOOTSTRAP_ELEMENTS
from calibrant._crossfit.members import fit_folds, fit_on, out_of_fold, proba_of, set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.fold_plan import RowFolds
from calibrant._data.folds import Fold, as_folds
from calibrant._data.read import as_chunked
from calibrant._data.sample import ArraySample
from calibrant._typing import (
    AnyArray,
    FloatArray,
    IntArray,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import (
    LOGITS_HINT,
    Predictions,
    as_seed,
    check_predictions,
    one_seed,
    printable,
)
from calibrant.base import Calibrator
from calibrant.base._citation import methods_sentence, references_of
from calibrant.base._outcome import convergence_note
from calibrant.base._training import summarize_training
from calibrant.binary import HistogramBinning
from calibrant.evaluation import Evaluation, evaluate
from calibrant.exceptions import TooFewRowsError
from calibrant.inference._confidence_gap import confidence_gap
from calibrant.inference._gain import Gain, paired_gain
from calibrant.inference._results import holm
from calibrant.metrics._registry import METRICS
from calibrant.multiclass import Identity
from calibrant.reductions import MulticlassToBinary
from calibrant.report._advice import advise
from calibrant.report._charts import (
    class_rows,
    confidence_path,
    ks_graph,
    reliability,
    tables_of,
)
from calibrant.report._content import (
    CheckRow,
    ClassRow,
    Decomposition,
    Estimate,
    GuaranteeNote,
    KsGraph,
    MetricRow,
    Reliability,
    Report,
)
from calibrant.report._describe import describe
from calibrant.report._groups import group_table
from calibrant.report._sentences import cautions, verdict, what_is_left
from calibrant.report._weights import is_weighted, weight_sentences, with_copies
from calibrant.selection import AutoCalibration

_LEAST_RESAMPLES = 50
"""Below this the ends of a 95 % interval are single draws."""

_MOST_BINS_SHOWN = 60
"""Ranges of a guarantee that a table shows, the widest: some screens of it."""

_TESTED_ROWS = 20_000
"""Rows that tests and the decomposition look at: so many show any error that matters, and their
cost grows faster than the rows."""

_TESTED_WEIGHTED_ROWS = 5000
"""The same where weights are not whole numbers: an error is then computed anew a resample."""

_KERNEL_ROWS = 100
"""The level of the kernel test is asymptotic: below so many rows it is not shown."""

_ALL_PAIRS_ROWS = 2000
"""Up to so many rows the kernel test looks at all pairs of rows, which has the most power."""

_MEANS = ("accuracy", "log_loss", "brier_score")
_NOTIONS = ("confidence", "class-wise", "top-label")
_TESTED = ("conf_ece", "cw_ece", "tl_ece")
_PLUG_IN = (*_TESTED, "mce", "ks", "overconfidence", "underconfidence")
_MEASURES = ("averaged_two_bin_error", "cutoff_calibration_error")
_NOTES = {
    "averaged_two_bin_error": "Squared, over classes; smallest on average for who tells the truth",
    "cutoff_calibration_error": "What moving any threshold of the top score could gain a row, "
    "benefits between 0 and 1; includes chance",
    "overconfidence": "Mean confidence where the prediction is wrong",
    "underconfidence": "Mean lack of confidence where the prediction is right",
}


@dataclass(frozen=True, eq=False)
class Case:
    """The rows that are judged, as they are and as calibrated by maps that have not seen them."""

    y: IntArray
    weight: FloatArray
    before: FloatArray
    after: FloatArray
    model: Any
    folds: Sequence[Fold]
    n_folds: int
    seen: FloatArray
    shift: tuple[FloatArray, FloatArray]
    remarks: tuple[str, ...]
    is_held_out: bool

    @property
    def sample_weight(self) -> FloatArray | None:
        """The weights, or None where every row counts once."""
        return self.weight if is_weighted(self.weight) else None

    @property
    def n_samples(self) -> float:
        """Sum of the weights."""
        return len(self.y) if self.sample_weight is None else float(self.weight.sum())


class Request(NamedTuple):
    """What a report is asked for: the calibrator, how it is called, and what decides draws."""

    made: Any
    inputs: str
    method: str
    name: str
    command: str | None
    classes: LabelsLike | None
    cv: int
    n_bins: int
    n_resamples: int
    seed: int


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of all rows that are judged, whether they are in memory or not."""

    n_samples: float
    evaluations: tuple[Evaluation, ...]
    gain: Gain
    gaps: tuple[inference.Interval, ...]
    means: tuple[MetricRow, ...]
    reliability: tuple[Reliability, ...]
    ks: KsGraph
    per_class: tuple[ClassRow, ...]


def summarise(
    y_true: LabelsLike,
    scores: ScoresLike,
    *,
    calibrator: Any = None,
    calibration: tuple[Any, ...] | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    method: str | None = None,
    name: str = "predictions",
    command: str | None = None,
    cv: int = 5,
    n_bins: int = 15,
    n_resamples: int = 1000,
    random_state: int | None = None,
    by: Any = None,
    rng: Rng = None,
) -> Report:
    """What calibration does to a set of predictions.

    Parameters
    ----------
    y_true : labels of shape (n,)
    scores : scores of shape (n, K)
        The rows that are judged. Of scores that come in parts (`calibrant.io.open_scores`, dask
        arrays) nothing is kept but sums, and some rows that are drawn for what needs the rows
        themselves; the report says what is of which. They have neither weights, groups nor
        ``calibration``.
    calibrator : unfitted calibrator, optional
        By default `AutoCalibration`.
    calibration : (scores, labels) or (scores, labels, weights), optional
        Rows to fit on. Without them the calibrator is cross-fitted: every row is judged by a map
        fitted on other rows.
    inputs : {"proba", "logits", "log_proba"}
    sample_weight : weights of shape (n,), optional
        Numbers of copies of a row. With weights that are not whole numbers what draws rows one by
        one is left out: intervals of accuracy, log-loss and Brier score, and the kernel test. With
        any weights there is no guarantee. The report says so.
    classes : labels of the columns, optional
    method, name, command : str
        What the calibrator and the data are called (the calibrator by its class unless given), and
        the command that made the report, if one did.
    cv : int
        Folds of cross-fitting.
    n_bins : int
    n_resamples : int
        Of tests and intervals.
    random_state : int, optional
        The same as ``rng``, by the name that estimators have for it.
    by : groups of shape (n,), or dict or data frame of such columns, optional
        The rows are also judged group by group, as by ``evaluate(..., by=...)``.
    rng : int, Generator or None
        Decides folds, draws and resamples; None is 0, so that a report is the same when it is made
        again.

    Returns
    -------
    Report

    Notes
    -----
    Costs cv + 1 fits of the calibrator, ten of structured scaling for the decomposition, and the
    resampling of tests.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> scaling = TemperatureScaling()
    >>> report = summarise(data.val_labels, data.val_proba, calibrator=scaling, n_resamples=99)
    >>> report.judgement
    'good'
    """
    if method is None:
        method = "auto" if calibrator is None else type(calibrator).__name__
    made = AutoCalibration() if calibrator is None else calibrator
    seed = as_seed(one_seed(rng, random_state)) or 0
    asked = Request(made, inputs, method, name, command, classes, cv, n_bins, n_resamples, seed)
    if as_chunked(scores) is not None:
        from calibrant.report._parted import summarise_parts  # it is made of what is here

        if calibration is not None or by is not None:
            raise TypeError("scores that come in parts are cross-fitted, and not cut into groups")
        return summarise_parts(as_chunked(scores).source(y_true, sample_weight), asked)  # type: ignore[union-attr]
    given = check_predictions(
        y_true, scores, sample_weight, classes, inputs=inputs, hint=LOGITS_HINT
    )
    return _summarise_rows(given, asked, calibration, by)


def _summarise_rows(
    given: Predictions, asked: Request, calibration: tuple[Any, ...] | None, by: Any
) -> Report:
    """The report of rows in memory."""
    rows, by = with_copies(given, by)
    inputs, labels = asked.inputs, rows.classes
    asked = asked._replace(made=set_up(asked.made, inputs, rows.scores.shape[1]))
    held = None if calibration is None else _check_calibration(calibration, labels, inputs)
    case = _judge(rows, asked.made, held, inputs, asked.cv, asked.seed)
    names = names_of(labels)
    y, weight, n_bins = case.y, case.weight, asked.n_bins
    report = compose(
        case,
        _findings(case, asked, names),
        asked,
        names,
        guarantee=guarantee_note(held or given, inputs),
        how=weight_sentences(given.weight, weight),
    )
    groups = None if by is None else group_table(y, weight, case.before, case.after, by, n_bins)
    return replace(report, groups=groups, is_weighted=is_weighted(given.weight))


def names_of(labels: AnyArray) -> tuple[str, ...]:
    """Labels of the columns as text."""
    return tuple(str(label) for label in np.asarray(labels).tolist())


def _findings(case: Case, asked: Request, names: Sequence[str]) -> Findings:
    """What is known of rows in memory."""
    y, weight, both, n_bins = case.y, case.weight, (case.before, case.after), asked.n_bins
    evaluations = tuple(
        evaluate(y, p, n_bins=n_bins, sample_weight=case.sample_weight) for p in both
    )
    resamples = int(
        np.clip(BOOTSTRAP_ELEMENTS // case.before.size, _LEAST_RESAMPLES, asked.n_resamples)
    )
    means = (
        [_mean_row(name, case, resamples, asked.seed) for name in _MEANS]
        if case.sample_weight is None
        else [_plug_in_row(name, evaluations, ()) for name in _MEANS]
    )
    tables = tuple(tables_of(y, weight, p, n_bins) for p in both)
    paths = tuple(confidence_path(y, weight, p) for p in both)
    return Findings(
        n_samples=case.n_samples,
        evaluations=evaluations,
        gain=_gain(case),
        gaps=tuple(confidence_gap(y, p, weight) for p in both),
        means=tuple(means),
        reliability=reliability(tables, names),
        ks=ks_graph(paths),
        per_class=class_rows(tables, np.bincount(y, weight, minlength=len(names)), names),
    )


def compose(
    case: Case,
    found: Findings,
    asked: Request,
    names: tuple[str, ...],
    *,
    guarantee: GuaranteeNote | None,
    how: Sequence[str],
) -> Report:
    """The report of what was found; ``case`` holds the rows, or some of them, for what needs the
    rows themselves.
    """
    looked_at = _sampled(case, asked.seed)
    tests = _tests(looked_at, asked.n_resamples, asked.seed)
    left = what_is_left(found.gaps[1], tests)
    gain, method = found.gain, asked.method
    judgement, sentence = verdict(found.evaluations[0], found.gaps[0], gain, method, left)
    action, advice = advise(found.n_samples, gain, tests, method)
    return Report(
        name=asked.name,
        action=action,
        advice=advice,
        verdict=sentence,
        judgement=judgement,
        n_samples=found.n_samples,
        n_classes=len(names),
        classes=names,
        metrics=_metrics(case, looked_at, found, tests, asked.n_bins),
        reliability=found.reliability,
        ks=found.ks,
        per_class=found.per_class,
        decomposition=_decomposition(looked_at, asked.seed),
        tests=tests,
        guarantee=guarantee,
        map=describe(case.model, names),
        warnings=_cautions(case, names),
        how=(
            *_how(case, found.n_samples, asked),
            *how,
            f"calibrant {__version__}, NumPy {np.__version__}.",
        ),
        code=_code(asked, is_held_out=case.is_held_out),
        version=__version__,
    )


def _check_calibration(calibration: tuple[Any, ...], labels: AnyArray, inputs: str) -> Predictions:
    if len(calibration) not in (2, 3):
        raise ValueError(
            f"calibration must be (scores, labels) or (scores, labels, weights), got "
            f"{len(calibration)} parts"
        )
    scores, y, *rest = calibration
    weight = rest[0] if rest else None
    shape = np.shape(scores)
    if len(shape) == 2 and shape[1] != len(labels):
        raise ValueError(
            f"the calibration rows have {shape[1]} classes and the rows to judge {len(labels)}"
        )
    return check_predictions(y, scores, weight, labels, inputs=inputs, hint=LOGITS_HINT)


def _judge(
    rows: Predictions, made: Any, held: Predictions | None, inputs: str, cv: int, seed: int
) -> Case:
    """Fit the calibrator, and judge it on rows that it has not seen: ``held`` are rows to fit on,
    without them it is cross-fitted.
    """
    data, y, weight, _ = rows
    scores, codes, fit_weight, _ = held or rows
    model = fit_on(clone(made), ArraySample(scores, codes, fit_weight), inputs)
    if isinstance(model, Calibrator):  # its losses say whether chance explains what it does
        rows_ = ArraySample(scores, codes, fit_weight)
        training = summarize_training(rows_, inputs, model._log_true_of)
        assert training is not None
        model.training_ = training
    folds = [] if held else _cut_folds(rows, cv, seed)
    maps = fit_folds(made, RowFolds(ArraySample(data, y, weight), folds), inputs)
    after = proba_of(model, data, inputs) if held else out_of_fold(maps, folds, data, inputs)
    seen = np.bincount(codes, fit_weight, minlength=data.shape[1])
    own = np.bincount(y, weight, minlength=data.shape[1])
    # Asked for and not caught: what warnings do is one thing for all threads of a process.
    owner = type(made).__name__
    notes = convergence_note(owner, [model]), convergence_note(owner, maps, "folds")
    remarks = tuple(note for note in notes if note)
    # Logits become probabilities block by block.
    before = (
        proba_of(Identity().set_params(inputs=inputs), data, inputs) if inputs != "proba" else data
    )
    return Case(
        y,
        weight,
        np.asarray(before, dtype=np.float64),
        after,
        model,
        folds,
        len(folds),
        seen,
        (seen, own),
        remarks,
        held is not None,
    )


def _cut_folds(rows: Predictions, cv: int, seed: int) -> list[Fold]:
    """Folds that judge every row once, with its weight."""
    folds = as_folds(cv, rows.scores, rows.y, np.ones(len(rows.y)), seed)
    if not folds:
        raise ValueError(
            "a report needs at least two rows, to fit on one part and judge on the other"
        )
    weight = rows.weight
    return [f._replace(fit_weight=weight[f.fit], judge_weight=weight[f.judge]) for f in folds]


def _sampled(case: Case, seed: int) -> Case:
    """The case, or a random part of its rows where there are many."""
    most = _tested_rows(case)
    if len(case.y) <= most:
        return case
    rows = np.random.default_rng(seed).choice(len(case.y), most, replace=False)
    rows.sort()
    parts = {name: getattr(case, name)[rows] for name in ("y", "weight", "before", "after")}
    return replace(case, **parts)


def _tested_rows(case: Case) -> int:
    return _TESTED_ROWS if case.sample_weight is None else _TESTED_WEIGHTED_ROWS


def _gain(case: Case) -> Gain:
    before, after = (SCORES["log_loss"].losses(p, case.y) for p in (case.before, case.after))
    ratios = RowFolds(ArraySample(case.before, case.y, case.weight), list(case.folds)).ratios
    return paired_gain(before, after, np.asarray(case.weight), ratios, score="log_loss")


def _metrics(
    case: Case, looked_at: Case, found: Findings, tests: Sequence[CheckRow], n_bins: int
) -> tuple[MetricRow, ...]:
    n_tested = len(looked_at.y)
    n_rows = found.n_samples if case.sample_weight is None else len(case.y)
    by_how_many = "" if n_tested >= n_rows else f" with {n_tested:,} rows, less with all"
    return (
        *found.means,
        *(_debiased_row(notion, case, n_bins) for notion in _NOTIONS),
        *(_plug_in_row(name, found.evaluations, tests, by_how_many) for name in _PLUG_IN),
        *(_measure_row(name, looked_at) for name in _MEASURES),
    )


def _mean_row(name: str, case: Case, resamples: int, seed: int) -> MetricRow:
    pair = [
        inference.bootstrap_interval(name, case.y, p, n_resamples=resamples, rng=seed)
        for p in (case.before, case.after)
    ]
    kind = "exact interval" if name == "accuracy" else f"bootstrap interval, {resamples} resamples"
    return mean_row_of(name, list(map(_as_estimate, pair)), kind, pair)


def mean_row_of(
    name: str,
    estimates: Sequence[Estimate],
    kind: str,
    pair: Sequence[inference.Interval] = (),
) -> MetricRow:
    """A mean over rows before and after, with the kind of its intervals."""
    before, after = estimates
    note = _with_caution(f"95 % {kind}", pair)
    return MetricRow(name, _title(name), before, after, METRICS[name].better, note)


def _debiased_row(notion: str, case: Case, n_bins: int) -> MetricRow:
    pair = [
        inference.debiased_interval(
            case.y, p, notion=notion, n_bins=n_bins, sample_weight=case.sample_weight
        )
        for p in (case.before, case.after)
    ]
    note = _with_caution("Debiased L2 calibration error with its 95 % interval", pair)
    before, after = map(_as_estimate, pair)
    return MetricRow(
        f"{notion}-l2", f"{notion.capitalize()} error (L2)", before, after, "lower", note
    )


def _with_caution(note: str, pair: Sequence[inference.Interval]) -> str:
    """A note with what the intervals cannot know."""
    if all(interval.guarantee != "heuristic" for interval in pair):
        return note
    reasons = dict.fromkeys(interval.note for interval in pair if interval.note)
    said = "; ".join(reasons) or "few rows for so many claims"
    return f"{note}; its level is not guaranteed: {said}"


def _plug_in_row(
    name: str,
    evaluations: Sequence[Evaluation],
    tests: Sequence[CheckRow],
    by_how_many: str = "",
) -> MetricRow:
    before, after = (Estimate(float(getattr(evaluation, name))) for evaluation in evaluations)
    note = _NOTES.get(name, "")
    for test in tests:
        if test.name == name and test.expected_before:
            chance = f"{test.expected_before:.4f} and {test.expected_after:.4f}"
            note = f"Includes chance: calibrated models would show {chance}{by_how_many}"
    return MetricRow(name, _title(name), before, after, METRICS[name].better, note)


def _measure_row(name: str, case: Case) -> MetricRow:
    metric = METRICS[name]
    before, after = (
        Estimate(metric(case.y, p, sample_weight=case.sample_weight))
        for p in (case.before, case.after)
    )
    return MetricRow(name, _title(name), before, after, metric.better, _NOTES[name])


def _title(name: str) -> str:
    """The title of a metric, as the beginning of a line."""
    title = METRICS[name].title
    return title[0].upper() + title[1:]


def _as_estimate(interval: Any) -> Estimate:
    return Estimate(float(interval.estimate), float(interval.low), float(interval.high))


def _tests(case: Case, n_resamples: int, seed: int) -> tuple[CheckRow, ...]:
    rows = []
    for metric in _TESTED:
        pair = [
            inference.consistency_test(
                case.y, p, metric, n_resamples, rng=seed, sample_weight=case.sample_weight
            )
            for p in (case.before, case.after)
        ]
        rows.append(_check_row(metric, f"Consistency: {_title(metric)}", *pair))
    if len(case.y) >= _KERNEL_ROWS and case.sample_weight is None:
        method = "wild" if len(case.y) <= _ALL_PAIRS_ROWS else "block"
        pair = [
            inference.kernel_test(case.y, p, method=method, n_resamples=n_resamples, rng=seed)
            for p in (case.before, case.after)
        ]
        rows.append(_check_row("kernel", "Kernel, whole vector", *pair))
    return _adjusted(rows, is_held_out=case.is_held_out)


def _check_row(name: str, title: str, before: Any, after: Any) -> CheckRow:
    return CheckRow(
        name,
        title,
        before.null,
        before.guarantee,
        before.statistic,
        after.statistic,
        before.expected,
        after.expected,
        before.p_value,
        after.p_value,
        after.guarantee,
    )


def _adjusted(rows: Sequence[CheckRow], *, is_held_out: bool) -> tuple[CheckRow, ...]:
    """Tests with p-values adjusted for their number, and what holds of those after calibration."""
    before, after = (holm([getattr(row, name) for row in rows]) for name in ("p_before", "p_after"))
    return tuple(
        replace(
            row,
            guarantee_after=row.guarantee_after if is_held_out else "heuristic",
            p_holm_before=one,
            p_holm_after=other,
        )
        for row, one, other in zip(rows, before, after, strict=True)
    )


def _decomposition(case: Case, seed: int) -> Decomposition:
    parts = [
        inference.score_decomposition(case.y, p, rng=seed, sample_weight=case.sample_weight)
        for p in (case.before, case.after)
    ]
    pairs = [(part.calibration, part.refinement) for part in parts]
    return Decomposition("log_loss", pairs[0], pairs[1])


def guarantee_note(rows: Predictions, inputs: str) -> GuaranteeNote | None:
    """What top-label histogram binning of the same rows guarantees; None where there are too
    few, or where they have weights.
    """
    scores, y, weight, labels = rows
    if is_weighted(weight):
        return None
    binning = MulticlassToBinary(
        HistogramBinning(), notion="top-label", inputs=inputs, classes=labels
    )
    try:
        fitted = binning._fit_checked(ArraySample(scores, y, np.ones(len(y))), labels)
        promise = fitted.guarantee(0.05)
    except TooFewRowsError:
        return None
    widest = sorted(promise.intervals, key=lambda interval: -interval.gap)[:_MOST_BINS_SHOWN]
    bins = tuple((i.claim, i.value, i.count, i.low, i.high) for i in widest)
    method = "top-label histogram binning, 50 rows a bin"
    head = (
        f"Of another calibrator than the map of this report: if the top probabilities were "
        f"replaced by those of {method}, this would hold."
    )
    return GuaranteeNote(method, f"{head} {promise}", bins)


def _how(case: Case, n_samples: float, asked: Request) -> tuple[str, ...]:
    fitted = (
        f"{asked.method} was fitted on {case.seen.sum():,.0f} calibration rows and judged on "
        f"{n_samples:,.0f} others."
        if case.is_held_out
        else f"{asked.method} was cross-fitted in {case.n_folds} folds: each of {n_samples:,.0f} "
        "rows is judged by a map fitted on the other folds. The map shown was fitted on all rows."
    )
    tested = _tested_rows(case)
    return (
        fitted,
        f"Binned errors use {asked.n_bins} bins of equal width, debiased ones bins of equal mass. "
        "Ties go to the lowest column.",
        *(
            [f"Tests and decomposition look at {tested:,} of the rows, drawn at random."]
            if len(case.y) > tested
            else []
        ),
        f"Tests use {asked.n_resamples:,} resamples. Seed {asked.seed}. P-values are adjusted for "
        "the number of tests (Holm). The gain is paired over rows, its interval asymptotic.",
        *_how_tested(case),
        "Decomposition: calibration is what structured scaling gains by cross-fitting, refinement "
        "what is left.",
        "The guarantee is that of top-label histogram binning of the same rows, not of the map "
        "above.",
        *_how_to_write(case.model),
    )


def _how_to_write(model: Any) -> tuple[str, ...]:
    """What a paper would say; a classifier of others that is used as a calibrator says nothing."""
    if not isinstance(model, Calibrator):
        return ()
    cited = " ".join(references_of(model))
    return (f"To write about it: {methods_sentence(model)}{' References: ' * bool(cited)}{cited}",)


def _cautions(case: Case, names: Sequence[str]) -> tuple[str, ...]:
    """What to be careful about, of the rows that count."""
    some = case.weight > 0
    before, y = (case.before, case.y) if some.all() else (case.before[some], case.y[some])
    return cautions(before, y, names, case.seen, case.shift, case.remarks)


def _how_tested(case: Case) -> tuple[str, ...]:
    if case.is_held_out:
        return ()
    return (
        "P-values after cross-fitting are heuristic: a row's label has fitted the maps that judge "
        "other rows, and errors of the maps cancel. Pass rows of their own to fit on for exact "
        "ones.",
    )


def _code(asked: Request, *, is_held_out: bool) -> str:
    """Lines to paste; the command, and names of classes, cannot end a line."""
    made, inputs, classes, command = asked.made, asked.inputs, asked.classes, asked.command
    fit = "val_scores, val_labels" if is_held_out else "scores, labels"
    plain = clone(made).set_params(classes=None)
    named = [] if classes is None else [f"classes = {_spelt(np.asarray(classes).tolist())}"]
    also = ", classes=classes" if named else ""
    return "\n".join(
        [
            *([f"# {printable(command)}", "# and the calibrator in Python:"] if command else []),
            "import calibrant",
            f"from calibrant import {_names(made)}",
            "",
            *named,
            f"model = {plain!r}",
            *(["model.set_params(classes=classes)"] if named else []),
            f"model.fit({fit})",
            f'print(calibrant.evaluate(labels, scores, inputs="{inputs}"{also}))',
            f"print(calibrant.evaluate(labels, model.predict_proba(scores){also}))",
            'calibrant.save(model, "model.json")',
        ]
    )


def _spelt(values: list[Any]) -> str:
    """Values as Python, without letters that would end a block of code or begin a tag."""
    return repr(values).replace("<", "\\x3c").replace("`", "\\x60")


def _names(made: Any) -> str:
    own = [type(made).__name__]
    inner = made.get_params(deep=False).get("calibrator")
    return ", ".join(sorted([*own, type(inner).__name__] if inner is not None else own))
