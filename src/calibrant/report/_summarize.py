"""Compute the content of a report from scores and labels.

Rows in memory and chunked rows are processed by the same pipeline. The pipeline fits calibrators,
predicts held-out rows, sums over all rows, and draws rows for methods that need single rows. If the
rows are in memory, all rows are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._data.group_columns import as_columns
from calibrant._data.read import as_sample
from calibrant._output.clock import current_time
from calibrant._output.progress import next_step
from calibrant._typing import AnyArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import as_seed, one_seed
from calibrant.report._advice import advise, advise_on_one_class, shows_error
from calibrant.report._case import Case, rows_to_test
from calibrant.report._checks import check_rows, decompose, detectable, possible_error
from calibrant.report._code import code_lines
from calibrant.report._content import (
    CheckRow,
    DetectableNote,
    Estimate,
    GroupNote,
    GuaranteeNote,
    Headline,
    Report,
)
from calibrant.report._describe import describe
from calibrant.report._findings import Findings, evaluate_rows
from calibrant.report._fits import after_of, before_of, check_calibration, fit_rows
from calibrant.report._groups import group_note, order_columns
from calibrant.report._guarantee import guarantee_note
from calibrant.report._how import how_sentences
from calibrant.report._metric_rows import metric_rows
from calibrant.report._request import Request, check_model, choose_calibrator
from calibrant.report._rows import ReportRows, read_rows
from calibrant.report._selective import risk_coverage_of
from calibrant.report._sentences import cautions, possible_sentence, remaining, verdict
from calibrant.report._weights import has_weights


def summarize(
    y_true: LabelsLike,
    scores: ScoresLike,
    *,
    calibrator: Any = None,
    calibration: tuple[Any, ...] | None = None,
    model: Any = None,
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
    min_rows: float = 0,
    rng: Rng = None,
) -> Report:
    """Report the effect of calibration on a set of predictions.

    Pass labels and scores, and save the returned report with ``report.save("report.html")``. All
    figures are for held-out rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    scores : array-like of shape (n, K)
        Scores to evaluate. Chunked scores (`calibrant.io.open_scores`, dask arrays) are not kept in
        memory, except for a random sample of rows. The report states which figures use all rows,
        and which figures use drawn rows.
    calibrator : unfitted calibrator, optional
        Calibrator to evaluate. The default is `AutoCalibration`.
    calibration : (scores, labels) or (scores, labels, weights), optional
        Scores and labels on which the calibrator is fitted. By default, the calibrator is
        cross-fitted, so every row is evaluated with a calibrator that was fitted on other rows.
    model : fitted calibrator, optional
        A fitted calibrator to evaluate, for example ``calibrant.load("model.json")``. Pass rows
        that this calibrator was not fitted on.
    inputs : {"proba", "logits", "log_proba"}
        Kind of the scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, which are scaled to the effective number of rows (Kish). With unequal
        weights, the report has no guarantee, no risk-coverage curves and no kernel test. Accuracy,
        log-loss and Brier score have no confidence intervals in this case.
    classes : array-like of shape (K,), optional
        Labels of the score columns.
    method, name, command : str
        Name of the calibrator, name of the data, and the command that wrote the report. The default
        name of a calibrator is the name of its class.
    cv : int
        Number of folds of cross-fitting.
    n_bins : int
        Number of bins of ECE, MCE and reliability diagrams.
    n_resamples : int
        Number of resamples of tests and confidence intervals.
    random_state : int, optional
        Alias of ``rng``, as in scikit-learn.
    by : array-like of shape (n,), or dict or data frame of such columns, optional
        Groups to evaluate separately, as in ``evaluate(..., by=...)``. A `GroupCalibration` is
        fitted with these groups.
    min_rows : float
        Minimum number of rows per group, as in ``evaluate(..., min_rows=...)``. Smaller groups are
        not shown.
    rng : int, Generator or None
        Seed for folds, draws and resamples. None means 0, so reports are reproducible.

    Returns
    -------
    Report

    See Also
    --------
    calibrant.compare : Compare several calibrators by cross-validation.
    calibrant.evaluate : Compute measures of one set of predictions.
    render : Write a report to a file.

    Notes
    -----
    A report computes ``cv + 1`` fits of the calibrator, ten fits of structured scaling for the
    decomposition, and resamples for the tests.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> scaling = TemperatureScaling()
    >>> report = summarize(data.val_labels, data.val_proba, calibrator=scaling, n_resamples=99)
    >>> report.action
    'Use the calibrated probabilities.'
    """
    if model is not None:
        check_model(model, inputs, calibrator, calibration)
        classes = model.classes_ if classes is None else classes
    chosen, method = choose_calibrator(calibrator if model is None else model, method)
    seed = as_seed(one_seed(rng, random_state)) or 0
    request = Request(chosen, inputs, method, name, command, classes, cv, n_bins, n_resamples, seed)
    request = request._replace(
        is_fitted=model is not None,
        min_rows=min_rows,
        has_groups=by is not None,
        has_fit_weights=calibration is not None and any(w is not None for w in calibration[2:]),
    )
    groups = {} if by is None else order_columns(as_columns(by), model)
    columns = tuple(groups.values())
    sample, labels = as_sample(
        scores, y_true, sample_weight, classes=classes, inputs=inputs, columns=columns
    )
    training = None
    if calibration is not None:
        training = read_rows(check_calibration(calibration, labels, inputs), seed)
    return _summarize(read_rows(sample, seed), training, labels, tuple(groups), request)


def _summarize(
    original: ReportRows,
    training: ReportRows | None,
    labels: AnyArray,
    groups: tuple[str, ...],
    request: Request,
) -> Report:
    """Compute the report of rows. If ``training`` is None, the calibrator is cross-fitted."""
    rows = original.effective()
    training = None if training is None else training.effective()
    request = request.set_up(labels)
    fits = fit_rows(rows, training, request)
    predicted = rows.sample.rescored(fits.predictor.predict)
    names = tuple(str(label) for label in np.asarray(labels).tolist())
    next_step("Evaluating")
    findings, drawn = evaluate_rows(rows, predicted, fits, request, names)
    tested = rows_to_test(drawn, request.seed)
    case = Case(request, names, rows, fits, findings, drawn, tested)
    table = None
    if groups:
        both = predicted.rescored(before_of), predicted.rescored(after_of)
        table = group_note(*both, groups, request.n_bins, request.min_rows)
    note = None  # the calibration rows of a calibrator that was fitted before are not known
    if not request.is_fitted:
        next_step("Computing the guarantee")
        note = guarantee_note(original if training is None else training, labels, request.inputs)
    return _compose(case, original, note, table)


def _compose(
    case: Case, original: ReportRows, guarantee: GuaranteeNote | None, groups: GroupNote | None
) -> Report:
    """The content of a report."""
    request, findings, names = case.request, case.findings, case.names
    next_step("Testing calibration")
    tests, floor = check_rows(case), detectable(case)
    next_step("Measuring")
    headline = _conclude(case, tests, floor)
    return Report(
        name=request.name,
        **headline,
        n_samples=findings.n_samples,
        n_classes=len(names),
        classes=names,
        headline=_headline(findings),
        metrics=metric_rows(case, tests),
        reliability=findings.reliability,
        ks=findings.ks,
        per_class=findings.per_class,
        decomposition=decompose(case),
        tests=tests,
        detectable=floor,
        selective=risk_coverage_of(case),
        guarantee=guarantee,
        map=describe(case.fits.model, names),
        warnings=_warnings(case),
        how=how_sentences(case, original.sample, has_guarantee=guarantee is not None),
        code=code_lines(
            request, is_held_out=case.fits.is_held_out, is_weighted=has_weights(original.sample)
        ),
        version=__version__,
        groups=groups,
        is_weighted=has_weights(original.sample),
        created=current_time().date().isoformat(),
        method=request.method,
    )


def count_steps(n_folds: int) -> int:
    """Return the number of progress steps of a report.

    ``n_folds`` is 0 with separate training rows.
    """
    # The other steps are one more fit, the evaluation, the guarantee, the tests and the measures.
    return n_folds + 5


def _headline(findings: Findings) -> Headline:
    """Return the figures at the top of the report."""
    accuracy = [evaluation.accuracy for evaluation in findings.evaluations]
    confidence = [a + gap.estimate for a, gap in zip(accuracy, findings.gaps, strict=True)]
    gain = findings.gain
    return Headline(
        confidence=(confidence[0], confidence[1]),
        accuracy=(accuracy[0], accuracy[1]),
        log_loss=(gain.before, gain.after),
        reduction=Estimate(gain.gain, gain.low, gain.high),
    )


def _conclude(case: Case, tests: Sequence[CheckRow], floor: DetectableNote) -> dict[str, str]:
    """The recommendation and the verdict of a report, as in `Report`."""
    findings, method, gain = case.findings, case.request.method, case.findings.gain
    is_held_out = case.fits.is_held_out
    has_rest, sentence = remaining(findings.gaps[1], tests, is_held_out=is_held_out)
    possible = possible_error(case.drawn, case.names)
    error_sentence = sentence if gain.conclusion == "good" else ""
    if gain.conclusion == "mixed" and not shows_error(tests):
        error_sentence = f"{possible_sentence(possible)} {floor.text}"
    effect, text = verdict(findings.evaluations[0], findings.gaps[0], gain, method, error_sentence)
    action, advice = advise(
        findings.n_samples, gain, tests, method, possible=possible.worst, has_rest=has_rest
    )
    present = np.flatnonzero(case.rows.sample.class_weights)
    if len(present) == 1:
        action, advice = advise_on_one_class(case.names[present[0]])
    return {"action": action, "advice": advice, "verdict": text, "conclusion": effect}


def _warnings(case: Case) -> tuple[str, ...]:
    """Warnings about rows with positive weight, and about the fits."""
    is_positive = case.drawn.weight > 0
    rows = case.drawn if is_positive.all() else case.drawn.subset(is_positive)
    fitted = case.fits.class_weights
    shift = fitted, case.rows.sample.class_weights
    return cautions(rows.before, rows.y, case.names, fitted, shift, case.fits.notes)
