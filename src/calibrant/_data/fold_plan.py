"""Folds of a sample in memory or in chunks.

`calibrant._data.folds` assigns rows in memory to folds. Chunked rows are assigned by their row
number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from calibrant._data.folds import Fold, as_folds, folds_for
from calibrant._data.sample import ArraySample, Sample, join_rows
from calibrant._kernels.blocks import sum_in_pairs
from calibrant._typing import AnyArray, FloatArray, IntArray, Rng
from calibrant._validation import check_count

N_GROUPS = 5
"""Number of groups of held-out rows if a single fold is evaluated."""

MOST_HELD_OUT = 2**16
"""Maximum number of chunked rows in a single evaluated fold. One process gathers about a hundred
bytes per row. More rows would not change the third digit of the weights."""

_RUN_LENGTH = 60
"""Number of consecutive chunked rows that stay in one fold, so nested fits can split them again."""


class HeldOut(NamedTuple):
    """Held-out rows of a fold, in memory, with a group number per row.

    Ensemble weights that were fitted on some groups can be evaluated on the other groups.
    """

    fold: int
    rows: ArraySample
    group: IntArray


class FoldPlan(ABC):
    """The training rows and the held-out rows of each fold."""

    n_folds: int
    """Number of folds that are evaluated."""

    @abstractmethod
    def train(self, fold: int) -> Sample:
        """Return the training rows of a fold."""

    @abstractmethod
    def sum_held_out(self, function: Callable[[HeldOut], Any]) -> Any:
        """Sum ``function`` over the held-out rows of all folds in one pass."""

    @abstractmethod
    def rescored(self, score: Callable[[int, ArraySample], FloatArray]) -> Sample:
        """Return the rows with scores ``score(fold, rows)`` of the fold that holds them out.

        The number of this fold is stored as an additional column of the rows. If a single fold is
        evaluated, its calibrator also scores the training rows, which have the number -1.
        """

    @property
    @abstractmethod
    def ratios(self) -> FloatArray:
        """Ratio of held-out weight to training weight of each fold."""

    @property
    def trains(self) -> list[Sample]:
        """The training rows of each fold."""
        return [self.train(fold) for fold in range(self.n_folds)]


class RowFolds(FoldPlan):
    """Folds of rows in memory."""

    def __init__(self, sample: ArraySample, folds: list[Fold]) -> None:
        self._sample, self._folds, self.n_folds = sample, folds, len(folds)

    def train(self, fold: int) -> ArraySample:
        rows = self._folds[fold]
        return self._sample.subset(rows.fit, rows.fit_weight)

    def sum_held_out(self, function: Callable[[HeldOut], Any]) -> Any:
        return sum_in_pairs(function(self._held_out(fold)) for fold in range(self.n_folds))

    def rescored(self, score: Callable[[int, ArraySample], FloatArray]) -> Sample:
        parts = [(number, self._held_out(number).rows) for number in range(self.n_folds)]
        parts += [(-1, self.train(0))] if self.n_folds == 1 else []
        return join_rows([_rescored_columns(score, *part) for part in parts])

    def _held_out(self, number: int) -> HeldOut:
        fold = self._folds[number]
        rows = self._sample.subset(fold.held_out, fold.held_out_weight)
        if self.n_folds == 1 and len(fold.held_out) >= N_GROUPS:
            return HeldOut(number, rows, _split_groups(rows))
        return HeldOut(number, rows, np.full(len(fold.held_out), number))

    @property
    def ratios(self) -> FloatArray:
        return np.array([f.held_out_weight.sum() / f.fit_weight.sum() for f in self._folds])


def _rescored_columns(
    score: Callable[[int, ArraySample], FloatArray], number: int, rows: ArraySample
) -> tuple[AnyArray, ...]:
    """Return the columns of a sample with new scores, followed by the fold number (or -1)."""
    _, *other_columns = rows.columns_of(np.arange(rows.shape[0]))
    return score(max(number, 0), rows), *other_columns, np.full(rows.shape[0], number)


def _split_groups(rows: ArraySample) -> IntArray:
    """Assign rows to groups by their content.

    All copies of a row with an integer weight are in one group.
    """
    group = np.zeros(len(rows.y), dtype=np.intp)
    folds = as_folds(N_GROUPS, np.asarray(rows.u), rows.y, rows.weight, None)
    for number, fold in enumerate(folds):
        group[fold.held_out] = number
    return group


class _NumberRule(NamedTuple):
    """Assign row i to fold ``i // run mod n_folds``.

    Only the first ``n_evaluated`` folds are evaluated.
    """

    n_folds: int
    n_evaluated: int
    run: int

    def fold(self, chunk: ArraySample) -> IntArray:
        return (chunk.start + np.arange(chunk.shape[0])) // self.run % self.n_folds

    def without(self, fold: int, chunk: ArraySample) -> ArraySample:
        """Return the rows of a chunk, with weight zero for the rows of a fold."""
        return chunk.weighted(np.where(self.fold(chunk) == fold, 0.0, chunk.weight))

    def sum_held_out(self, function: Callable[[HeldOut], Any], chunk: ArraySample) -> Any:
        fold = self.fold(chunk)
        return sum_in_pairs(
            function(self._held_out(number, chunk, fold)) for number in range(self.n_evaluated)
        )

    def _held_out(self, number: int, chunk: ArraySample, fold: IntArray) -> HeldOut:
        places = np.flatnonzero((fold == number) & (chunk.weight > 0))
        if self.n_evaluated > 1:
            group = np.full(len(places), number)
        else:
            group = (chunk.start + places) // self.n_folds % N_GROUPS
        return HeldOut(number, chunk.subset(places), group)

    def rescored(
        self, score: Callable[[int, ArraySample], FloatArray], chunk: ArraySample
    ) -> ArraySample:
        """The rows of a chunk in their order, with new scores and the number of the fold."""
        fold = self.fold(chunk)
        fold[fold >= self.n_evaluated] = -1
        scores = np.empty(chunk.shape)
        for number in np.unique(fold).tolist():
            places = np.flatnonzero(fold == number)
            scores[places] = score(max(number, 0), chunk.subset(places))
        rows = chunk.with_scores(scores)
        rows.columns = (*chunk.columns, fold)
        return rows

    def weights(self, chunk: ArraySample) -> FloatArray:
        return np.bincount(self.fold(chunk), chunk.weight, self.n_folds)[: self.n_evaluated]


class NumberedFolds(FoldPlan):
    """Folds of chunked rows, which are assigned by row number."""

    def __init__(self, sample: Sample, rule: _NumberRule) -> None:
        self._sample, self._rule, self.n_folds = sample, rule, rule.n_evaluated

    def train(self, fold: int) -> Sample:
        return self._sample.map(partial(self._rule.without, fold))

    def sum_held_out(self, function: Callable[[HeldOut], Any]) -> Any:
        return self._sample.sum_chunks(partial(self._rule.sum_held_out, function))

    def rescored(self, score: Callable[[int, ArraySample], FloatArray]) -> Sample:
        return self._sample.rescored(partial(self._rule.rescored, score))

    @cached_property
    def ratios(self) -> FloatArray:
        held_out = self._sample.sum_chunks(self._rule.weights)
        ratios: FloatArray = held_out / (self._sample.total - held_out)
        return ratios


def plan_folds(
    cv: Any,
    sample: Sample,
    random_state: Rng = None,
    *,
    one_fold: bool = False,
    by_runs: bool = False,
) -> FoldPlan:
    """Assign rows to folds by their content if they are in memory, else by their row number.

    ``one_fold`` evaluates only one of the folds, unless ``cv`` is a splitter. If rows are chunked,
    this fold has at most `MOST_HELD_OUT` rows. ``by_runs`` keeps consecutive chunked rows together.
    """
    is_number = cv is None or isinstance(cv, int | np.integer)
    if not sample.is_chunked:
        rows = sample.rows("cv")
        folds = as_folds(cv, np.asarray(rows.u), rows.y, rows.weight, random_state, rows.groups)
        return RowFolds(rows, folds[:1] if one_fold and is_number else folds)
    if not is_number:
        raise TypeError(
            "Chunked data are assigned to folds by row number, so cv must be a number of folds, "
            f"got {cv!r}. For example, pass cv=5."
        )
    n_folds = folds_for(sample.total) if cv is None else check_count(cv, "cv", minimum=2)
    if one_fold:
        n_folds = max(n_folds, -(-sample.shape[0] // MOST_HELD_OUT))
    n_folds = min(n_folds, sample.shape[0])
    if n_folds < 2:  # a single row cannot be split into folds
        return NumberedFolds(sample, _NumberRule(1, 0, 1))
    run = int(np.clip(sample.shape[0] // (4 * n_folds), 1, _RUN_LENGTH)) if by_runs else 1
    return NumberedFolds(sample, _NumberRule(n_folds, 1 if one_fold else n_folds, run))
