"""A stack of calibrators of rows that come in parts: members are fitted, judged and weighed by sums
over rows.

Folds go by the number of the row: row i is judged in fold ``i mod cv``, by maps that have not seen
it. ``AutoCalibration(cv=[(rows[rows % cv != k], rows[rows % cv == k]), ...])`` does the same in
memory. Where one fold judges, its rows are dealt in turn to the parts that weights are judged on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._crossfit.members import proba_of
from calibrant._crossfit.scores import likelihood_losses
from calibrant._data.folds import folds_for
from calibrant._data.sample import ArraySample, Sample
from calibrant._optim.mixture import MixtureSums, mixture_steps, search_together
from calibrant._simplex import EPS, true_class
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import check_count
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.inference._gain import Gain, summed_gain
from calibrant.reductions import MulticlassToBinary
from calibrant.selection._pool import DEALT, GainOnOthers, Pool, caution_of, is_thin

Maps = Mapping[str, Sequence[Any]]
Judge = Callable[[ArraySample], Pool]
Task = tuple[frozenset[int], FloatArray]
"""The numbers of rows that are left out, and weights of the members."""

_RUN = 60
"""Rows that follow each other in a fold."""

_PRIOR = 1e-6
"""What members but the identity gave to the row that caution invents."""


class Judges(NamedTuple):
    """How rows are dealt: to so many folds, of which the first few judge; ``run`` rows that follow
    each other go to the same, so that others can deal them again.
    """

    n_folds: int
    n_judging: int
    run: int = 1

    @property
    def n_numbers(self) -> int:
        """Groups of judged rows: each is judged by weights that were found on the others."""
        return self.n_judging if self.n_judging > 1 else DEALT

    def fold(self, part: ArraySample) -> IntArray:
        """The fold of each row."""
        return (part.start + np.arange(part.shape[0])) // self.run % self.n_folds

    def numbers(self, part: ArraySample, rows: IntArray, fold: int) -> IntArray:
        """The group of some rows of a fold that judges."""
        if self.n_judging > 1:
            return np.full(len(rows), fold)
        return (part.start + rows) // self.n_folds % DEALT


def judges_of(cv: Any, sample: Sample, *, is_one: bool) -> Judges:
    """Folds of rows that come in parts; one of them judges where there are many rows."""
    if cv is not None and not isinstance(cv, int | np.integer):
        raise TypeError(
            "of scores that come in parts, such as dask arrays, folds go by the number of the "
            f"row: pass cv as a number of folds; got {cv!r}"
        )
    wanted = folds_for(sample.total) if cv is None else check_count(cv, "cv", minimum=2)
    n_folds = min(wanted, sample.shape[0])
    return Judges(n_folds, 1 if is_one else n_folds)


def runs_of(sample: Sample, n_folds: int) -> Judges:
    """Folds that are runs of rows, all of which judge: a stack that is fitted on some of them deals
    rows one by one to folds of its own.
    """
    return Judges(n_folds, n_folds, int(np.clip(sample.shape[0] // (4 * n_folds), 1, _RUN)))


def sum_type(candidates: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates whose fit is a sum over rows, and none that would be summarised."""
    return {name: made for name, made in candidates.items() if not _is_ordered(made)}


def _is_ordered(made: Any) -> bool:
    return isinstance(made, BaseBinaryCalibrator | MulticlassToBinary)


def weigh_parts(
    members: Mapping[str, Any],
    sample: Sample,
    inputs: str,
    judges: Judges,
    *,
    is_settled: bool = False,
) -> tuple[FloatArray, FloatArray, Gain]:
    """Cautious weights of the members and of the uniform forecast, their cross-fitted losses, and
    the gain of the stack. Where it is settled, the second member has all of the weight.
    """
    for made in members.values():
        check_member(made, sample)
    trains = trains_of(sample, judges)
    maps = {
        name: [clone(made)._fit_checked(train) for train in trains]
        for name, made in members.items()
    }
    pool = _PartedPool(sample, partial(_pool, maps, inputs, judges), len(maps) + 1, judges)
    return pool.settle() if is_settled else pool.weigh()


