"""Tests of calibration, the smallest detectable error, and the decomposition of the log-loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant import inference
from calibrant._output.numbers import format_number, format_percent
from calibrant._typing import FloatArray
from calibrant.guarantees import clopper_pearson
from calibrant.inference._results import holm
from calibrant.metrics.registry import METRICS
from calibrant.multiclass import StructuredScaling
from calibrant.report._case import Case
from calibrant.report._content import CheckRow, Decomposition, DetectableNote
from calibrant.report._rows import DrawnRows

_TESTED = ("conf_ece", "cw_ece", "tl_ece")

_ALPHA = 0.05
"""One minus the confidence level of the largest errors that the rows do not exclude."""

_KERNEL_ROWS = 100
"""Minimum number of rows of the kernel test, whose level is asymptotic."""

_ALL_PAIRS_ROWS = 2000
"""Maximum number of rows for which the kernel test uses all pairs of rows. All pairs have the
highest power."""

_MATRIX_CLASSES = 100
"""Maximum number of classes for which matrix scaling decomposes the log-loss. With more classes,
vector scaling is used."""


def check_rows(case: Case) -> tuple[CheckRow, ...]:
    """Run all tests, with p-values adjusted for the number of tests.

    After cross-fitting, p-values are heuristic, because the label of a row was used to fit the
    calibrators that predict other rows.
    """
    rows = [*(_consistency_row(metric, case) for metric in _TESTED), _class_row(case)]
    if len(case.tested.y) >= _KERNEL_ROWS and case.tested.sample_weight is None:
        rows.append(_kernel_row(case))
    before, after = (holm([getattr(row, name) for row in rows]) for name in ("p_before", "p_after"))
    return tuple(
        replace(
            row,
            guarantee_after=row.guarantee_after if case.fits.is_held_out else "heuristic",
            p_holm_before=p_before,
            p_holm_after=p_after,
        )
        for row, p_before, p_after in zip(rows, before, after, strict=True)
    )


def _consistency_row(metric: str, case: Case) -> CheckRow:
    rows, request = case.tested, case.request
    pair = [
        inference.consistency_test(
            rows.y,
            proba,
            metric,
            request.n_resamples,
            rng=request.seed,
            sample_weight=rows.sample_weight,
        )
        for proba in rows.both
    ]
    return _check_row(metric, f"Consistency test of {METRICS[metric].title}", pair)


def _class_row(case: Case) -> CheckRow:
    rows = case.tested
    pair = [
        inference.mean_test(rows.y, proba, sample_weight=rows.sample_weight) for proba in rows.both
    ]
    return _check_row("predicted-class", "Mean confidence per predicted class", pair)


def _kernel_row(case: Case) -> CheckRow:
    rows, request = case.tested, case.request
    method = "wild" if len(rows.y) <= _ALL_PAIRS_ROWS else "block"
    pair = [
        inference.kernel_test(
            rows.y, proba, method=method, n_resamples=request.n_resamples, rng=request.seed
        )
        for proba in rows.both
    ]
    return _check_row("kernel", "Kernel test of the probability vectors", pair)


def _check_row(name: str, title: str, pair: Sequence[inference.CalibrationTestResult]) -> CheckRow:
    before, after = pair
    return CheckRow(
        name=name,
        title=title,
        null=before.null,
        guarantee=before.guarantee,
        statistic_before=before.statistic,
        statistic_after=after.statistic,
        expected_before=before.expected,
        expected_after=after.expected,
        p_before=before.p_value,
        p_after=after.p_value,
        guarantee_after=after.guarantee,
    )


class PossibleError(NamedTuple):
    """Largest mean errors that are compatible with the data.

    ``overall`` is the error over all rows. ``worst`` is the largest error of a predicted class, and
    ``name`` is this class.
    """

    overall: float
    worst: float
    name: str
    rows: float


def possible_error(rows: DrawnRows, names: Sequence[str]) -> PossibleError:
    """Return the largest errors of the mean confidence within their confidence intervals.

    The errors are for the probabilities before calibration. The Clopper-Pearson intervals hold
    jointly for all rows and for all predicted classes (Bonferroni).
    """
    sums = _sums_by_prediction(rows, len(names))
    sums = np.column_stack([sums.sum(axis=1), sums])
    occupied = np.flatnonzero(sums[0] > 0)
    weight, squares, score, hits = sums[:, occupied]
    count = weight**2 / squares  # the effective number of rows
    low, high = clopper_pearson(hits / weight * count, count, _ALPHA / len(occupied))
    largest = np.maximum(score / weight - low, high - score / weight)
    worst = 1 + int(largest[1:].argmax())
    return PossibleError(
        float(largest[0]), float(largest[worst]), names[occupied[worst] - 1], float(count[worst])
    )


def _sums_by_prediction(rows: DrawnRows, n_classes: int) -> FloatArray:
    """Sum weights, their squares, confidences and correctness per predicted class, (4, K)."""
    predicted, confidence = rows.before.argmax(axis=1), rows.before.max(axis=1)
    is_correct = predicted == rows.y
    weight = rows.weight
    columns = (weight, weight**2, weight * confidence, weight * is_correct)
    return np.array([np.bincount(predicted, column, n_classes) for column in columns])


def detectable(case: Case) -> DetectableNote:
    """Return the smallest detectable overconfidence of the original probabilities."""
    rows = case.tested
    error = inference.detectable_error(rows.before, sample_weight=rows.sample_weight)
    is_finite = bool(np.isfinite(error.temperature))
    return DetectableNote(
        error.gap if is_finite else None,
        error.temperature if is_finite else None,
        error.power,
        detectable_sentence(error),
    )


def detectable_sentence(error: inference.DetectableError) -> str:
    """Describe the smallest detectable error in sentences."""
    if not np.isfinite(error.temperature):
        return (
            f"There are too few rows to detect any overconfidence with a probability of "
            f"{format_percent(error.power)}."
        )
    return (
        f"The tests may miss overconfidence (mean confidence minus accuracy) below "
        f"{format_percent(error.gap)}, which corresponds to a temperature below "
        f"{format_number(error.temperature)}. Even the most powerful test at level "
        f"{format_percent(error.alpha)} misses such overconfidence in more than "
        f"{format_percent(1 - error.power)} of samples of this size."
    )


def decompose(case: Case) -> Decomposition:
    """Split the log-loss into calibration and refinement, before and after calibration."""
    rows, seed = case.tested, case.request.seed
    # With many classes, a full matrix takes minutes to fit and overfits the tested rows.
    is_large = rows.both[0].shape[1] > _MATRIX_CLASSES
    calibrator = StructuredScaling("vector") if is_large else None
    pair = [
        inference.score_decomposition(
            rows.y, proba, calibrator, rng=seed, sample_weight=rows.sample_weight
        )
        for proba in rows.both
    ]
    return Decomposition("log_loss", *((part.calibration, part.refinement) for part in pair))
