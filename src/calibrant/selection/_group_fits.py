"""Group effects from one-stage and two-stage fits, with strengths chosen by held-out log-loss.

The one-stage fit starts from the scores, and jointly fits the effects of all rows and of each
group. The two-stage fit starts from out-of-fold predictions of the pooled calibrator, and fits only
the effects of each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from calibrant._crossfit.members import proba_of
from calibrant._data.fold_plan import N_GROUPS, FoldPlan
from calibrant._data.group_columns import GroupLevels
from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.blocks import row_blocks
from calibrant._kernels.simplex import (
    EPS,
    log_clipped,
    score_logits,
    softmax_in_place,
    true_class,
)
from calibrant._optim.group_effects import TOLERANCE, Cells, effect_logits, fit_effects
from calibrant._typing import FloatArray, IntArray

STRENGTHS = (np.inf, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
"""Penalties to choose from, in the order in which they are tried. A strength of s is a normal prior
with standard deviation s ** -0.5 for every effect, so 0.1 allows effects of about 3 in the logit.
"""

COMMON_STRENGTH = 1.0
"""Penalty of the effects of all rows together, which many rows determine."""

_FOLD_TOLERANCE = 1e-6
"""Tolerance of fits on folds, which is far below the differences of log-losses that matter."""

_FIXED = 1e12
"""Penalty that holds the effects of groups at zero."""


@dataclass(frozen=True, eq=False)
class CellRule:
    """Numbered cells of rows, which are all combinations of groups that occur."""

    levels: GroupLevels
    keys: IntArray
    """Sorted numbers of the combinations."""
    combinations: IntArray
    """Numbers of the groups of each cell, (cells, columns); -1 for rows without a group."""

    @classmethod
    def of(cls, sample: Sample, levels: GroupLevels) -> CellRule:
        """Find the cells of all rows in one pass."""
        found = np.concatenate(sample.sum_chunks(partial(_distinct_codes, levels)))
        combinations = np.unique(found, axis=0)
        keys = _keys(combinations, levels)
        order = np.argsort(keys)
        return cls(levels, keys[order], combinations[order])

    def sort(self, chunk: ArraySample) -> ArraySample:
        """Return the rows of a chunk sorted by cell, with the columns cell and fold."""
        *columns, fold = chunk.columns
        cell = np.searchsorted(self.keys, _keys(self.levels.codes(columns), self.levels))
        order = np.argsort(cell, kind="stable")
        rows = chunk.subset(order)
        rows.columns = (cell[order], fold[order])
        return rows

    def cells(self, *, with_common: bool) -> Cells:
        """Return the groups of each cell.

        With ``with_common``, the first group contains all rows.
        """
        n_cells, n_columns = self.combinations.shape
        row = np.repeat(np.arange(n_cells), n_columns)
        group = self.combinations.ravel()
        is_known = group >= 0
        row, group = row[is_known], group[is_known] + with_common
        if with_common:
            row = np.append(row, np.arange(n_cells))
            group = np.append(group, np.zeros(n_cells, dtype=np.intp))
        shape = n_cells, self.levels.n_groups + with_common
        return Cells(sparse.csr_matrix((np.ones(len(row)), (row, group)), shape=shape))


def _distinct_codes(levels: GroupLevels, chunk: ArraySample) -> list[IntArray]:
    codes = levels.codes(chunk.columns)
    first = np.unique(_keys(codes, levels), return_index=True)[1]
    return [codes[first]]


def _keys(codes: IntArray, levels: GroupLevels) -> IntArray:
    """Return a number for each combination of groups."""
    keys = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        keys = keys * (levels.n_groups + 1) + column + 1
    return keys


class Stage(NamedTuple):
    """Logits of the rows with their cells and folds, and the groups of the cells."""

    rows: Sample
    cells: Cells
    with_common: bool

    @property
    def n_effects(self) -> int:
        return self.cells.n_effects(self.rows.n_columns)

    def fit(
        self, strength: float, fold: int | None = None, start: FloatArray | None = None
    ) -> FloatArray:
        """Return the effects of all groups, fitted to all rows or to the rows outside a fold."""
        if np.isinf(strength) and not self.with_common:
            return np.zeros((self.cells.shape[1], self.n_effects))
        penalty = np.full(self.cells.shape[1], min(strength, _FIXED))
        if self.with_common:
            penalty[0] = COMMON_STRENGTH
        rows = self.rows if fold is None else self.rows.map(partial(_without_fold, fold))
        tolerance = TOLERANCE if fold is None else _FOLD_TOLERANCE
        effects = fit_effects(rows, self.cells, penalty, start, tolerance)
        if np.isinf(strength):
            effects[1:] = 0.0
        return effects

    def likelihood(self, effects: FloatArray, fold: int) -> FloatArray:
        """Return the probabilities of the true classes for the rows of a fold, in their order."""
        rule = partial(_held_out_likelihood, self.cells.sums(effects), fold)
        return np.concatenate(self.rows.sum_chunks(rule))


def one_stage(plan: FoldPlan, rule: CellRule, inputs: str) -> Stage:
    """Return the fit that starts from the scores."""
    rows = plan.rescored(partial(_raw_logits, inputs)).map(rule.sort)
    return Stage(rows, rule.cells(with_common=True), True)


def two_stages(plan: FoldPlan, rule: CellRule, fits: Sequence[Any], inputs: str) -> Stage:
    """Return the fit that starts from out-of-fold predictions of the pooled calibrator."""
    rows = plan.rescored(partial(_pooled_logits, tuple(fits), inputs)).map(rule.sort)
    return Stage(rows, rule.cells(with_common=False), False)


def _raw_logits(inputs: str, fold: int, rows: ArraySample) -> FloatArray:
    return score_logits(rows.u[:], inputs)


def _pooled_logits(fits: tuple[Any, ...], inputs: str, fold: int, rows: ArraySample) -> FloatArray:
    return log_clipped(proba_of(fits[fold], rows.u[:], inputs), EPS)


def _without_fold(fold: int, chunk: ArraySample) -> ArraySample:
    return chunk.weighted(np.where(chunk.columns[1] == fold, 0.0, chunk.weight))


def _held_out_likelihood(effects: FloatArray, fold: int, chunk: ArraySample) -> list[FloatArray]:
    cell, folds = chunk.columns
    places = np.flatnonzero(folds == fold)
    out = np.empty(len(places))
    for part in row_blocks(len(places), chunk.n_columns):
        rows = places[part]
        proba = softmax_in_place(effect_logits(chunk.u[rows], effects[cell[rows]]))
        out[part] = np.maximum(true_class(proba, chunk.y[rows]), EPS)
    return [out]


class Chosen(NamedTuple):
    """A strength with its out-of-fold likelihoods, and effects at which another fit can start."""

    strength: float
    likelihood: FloatArray
    start: FloatArray


def choose_strength(
    stage: Stage, strengths: Sequence[float], n_folds: int, weight: FloatArray
) -> Chosen:
    """Return the strength with the lowest held-out log-loss.

    Strengths are tried from strong to weak. In practice, the log-loss has a single minimum as a
    function of the strength, so the search ends when the log-loss increases.
    """
    best: Chosen | None = None
    starts: list[FloatArray | None] = [None] * n_folds
    least = np.inf
    for strength in strengths:
        effects = [stage.fit(strength, fold, starts[fold]) for fold in range(n_folds)]
        parts = [stage.likelihood(effects[fold], fold) for fold in range(n_folds)]
        likelihood = np.concatenate(parts)
        loss = -float(weight @ np.log(likelihood))
        if best is not None and loss > least:
            break
        best, least, starts = Chosen(strength, likelihood, effects[0]), loss, [*effects]
    assert best is not None  # there is at least one strength
    return best


def held_out_rows(stage: Stage, n_folds: int) -> tuple[FloatArray, IntArray]:
    """Return weights and groups of the held-out rows, fold by fold as in `choose_strength`."""
    weights = [
        np.concatenate(stage.rows.sum_chunks(partial(_held_out_weight, fold)))
        for fold in range(n_folds)
    ]
    weight = np.concatenate(weights)
    if n_folds == 1:  # weights of the ensemble are cross-fitted within the fold
        return weight, np.arange(len(weight)) % N_GROUPS
    return weight, np.repeat(np.arange(n_folds), [len(part) for part in weights])


def _held_out_weight(fold: int, chunk: ArraySample) -> list[FloatArray]:
    return [chunk.weight[chunk.columns[1] == fold]]