def check_member(made: Any, sample: Sample) -> None:
    """Raise where a calibrator cannot be fitted to the folds of rows that come in parts."""
    if not isinstance(made, Calibrator):
        raise TypeError(f"of scores that come in parts members are ours, got {made!r}")
    if made._folds_by_row:
        raise TypeError(
            f"{type(made).__name__} cuts scores that come in parts by the number of the row, and "
            "so do the folds that it would be fitted on: pass what it is made of instead"
        )
    if made.needs_rows:
        sample.rows(type(made).__name__)


def trains_of(sample: Sample, judges: Judges) -> list[Sample]:
    """The rows that the maps of each fold are fitted on: all but those that it judges."""
    return [sample.map(partial(_train, judges, fold)) for fold in range(judges.n_judging)]


def judged_proba(maps: Sequence[Any], judges: Judges, inputs: str, part: ArraySample) -> FloatArray:
    """Probabilities of the rows of a part, each by the map of the fold that judges it."""
    scores, fold = part.u[:], judges.fold(part)
    proba = np.empty(part.shape)
    for number, fitted in enumerate(maps):
        rows = np.flatnonzero(fold == number)
        proba[rows] = proba_of(fitted, scores, inputs, rows)
    return proba


class _PartedPool:
    """What members gave to what happened, by maps that had not seen it: sums of it."""

    def __init__(self, sample: Sample, judge: Judge, n_members: int, judges: Judges) -> None:
        self.sample, self.judge, self.n_members, self.judges = sample, judge, n_members, judges
        # The last member is the uniform forecast, which many classes of few rows have no weight of.
        self.n_sought = n_members - is_thin(sample.total, sample.shape[1])

    def weigh(self) -> tuple[FloatArray, FloatArray, Gain]:
        numbers = range(self.judges.n_numbers)
        nobody: frozenset[int] = frozenset()
        singles = [frozenset({q}) for q in numbers]
        pairs = [frozenset(pair) for pair in combinations(numbers, 2)]
        sets = [left_out for left_out in (*singles, *pairs) if len(left_out) < len(numbers)]
        # Where nobody is left to learn from, nothing is gained.
        best = dict.fromkeys(pairs, np.eye(1, self.n_members)[0])
        best |= dict(zip(sets, self._search(sets), strict=True))
        caution = self._cautions(best)
        sets = [nobody, *singles]
        solved = self._search(sets, [caution[s].kappa for s in sets])
        weights = {s: _returned(w, caution[s]) for s, w in zip(sets, solved, strict=True)}
        losses, gain = self._judged([weights[s] for s in singles])
        return weights[nobody], losses, gain

    def settle(self) -> tuple[FloatArray, FloatArray, Gain]:
        weights = np.eye(1, self.n_members, 1)[0]
        return weights, *self._judged([weights] * self.judges.n_numbers)

    def _search(
        self, sets: Sequence[frozenset[int]], kappas: Sequence[float] | None = None
    ) -> list[FloatArray]:
        """Best weights without each set of rows, all at once; with caution where it is given."""

        def sums_at(asked: list[tuple[int, FloatArray]]) -> list[MixtureSums]:
            tasks = [(sets[number], w) for number, w in asked]
            found = self.sample.sum_chunks(partial(_mixture_sums, self.judge, tasks))
            if kappas is None:
                return list(found)
            prior = np.where(np.arange(self.n_sought) == 0, 1.0, _PRIOR)[None]
            return [
                sums + MixtureSums.of_rows(prior, np.array([kappas[number]]), w)
                for sums, (number, w) in zip(found, asked, strict=True)
            ]

        searches = [mixture_steps(self.n_sought) for _ in sets]
        none = np.zeros(self.n_members - self.n_sought)
        return [np.append(found.parameters, none) for found in search_together(searches, sums_at)]

    def _cautions(
        self, best: Mapping[frozenset[int], FloatArray]
    ) -> dict[frozenset[int], _Caution]:
        """`caution` of all rows, and of those without each group."""
        numbers = range(self.judges.n_numbers)
        found = self.sample.sum_chunks(partial(_gain_sums, self.judge, best, len(numbers)))
        sets = [frozenset[int](), *(frozenset({q}) for q in numbers)]
        return {left_out: _caution_of(sums) for left_out, sums in zip(sets, found, strict=True)}

    def _judged(self, weights: Sequence[FloatArray]) -> tuple[FloatArray, Gain]:
        """Losses of the members, and the gain of weights that have not seen what they judge."""
        own, moments = self.sample.sum_chunks(partial(_loss_sums, self.judge, weights))
        judged = moments[:, 0]
        total, before, after, square = moments.sum(axis=0)
        if self.judges.n_judging == 1:
            judged = judged.sum(keepdims=True)
        ratios = judged / (self.sample.total - judged)
        return own / total, summed_gain(total, (before, after), square, ratios)


