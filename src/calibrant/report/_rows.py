"""Assignment of the rows of a report to folds, and random selection of rows.

Most numbers of a report are sums over all rows. Tests, debiased errors and the guarantee need the
rows themselves. Such methods use all rows if the rows are in memory, and otherwise a random sample
of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.fold_plan import FoldPlan, RowFolds, plan_folds
from calibrant._data.folds import as_folds
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import WORK_MEMORY
from calibrant._kernels.simplex import is_unit
from calibrant._typing import FloatArray, IntArray

_DRAWN_SCORES = WORK_MEMORY // 2
"""Maximum number of scores of the drawn rows, which is the size of one chunk of a file."""

FoldOf = Callable[[ArraySample], IntArray]
"""The fold that holds out each row of a chunk."""


class Folds(NamedTuple):
    """Folds that hold out every row once."""

    plan: FoldPlan
    fold_of: FoldOf


class ReportRows(NamedTuple):
    """The rows of a report.

    ``places`` are the indices of the rows to draw, or None if all rows are in memory.
    """

    sample: Sample
    places: IntArray | None

    def effective(self) -> ReportRows:
        """Return the same rows with weights that sum to the effective number of rows."""
        return ReportRows(self.sample.effective(), self.places)

    def cut_folds(self, cv: int, seed: int) -> Folds:
        """Return folds that depend on the content of rows, or on row numbers of chunked rows."""
        if self.places is None:
            folds = _folds_by_content(self.sample.rows("A report"), cv, seed)
        else:
            folds = _folds_by_number(self.sample, cv)
        if folds.plan.n_folds < 2:
            raise ValueError(
                "A report needs at least two rows with positive weight, one row to fit and one row "
                "to evaluate. Pass more rows."
            )
        return folds

    def gather(self) -> ArraySample:
        """Return the drawn rows of a sample without weights."""
        if self.places is None:
            return self.sample.rows("A report")
        return self.sample.take(self.places)


def read_rows(sample: Sample, seed: int) -> ReportRows:
    """Return the rows of a sample. If the sample is read in chunks, select the rows to draw."""
    if sample.kept_rows(None) is None:  # the rows are in memory
        return ReportRows(sample.rows("A report"), None)  # raises an error for top m scores
    n_rows, n_classes = sample.shape
    n_drawn = max(1, _DRAWN_SCORES // n_classes)
    if n_rows <= n_drawn:
        return ReportRows(sample, np.arange(n_rows))
    places = np.random.default_rng(seed).choice(n_rows, n_drawn, replace=False)
    return ReportRows(sample, np.sort(places))


def _folds_by_content(rows: ArraySample, cv: int, seed: int) -> Folds:
    weight, number = rows.weight, np.empty(len(rows.y), dtype=np.intp)
    # The folds ignore weights, because a row with weight 2 could be split between two folds.
    folds = as_folds(cv, np.asarray(rows.u), rows.y, np.ones(len(rows.y)), seed)
    for place, fold in enumerate(folds):
        number[fold.held_out] = place
    weighted = [
        fold._replace(fit_weight=weight[fold.fit], held_out_weight=weight[fold.held_out])
        for fold in folds
    ]
    return Folds(RowFolds(rows, weighted), partial(_numbers_of, number))


def _numbers_of(number: IntArray, chunk: ArraySample) -> IntArray:
    return number[chunk.start : chunk.start + chunk.shape[0]]


def _folds_by_number(sample: Sample, cv: int) -> Folds:
    plan: Any = plan_folds(cv, sample, by_runs=True)
    return Folds(plan, plan._rule.fold)


def first_fold(chunk: ArraySample) -> IntArray:
    """Return fold 0 for all rows, because the same fit predicts all rows."""
    return np.zeros(chunk.shape[0], dtype=np.intp)


class DrawnRows(NamedTuple):
    """Rows in memory, with probabilities before and after calibration, column codes and weights."""

    before: FloatArray
    after: FloatArray
    y: IntArray
    weight: FloatArray

    @property
    def both(self) -> tuple[FloatArray, FloatArray]:
        """Probabilities before and after calibration."""
        return self.before, self.after

    @property
    def sample_weight(self) -> FloatArray | None:
        """The weights, or None if all weights are 1."""
        return None if is_unit(self.weight) else self.weight

    def subset(self, rows: Any) -> DrawnRows:
        """Some of the rows."""
        return DrawnRows(*(column[rows] for column in self))

    def draw(self, n_rows: int, seed: int) -> DrawnRows:
        """Return a random sample of at most ``n_rows`` rows, in their original order."""
        if len(self.y) <= n_rows:
            return self
        rows = np.random.default_rng(seed).choice(len(self.y), n_rows, replace=False)
        return self.subset(np.sort(rows))


def draw_rows(places: IntArray | None, chunk: ArraySample, rows: DrawnRows) -> list[DrawnRows]:
    """Return the drawn rows of a chunk as a list, which ``+`` concatenates."""
    if places is None:
        return [rows]
    first, last = np.searchsorted(places, [chunk.start, chunk.start + chunk.shape[0]])
    drawn = places[first:last] - chunk.start
    return [rows.subset(drawn[chunk.weight[drawn] > 0])]


def join_drawn(chunks: Sequence[DrawnRows]) -> DrawnRows:
    """Return the drawn rows of all chunks."""
    if len(chunks) == 1:
        return chunks[0]
    return DrawnRows(*map(np.concatenate, zip(*chunks, strict=True)))
