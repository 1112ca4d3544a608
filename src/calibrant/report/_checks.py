"""Tests of calibration, and the decomposition of the log-loss, on the rows that are tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant import inference
from calibrant.inference._results import holm
from calibrant.multiclass import StructuredScaling
from calibrant.report._case import Case
from calibrant.report._content import CheckRow, Decomposition
from calibrant.report._metric_rows import metric_title

_TESTED = ("conf_ece", "cw_ece", "tl_ece")

_KERNEL_ROWS = 100
"""The level of the kernel test is asymptotic: it is not shown for fewer rows."""

_ALL_PAIRS_ROWS = 2000
"""Up to so many rows the kernel test uses all pairs of rows, which has the most power."""

_MATRIX_CLASSES = 100
"""Up to so many classes the log-loss is decomposed by matrix scaling, else by vector scaling."""


def check_rows(case: Case) -> tuple[CheckRow, ...]:
    """All tests, with p-values adjusted for their number.

    After cross-fitting they are heuristic, because the label of a row has fitted the calibrators
    that predict other rows.
    """
    rows = [_consistency_row(metric, case) for metric in _TESTED]
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
    return _check_row(metric, f"Consistency: {metric_title(metric)}", pair)


def _kernel_row(case: Case) -> CheckRow:
    rows, request = case.tested, case.request
    method = "wild" if len(rows.y) <= _ALL_PAIRS_ROWS else "block"
    pair = [
        inference.kernel_test(
            rows.y, proba, method=method, n_resamples=request.n_resamples, rng=request.seed
        )
        for proba in rows.both
    ]
    return _check_row("kernel", "Kernel, whole vector", pair)


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


def decompose(case: Case) -> Decomposition:
    """The log-loss as calibration plus refinement, before and after."""
    rows, seed = case.tested, case.request.seed
    # A matrix of all pairs of many classes takes minutes to fit, and more rows than there are.
    is_large = rows.both[0].shape[1] > _MATRIX_CLASSES
    calibrator = StructuredScaling("vector") if is_large else None
    before, after = (
        inference.score_decomposition(
            rows.y, proba, calibrator, rng=seed, sample_weight=rows.sample_weight
        )
        for proba in rows.both
    )
    return Decomposition(
        "log_loss",
        (before.calibration, before.refinement),
        (after.calibration, after.refinement),
    )