class _Caution(NamedTuple):
    """How much of a row caution is worth, and the weight of the rows."""

    kappa: float
    total: float


def _caution_of(sums: FloatArray) -> _Caution:
    total, first, second, wrong = sums.tolist()
    variance = max(0.0, second - first**2 / total)
    gained = GainOnOthers(first, first / np.sqrt(variance) if variance > 0 else 0.0)
    return _Caution(caution_of(wrong, gained), total)


def _returned(w: FloatArray, caution: _Caution) -> FloatArray:
    """Weights with a part of the uniform forecast's given back to the identity."""
    weights = w.copy()
    returned = min(weights[-1], caution.kappa / caution.total)
    weights[-1] -= returned
    weights[0] += returned
    return weights


def _train(judges: Judges, fold: int, part: ArraySample) -> ArraySample:
    return part.weighted(np.where(judges.fold(part) == fold, 0.0, part.weight))


def _pool(maps: Maps, inputs: str, judges: Judges, part: ArraySample) -> Pool:
    """The rows of a part that folds judge."""
    scores, n_classes = part.u[:], part.shape[1]
    fold, found = judges.fold(part), []
    for judging in range(judges.n_judging):
        rows = np.flatnonzero((fold == judging) & (part.weight > 0))
        y = part.y[rows]
        given = [
            np.maximum(true_class(proba_of(own[judging], scores, inputs, rows), y), EPS)
            for own in maps.values()
        ]
        likelihood = np.column_stack([*given, np.full(len(rows), 1.0 / n_classes)])
        is_wrong = scores[rows].argmax(axis=1) != y
        number = judges.numbers(part, rows, judging)
        found.append((likelihood, part.weight[rows], number, is_wrong))
    likelihood, weight, number, is_wrong = map(np.concatenate, zip(*found, strict=True))
    return Pool(likelihood, weight, number, is_wrong)


def _mixture_sums(judge: Judge, tasks: Sequence[Task], part: ArraySample) -> tuple[Any, ...]:
    pool = judge(part)
    return tuple(_sums_without(pool, left_out, w) for left_out, w in tasks)


def _sums_without(pool: Pool, left_out: frozenset[int], w: FloatArray) -> MixtureSums:
    own = pool.of_rows(~np.isin(pool.fold, list(left_out)))
    return MixtureSums.of_rows(own.likelihood[:, : len(w)], own.weight, w)


def _gain_sums(
    judge: Judge, best: Mapping[frozenset[int], FloatArray], n_numbers: int, part: ArraySample
) -> FloatArray:
    """Weight, log-likelihood gain, its square, and weight of wrong rows: of all rows, and of those
    without each group; every group by weights that have seen neither.
    """
    pool = judge(part)
    sums = np.zeros((1 + n_numbers, 4))
    for number in range(n_numbers):
        own = pool.of_rows(pool.fold == number)
        for place in range(1 + n_numbers):
            if place - 1 != number:
                left_out = frozenset({number} if place == 0 else {number, place - 1})
                gain = np.log(own.likelihood @ best[left_out] / own.likelihood[:, 0])
                each = np.ones(len(gain)), gain, gain**2, own.is_wrong.astype(np.float64)
                sums[place] += [float(own.weight @ values) for values in each]
    return sums


def _loss_sums(
    judge: Judge, weights: Sequence[FloatArray], part: ArraySample
) -> tuple[FloatArray, FloatArray]:
    """Log-losses of the members, (J,); of each group its weight, and the losses before and after
    with the square of their difference.
    """
    pool = judge(part)
    moments = np.zeros((len(weights), 4))
    for number, w in enumerate(weights):
        own = pool.of_rows(pool.fold == number)
        before = likelihood_losses(own.likelihood[:, 0])
        after = likelihood_losses(own.likelihood @ w)
        each = np.ones(len(before)), before, after, (before - after) ** 2
        moments[number] = [float(own.weight @ values) for values in each]
    return -(pool.weight @ np.log(pool.likelihood)), moments
