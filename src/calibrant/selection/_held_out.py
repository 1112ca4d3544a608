"""Sums over held-out rows for a comparison, for all rows and per group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from calibrant._crossfit.members import proba_of
from calibrant._crossfit.scores import SCORES
from calibrant._data.fold_plan import HeldOut
from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import add_results
from calibrant._typing import FloatArray, IntArray
from calibrant.inference import LossMoments
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics.registry import METRICS, Metric

SUMMED = frozenset(entry.name for entry in fields(Evaluation)) & set(METRICS) - {"ks"}
"""Metrics that are sums over rows."""

MEANS = frozenset({"log_loss", "brier_score", "accuracy"})
"""Metrics that are means over rows, so values of folds are comparable with those of all rows."""

ALL_ROWS = ""
"""Key of the sums over all rows. Names of groups are never empty."""


class Moments(dict[str, LossMoments]):
    """Moments of losses for each score, which can be added."""

    def __add__(self, other: Moments) -> Moments:
        return Moments({score: self[score] + other[score] for score in self})


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Held-out rows for metrics that are not sums: method, labels, probabilities and weights."""

    rows: tuple[tuple[int, IntArray, FloatArray, FloatArray], ...] = ()

    def __add__(self, other: KeptRows) -> KeptRows:
        return KeptRows(self.rows + other.rows)

    def measure(self, metric: Metric, method: int) -> float:
        """Return a metric over all rows. User functions get weights only if rows have weights."""
        rows = [columns for number, *columns in self.rows if number == method]
        y, proba, weight = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        options = {} if (weight == 1).all() else {"sample_weight": weight}
        return float(metric(y, proba, **options))


class _GroupSums(dict[str, tuple[Any, ...]]):
    """Sums for each group, which can be added."""

    def __add__(self, other: _GroupSums) -> _GroupSums:
        both = {name: add_results(self[name], other[name]) for name in self if name in other}
        return _GroupSums({**self, **other, **both})


def sum_held_out(
    fits: Sequence[Sequence[Any]], metrics: Sequence[Metric], inputs: str, held_out: HeldOut
) -> _GroupSums:
    """Sum over all held-out rows and over the held-out rows of each group."""
    rows, sums = held_out.rows, partial(_sum_rows, fits, metrics, inputs, held_out.fold)
    names = rows.columns[0] if rows.columns else np.array([])
    groups = {str(name): rows.subset(np.flatnonzero(names == name)) for name in np.unique(names)}
    return _GroupSums({name: sums(part) for name, part in [(ALL_ROWS, rows), *groups.items()]})


def _sum_rows(
    fits: Sequence[Sequence[Any]],
    metrics: Sequence[Metric],
    inputs: str,
    fold: int,
    rows: ArraySample,
) -> tuple[Any, ...]:
    """Sum over rows.

    The sums include the weight per fold, moments of losses, and an accumulator per method and fold.
    If a metric needs the rows themselves, the rows are also included.
    """
    n_folds, kept = len(fits[0]), []
    weight = np.zeros(n_folds)
    weight[fold] = rows.weight.sum()
    losses = {score: np.empty((len(fits), rows.shape[0])) for score in SCORES}
    accumulators = [MetricAccumulator(keep_top=0) for _ in range(len(fits) * n_folds)]
    for number, folds in enumerate(fits):
        proba = proba_of(folds[fold], rows.u[:], inputs)
        for score, rule in SCORES.items():
            losses[score][number] = rule.losses(proba, rows.y) if len(rows.y) else 0.0
        if rows.weight.any():
            accumulators[number * n_folds + fold]._update_checked(rows.with_scores(proba))
        if not all(map(is_summed, metrics)):
            kept.append((number, rows.y, proba, rows.weight))
    moments = {score: LossMoments.of_rows(loss, rows.weight) for score, loss in losses.items()}
    return weight, Moments(moments), KeptRows(tuple(kept)), *accumulators


def is_summed(metric: Metric) -> bool:
    """Return whether a metric can be computed from sums over rows."""
    entry = METRICS.get(metric.name, metric)
    is_same = entry.function is metric.function and entry.options == metric.options
    return is_same and metric.name in SUMMED
