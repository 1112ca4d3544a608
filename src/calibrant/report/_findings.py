"""Results that are computed from sums over all rows, in one pass.

The KS error needs rows in the order of their scores. Chunked rows are not sorted, but counted in
cells of scores (`calibrant.notions._cells`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._crossfit.scores import SCORES
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.simplex import as_proba
from calibrant._typing import FloatArray, IntArray
from calibrant.inference import Gain, Interval, LossMoments
from calibrant.inference._confidence_gap import gap_interval
from calibrant.metrics import Evaluation, MetricAccumulator
from calibrant.metrics.ks import KsPath, ks_path
from calibrant.notions import as_notion
from calibrant.report._charts import class_rows, ks_graph, reliability, tables_of
from calibrant.report._content import ClassRow, KsGraph, Reliability
from calibrant.report._fits import Fits, after_of
from calibrant.report._request import Request
from calibrant.report._rows import DrawnRows, FoldOf, ReportRows, draw_rows, join_drawn

LEVEL = 0.95
"""Level of the confidence intervals of a report."""


@dataclass(frozen=True, eq=False)
class Findings:
    """Results for all rows. Pairs are before and after calibration."""

    n_samples: float
    evaluations: tuple[Evaluation, ...]
    standard_errors: Mapping[str, tuple[float, ...]]
    """Standard errors of the means of proper scores."""
    gain: Gain
    gaps: tuple[Interval, ...]
    """Mean confidence minus accuracy."""
    reliability: tuple[Reliability, ...]
    ks: KsGraph
    per_class: tuple[ClassRow, ...]
    cell_shares: tuple[float | None, ...]
    """Share of the rows in the fullest cell, or None if the KS error was computed from the rows."""


def evaluate_rows(
    rows: ReportRows, predicted: Sample, fits: Fits, request: Request, names: Sequence[str]
) -> tuple[Findings, DrawnRows]:
    """Return the results for all predicted rows, and the rows that were drawn for tests."""
    rule = _SumRule(fits.predictor.fold_of, fits.n_folds, request.n_bins, rows.places)
    *accumulators, losses, columns, weight, drawn = predicted.sum_chunks(rule.sums)
    before = rows.sample.transformed(partial(as_proba, inputs=request.inputs))
    paths, shares = zip(*map(_confidence_path, (before, predicted.rescored(after_of))), strict=True)
    evaluations = tuple(
        replace(accumulator.compute(), ks=path.error)
        for accumulator, path in zip(accumulators, paths, strict=True)
    )
    ratios = () if fits.is_held_out else weight / (weight.sum() - weight)
    gaps, standard_errors = _intervals(columns)
    tables = [tables_of(accumulator) for accumulator in accumulators]
    findings = Findings(
        n_samples=evaluations[0].n_samples,
        evaluations=evaluations,
        standard_errors=standard_errors,
        gain=losses.gain(ratios=ratios, score="log_loss", level=LEVEL),
        gaps=gaps,
        reliability=reliability(tables, names),
        ks=ks_graph(paths),
        per_class=class_rows(tables, rows.sample.class_weights, names),
        cell_shares=shares,
    )
    return findings, join_drawn(drawn)


class _SumRule(NamedTuple):
    """Sums over the rows of predicted chunks."""

    fold_of: FoldOf
    n_folds: int
    n_bins: int
    places: IntArray | None

    def sums(self, chunk: ArraySample) -> tuple[Any, ...]:
        """Compute all sums of a chunk.

        The result contains accumulators before and after calibration, and moments of the log-loss
        and of `_columns_of`. The result also contains the weight of each fold and the drawn rows.
        """
        after = chunk.columns[0]
        rows = DrawnRows(chunk.u[:], after, chunk.y, chunk.weight)
        losses = [s.losses(p, rows.y) for s in SCORES.values() for p in rows.both]
        return (
            self._accumulate(chunk),
            self._accumulate(chunk.with_scores(after)),
            LossMoments.of_rows(np.stack(losses[:2]), rows.weight),  # the first score is log-loss
            LossMoments.of_rows(_columns_of(rows, losses), rows.weight),
            np.bincount(self.fold_of(chunk), rows.weight, self.n_folds),
            draw_rows(self.places, chunk, rows),
        )

    def _accumulate(self, chunk: ArraySample) -> MetricAccumulator:
        accumulator = MetricAccumulator(self.n_bins, keep_top=0)
        return accumulator._update_checked(chunk) if chunk.weight.any() else accumulator


def _columns_of(rows: DrawnRows, losses: Sequence[FloatArray]) -> FloatArray:
    """Return columns whose means and variances are computed, each before and after calibration.

    The first column is zero, because `LossMoments` are moments of differences from the first
    column. The other columns are confidence minus outcome, the variance of the outcome that the
    confidence implies, and losses.
    """
    confidence = [proba.max(axis=1) for proba in rows.both]
    is_correct = [proba.argmax(axis=1) == rows.y for proba in rows.both]
    gaps = [top - correct for top, correct in zip(confidence, is_correct, strict=True)]
    variances = [top * (1 - top) for top in confidence]
    return np.stack([np.zeros(len(rows.y)), *gaps, *variances, *losses])


def _intervals(
    columns: LossMoments,
) -> tuple[tuple[Interval, ...], dict[str, tuple[float, ...]]]:
    """Confidence intervals of confidence minus accuracy, and standard errors of mean scores."""
    rows = columns.n_effective
    gaps, expected, *_ = columns.mean[1:].reshape(-1, 2).tolist()
    variances, _, *losses = columns.variances[1:].reshape(-1, 2).tolist()
    intervals = tuple(
        gap_interval(rows, gap, variance if rows > 1 else 1.0, implied, LEVEL)
        for gap, variance, implied in zip(gaps, variances, expected, strict=True)
    )
    errors = [tuple(np.sqrt(np.divide(pair, rows)).tolist()) for pair in losses]
    return intervals, dict(zip(SCORES, errors, strict=True))


def _confidence_path(sample: Sample) -> tuple[KsPath, float | None]:
    """Return the KS graph. For chunked rows, also return the largest share of rows in a cell."""
    claim = next(iter(sample.claims(as_notion("confidence"))))
    if claim.ends is None:
        return ks_path(claim), None
    _, cell = np.unique(claim.ends, return_inverse=True)
    return ks_path(claim), float(np.bincount(cell, claim.weight).max() / sample.total)
