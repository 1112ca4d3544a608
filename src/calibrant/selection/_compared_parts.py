"""Many calibrators on rows that come in parts: every row is judged by maps that have not seen it,
and of what they give only sums are gathered.

Folds are runs of rows: row i is judged in fold ``i // 60 mod cv``, where there are enough rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._crossfit.members import set_up
from calibrant._crossfit.scores import SCORES
from calibrant._data.chunked_sample import as_chunked_sample, reader_for
from calibrant._data.chunks import ChunkSource
from calibrant._data.sample import ArraySample, Sample
from calibrant._typing import FloatArray, IntArray, LabelsLike
from calibrant._validation import check_count
from calibrant.base import Calibrator
from calibrant.inference._gain import Gain, summed_gain
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._registry import METRICS, Metric
from calibrant.selection._parted import Judges, judged_proba, runs_of, trains_of

_SUMMED = frozenset(entry.name for entry in fields(Evaluation)) & set(METRICS) - {"ks"}
"""Metrics that are made of sums over rows."""


class SetResult(NamedTuple):
    """What was found on one set of predictions."""

    values: FloatArray
    """The metrics of each fold, (n_methods, n_folds, n_metrics)."""
    differences: dict[tuple[str, str, str], Gain]
    """What a method gains over another in a score."""
    notes: tuple[str, ...] = ()
    """How maps differ from those of rows in memory."""


def compare_parts(
    parts: ChunkSource,
    methods: Mapping[str, Any],
    judges: Mapping[str, Metric],
    *,
    cv: Any,
    inputs: str,
    classes: LabelsLike | None,
) -> SetResult:
    """Judge every method on all rows; the first method is the scores as they are."""
    n_folds = _check_cv(cv)
    for name, judge in judges.items():
        _check_metric(name, judge)
    made = {name: _set_up(name, one, inputs, parts.n_columns) for name, one in methods.items()}
    sample = as_chunked_sample(parts, reader_for(parts, classes, inputs))
    folds = runs_of(sample, n_folds)
    trains = trains_of(sample, folds)
    maps = {
        name: [clone(one)._fit_checked(train) for train in trains] for name, one in made.items()
    }
    found = sample.sum_chunks(_Judged(tuple(maps.values()), folds, inputs).sums)
    return _result(found, sample, tuple(maps), judges, _notes(maps))


def _check_cv(cv: Any) -> int:
    if not isinstance(cv, int | np.integer):
        raise TypeError(
            "of scores that come in parts, such as dask arrays, folds go by the number of the "
            f"row: pass cv as a number of folds; got {cv!r}"
        )
    return check_count(cv, "cv", minimum=2)


def _check_metric(name: str, judge: Metric) -> None:
    known = METRICS.get(judge.name, judge)
    is_same = known.function is judge.function and known.options == judge.options
    if not is_same or judge.name not in _SUMMED:
        raise TypeError(
            f"{name} of every fold needs its rows, and of scores that come in parts nothing but "
            f"sums is gathered: choose from {', '.join(sorted(_SUMMED))}"
        )


def _set_up(name: str, method: Any, inputs: str, n_classes: int) -> Calibrator:
    made = set_up(method, inputs, n_classes)
    if not isinstance(made, Calibrator):
        raise TypeError(f"of scores that come in parts methods are ours, got {name}: {made!r}")
    if made.needs_rows:
        raise TypeError(f"{name} needs all rows in memory, but the scores are read in chunks")
    return made


def _notes(maps: Mapping[str, Sequence[Calibrator]]) -> tuple[str, ...]:
    told = {name: own[0]._chunked_note() for name, own in maps.items()}
    return tuple(f"{name}: {said}" for name, said in told.items() if said)


class _Judged(NamedTuple):
    """How the rows of a part are judged: by the maps of each method, one a fold."""

    maps: tuple[Sequence[Any], ...]
    folds: Judges
    inputs: str

    def sums(self, part: ArraySample) -> tuple[Any, ...]:
        """Losses, products of what is gained over the first method, the weight of each fold, and
        accumulators of each method and fold.
        """
        y, weight, fold = part.y, part.weight, self.folds.fold(part)
        rows = [np.flatnonzero(fold == f) for f in range(self.folds.n_folds)]
        losses = np.empty((len(SCORES), len(self.maps), len(y)))
        accumulated: list[MetricAccumulator] = []
        for number, own in enumerate(self.maps):
            proba = judged_proba(own, self.folds, self.inputs, part)
            losses[:, number] = [rule.losses(proba, y) for rule in SCORES.values()]
            accumulated += [_accumulated(proba[of], y[of], weight[of]) for of in rows]
        gained = losses[:, :1] - losses
        return (
            losses @ weight,
            (gained * weight) @ gained.transpose(0, 2, 1),
            np.bincount(fold, weight, self.folds.n_folds),
            *accumulated,
        )


def _accumulated(proba: FloatArray, y: IntArray, weight: FloatArray) -> MetricAccumulator:
    found = MetricAccumulator(keep_top=0)
    return found._update_checked(ArraySample(proba, y, weight)) if len(y) else found


def _result(
    found: tuple[Any, ...],
    sample: Sample,
    names: tuple[str, ...],
    judges: Mapping[str, Metric],
    notes: tuple[str, ...],
) -> SetResult:
    losses, products, judged, *accumulated = found
    if not (judged > 0).all():
        raise ValueError(
            f"{(judged == 0).sum()} of {len(judged)} folds have no rows of positive weight: "
            "pass fewer folds by cv"
        )
    evaluations = [one.compute() for one in accumulated]
    values = [[getattr(one, judge.name) for judge in judges.values()] for one in evaluations]
    shape = len(names), len(judged), len(judges)
    differences = {
        (method, other, score): summed_gain(
            sample.total,
            (losses[s, b], losses[s, a]),
            products[s, a, a] + products[s, b, b] - 2 * products[s, a, b],
            judged / (sample.total - judged),
            score=score,
        )
        for s, score in enumerate(SCORES)
        for a, method in enumerate(names)
        for b, other in enumerate(names)
    }
    return SetResult(np.array(values).reshape(shape), differences, notes)
