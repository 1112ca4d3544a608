"""Rows of the table of metrics, before and after calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from calibrant import inference
from calibrant._crossfit.scores import SCORES
from calibrant._output.numbers import format_number
from calibrant.guarantees import clopper_pearson
from calibrant.metrics import Evaluation
from calibrant.metrics.registry import METRICS
from calibrant.report._case import Case
from calibrant.report._content import CheckRow, Estimate, MetricRow
from calibrant.report._findings import LEVEL, Findings

_LEAST_RESAMPLES = 50
"""Minimum number of resamples. With fewer, the ends of a 95% interval would be single resamples."""

_BOOTSTRAP_SCORES = 2**25
"""Maximum number of scores of all resamples together. Large data have fewer resamples."""

_MEANS = ("accuracy", *SCORES)
_NOTIONS = ("confidence", "class-wise", "top-label")
_PLUG_IN = ("conf_ece", "cw_ece", "tl_ece", "mce", "ks", "confidence_on_errors", "doubt_on_correct")
_MEASURES = ("averaged_two_bin_error", "cutoff_calibration_error")
_NOTES = {
    "averaged_two_bin_error": "Squared calibration error, averaged over thresholds and classes. "
    "The true probabilities minimize this error in expectation.",
    "cutoff_calibration_error": "Upper bound on the benefit per row of another confidence "
    "threshold. Biased upward by sampling noise.",
    "mce": "Largest difference between confidence and accuracy in any bin. A bin with few rows can "
    "determine this maximum.",
    "ks": "Largest absolute value of the curve in the KS graph",
    "confidence_on_errors": "Computed from incorrect predictions only",
    "doubt_on_correct": "Computed from correct predictions only",
}


def metric_rows(case: Case, tests: Sequence[CheckRow]) -> tuple[MetricRow, ...]:
    """Return all rows of the table. The bias of binned errors is taken from ``tests``."""
    evaluations, n_tested = case.findings.evaluations, len(case.tested.y)
    scope = f" for {n_tested:,} rows, and smaller for all rows" if case.is_part_tested else ""
    return (
        *_mean_rows(case),
        *(_debiased_row(notion, case) for notion in _NOTIONS),
        *(_plug_in_row(name, evaluations, tests, scope) for name in _PLUG_IN),
        *(_measure_row(name, case) for name in _MEASURES),
    )


def _mean_rows(case: Case) -> list[MetricRow]:
    """Return accuracy and proper scores, with confidence intervals if rows have no weights.

    Intervals use the bootstrap if all rows are in memory, and formulas otherwise.
    """
    if case.drawn.sample_weight is not None:
        return [_plug_in_row(name, case.findings.evaluations, ()) for name in _MEANS]
    if case.has_all_rows:
        return [_bootstrap_row(name, case) for name in _MEANS]
    return [_accuracy_row(case.findings), *(_score_row(name, case.findings) for name in SCORES)]


def _bootstrap_row(name: str, case: Case) -> MetricRow:
    most = _BOOTSTRAP_SCORES // case.drawn.before.size
    resamples = int(np.clip(most, _LEAST_RESAMPLES, case.request.n_resamples))
    pair = [
        inference.bootstrap_interval(
            name, case.drawn.y, proba, n_resamples=resamples, rng=case.request.seed
        )
        for proba in case.drawn.both
    ]
    kind = "Exact 95% CI" if name == "accuracy" else f"Bootstrap 95% CI, {resamples:,} resamples"
    return _row(name, list(map(_as_estimate, pair)), _with_caution(kind, pair))


def _accuracy_row(findings: Findings) -> MetricRow:
    total, estimates = findings.n_samples, []
    for evaluation in findings.evaluations:
        hits = np.array([round(evaluation.accuracy * total)])
        low, high = clopper_pearson(hits, np.array([total]), 1 - LEVEL)
        estimates.append(Estimate(evaluation.accuracy, float(low[0]), float(high[0])))
    return _row("accuracy", estimates, "Exact 95% CI")


def _score_row(name: str, findings: Findings) -> MetricRow:
    """Return the mean of a proper score, with a normal confidence interval."""
    quantile = float(ndtri((1 + LEVEL) / 2))
    pairs = zip(findings.evaluations, findings.standard_errors[name], strict=True)
    estimates = [
        Estimate(mean, mean - quantile * error, mean + quantile * error)
        for mean, error in ((getattr(evaluation, name), error) for evaluation, error in pairs)
    ]
    return _row(name, estimates, "Normal 95% CI of the mean")


def _debiased_row(notion: str, case: Case) -> MetricRow:
    n_bins, weight = case.request.n_bins, case.drawn.sample_weight
    pair = [
        inference.debiased_interval(
            case.drawn.y, proba, notion=notion, n_bins=n_bins, sample_weight=weight
        )
        for proba in case.drawn.both
    ]
    note = _with_caution("Debiased L2 calibration error with 95% CI", pair)
    before, after = map(_as_estimate, pair)
    return MetricRow(
        f"{notion}-l2", f"{notion.capitalize()} error (L2)", before, after, "lower", note
    )


def _plug_in_row(
    name: str,
    evaluations: Sequence[Evaluation],
    tests: Sequence[CheckRow],
    scope: str = "",
) -> MetricRow:
    estimates = [Estimate(float(getattr(evaluation, name))) for evaluation in evaluations]
    return _row(name, estimates, _plug_in_note(name, tests, scope))


def _plug_in_note(name: str, tests: Sequence[CheckRow], scope: str) -> str:
    """Return the expected value under calibration if a test has computed it, else another note."""
    for test in tests:
        if test.name == name and test.expected_before:
            before, after = map(format_number, (test.expected_before, test.expected_after or 0.0))
            return (
                f"Biased upward. Under perfect calibration, the expected value is {before} before "
                f"and {after} after calibration{scope}."
            )
    return _NOTES.get(name, "")


def _measure_row(name: str, case: Case) -> MetricRow:
    y, weight = case.tested.y, case.tested.sample_weight
    values = [METRICS[name](y, proba, sample_weight=weight) for proba in case.tested.both]
    return _row(name, list(map(Estimate, values)), _NOTES[name])


def _row(name: str, estimates: Sequence[Estimate], note: str) -> MetricRow:
    before, after = estimates
    return MetricRow(name, metric_title(name), before, after, METRICS[name].better, note)


def metric_title(name: str) -> str:
    """Return the title of a metric with a capital first letter."""
    title = METRICS[name].title
    return title[0].upper() + title[1:]


def _as_estimate(interval: inference.Interval) -> Estimate:
    return Estimate(float(interval.estimate), float(interval.low), float(interval.high))


def _with_caution(note: str, pair: Sequence[inference.Interval]) -> str:
    """If the level of the intervals is not guaranteed, append the reasons to a note."""
    if all(interval.guarantee != "heuristic" for interval in pair):
        return note
    reasons = dict.fromkeys(interval.note for interval in pair if interval.note)
    listed = "; ".join(reasons) or "too few rows"
    return f"{note}. The level of the CI is not guaranteed. Reason: {listed}."
