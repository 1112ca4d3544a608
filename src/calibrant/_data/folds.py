"""Folds that depend on what the rows hold, not on how they are written down.

Copies of a row and a row with a weight must be the same data (weight 2 = the row twice, weight 0 =
the row absent), and so must rows in another order. Rows are therefore sorted by their content
first; every copy is dealt to a fold at random, and a row of weight 3 may be in two folds, with
weight 2 in one and weight 1 in the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.simplex import finite_logits
from calibrant._typing import FloatArray, IntArray, Rng
from calibrant._validation import as_array, as_seed, check_count, raise_if_missing, warn_data

_MAX_COPIES = 2**24
"""Whole weights are dealt as copies up to this many of them, which take half a gigabyte; above,
every row is dealt once, and keeps its weight."""


FEW_ROWS = 100
"""Below, a map is much better for every row that it is fitted on."""


class Fold(NamedTuple):
    """Rows to fit on and rows to judge on, each with their weights there; the groups of the rows to
    fit on, where there are any, for the folds that a fit cuts itself.
    """

    fit: IntArray
    fit_weight: FloatArray
    judge: IntArray
    judge_weight: FloatArray
    fit_groups: IntArray | None = None


def check_groups(groups: Any, n_samples: int) -> IntArray | None:
    """Codes of the groups that rows belong to; None where there are none."""
    if groups is None:
        return None
    names = as_array(groups)
    if names.shape != (n_samples,):
        raise ValueError(
            f"groups must have shape ({n_samples},), one group a row; got shape {names.shape}"
        )
    raise_if_missing(groups, names, "group")
    codes: IntArray = np.unique(names, return_inverse=True)[1]
    if codes.max() < 1:
        raise ValueError("groups holds one group only: folds need at least two")
    return codes


def as_folds(
    cv: Any,
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray,
    random_state: Rng,
    groups: IntArray | None = None,
) -> list[Fold]:
    """Folds of an integer (at random, by ``random_state``; None is 0), of as many as the rows ask
    for (None), a scikit-learn splitter or an iterable of (train, test) rows.

    An integer deals whole ``groups``, a splitter is given them. Folds with nothing to fit on or
    nothing to judge are left out: one row has no folds.
    """
    seed = as_seed(random_state) or 0
    if isinstance(cv, int | np.integer) or cv is None:
        n_folds = folds_for(float(weight.sum())) if cv is None else check_count(cv, "cv", minimum=2)
        parts = (
            _random_parts(scores, y, weight, n_folds, seed)
            if groups is None
            else _group_parts(groups, weight, n_folds, seed)
        )
    else:
        parts = _given_parts(cv, scores, y, weight, groups)
    folds = (_fold(fit, judge, groups) for fit, judge in parts)
    return [fold for fold in folds if fold.fit.size and fold.judge.size]


def folds_for(n_samples: float) -> int:
    """Folds to judge maps by: 5, and 20 of fewer than 100 rows, where a map that was fitted on four
    fifths of them is much worse than one of all, and a fit costs nothing.
    """
    return 20 if n_samples < FEW_ROWS else 5


def stratified_rows(
    cv: int, codes: IntArray, groups: IntArray | None = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to train a classifier on and rows to score, every class in every fold where that can
    be; no more folds than there are rows in the largest class. ``groups`` stay together.

    For classifiers, which should see all classes. Maps are judged on `as_folds`.
    """
    n_folds = check_count(cv, "cv", minimum=2)
    most = int(np.bincount(codes).max())
    if most < 2:
        raise ValueError(
            f"cross-validation needs a class with at least two rows, got n_samples={len(codes)}"
        )
    if n_folds > len(codes):
        raise ValueError(
            f"{n_folds} folds cannot be cut from n_samples={len(codes)} rows: set cv to fewer folds"
        )
    _remark_rare(codes, n_folds, most)
    n_folds = min(n_folds, most)
    if groups is not None:
        strata = _strata(codes, n_folds)
        from sklearn.model_selection import StratifiedGroupKFold  # takes half a second

        yield from StratifiedGroupKFold(n_folds).split(np.zeros(len(codes)), strata, groups)
        return
    fold = _dealt_by_class(codes, n_folds)
    for held in range(n_folds):
        yield np.flatnonzero(fold != held), np.flatnonzero(fold == held)


def _remark_rare(codes: IntArray, n_folds: int, most: int) -> None:
    """Rare classes are welcome, the map keeps a column for each whatever a fold holds; it is
    said.
    """
    if n_folds > most:
        warn_data(f"cv={n_folds} is lowered to {most}: no class has more than {most} rows")
        return
    counts = np.bincount(codes)
    least = int(counts[counts > 0].min())
    if least < n_folds:
        warn_data(
            f"the smallest class has {least} row{'s' * (least > 1)}, fewer than the {n_folds} folds"
            " of cv: some folds have none of it"
        )


def _dealt_by_class(codes: IntArray, n_folds: int) -> IntArray:
    """Fold of each row, as scikit-learn's StratifiedKFold deals them, which warns of rare classes:
    the rows of one class after the other are dealt in turn, and within a class the first rows go
    to the first folds. Classes come in the order in which they occur.
    """
    _, first, label = np.unique(codes, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[label]
    order = np.argsort(place, kind="stable")
    dealt = np.arange(len(codes)) % n_folds
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = dealt[np.lexsort((dealt, place[order]))]
    return fold


def _strata(codes: IntArray, n_folds: int) -> IntArray:
    """Classes, those with fewer rows than folds as one; with the largest where they are still too
    few. Nothing can be stratified by less.
    """
    counts = np.bincount(codes)
    is_rare = counts < n_folds
    shared = len(counts) if counts[is_rare].sum() >= n_folds else counts.argmax()
    return np.where(is_rare[codes], shared, codes)


def held_out_rows(
    share: float, codes: IntArray, groups: IntArray | None = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to train a classifier on and a share of the rows, at random, to score; stratified where
    every class has two rows at least, and a share of the ``groups`` where there are any.
    """
    if not 0 < share < 1:
        raise ValueError(
            f"cv must be a number of folds, or the share of rows to hold out, between 0 and 1; got "
            f"{share!r}"
        )
    counts = np.bincount(codes)
    is_common = counts[counts > 0].min() >= 2 and share * len(codes) >= len(counts)
    from sklearn import model_selection as splits  # takes half a second

    even = splits.StratifiedShuffleSplit if is_common else splits.ShuffleSplit
    kind = even if groups is None else splits.GroupShuffleSplit
    yield from kind(1, test_size=share, random_state=0).split(np.zeros(len(codes)), codes, groups)


def _fold(fit: FloatArray, judge: FloatArray, groups: IntArray | None) -> Fold:
    fit_rows, judge_rows = np.flatnonzero(fit), np.flatnonzero(judge)
    own = None if groups is None else groups[fit_rows]
    return Fold(fit_rows, fit[fit_rows], judge_rows, judge[judge_rows], own)


def _given_parts(
    cv: Any, scores: FloatArray, y: IntArray, weight: FloatArray, groups: IntArray | None
) -> Iterator[tuple[FloatArray, FloatArray]]:
    from sklearn.model_selection import check_cv  # takes half a second

    for train, test in check_cv(cv, y, classifier=True).split(scores, y, groups):
        parts = np.zeros((2, len(y)))
        parts[0, train], parts[1, test] = weight[train], weight[test]
        yield parts[0], parts[1]


def _random_parts(
    scores: FloatArray, y: IntArray, weight: FloatArray, n_folds: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Not stratified by label: that would tell a map the label frequencies of the rows that it is
    judged on.
    """
    order = _content_order(scores, y)
    copies = _copies(weight)[order]
    rows = np.repeat(order, copies)
    generator = np.random.default_rng(seed)
    dealt = generator.permutation(len(rows)) % n_folds
    each = weight / np.maximum(_copies(weight), 1)
    for held in range(n_folds):
        judge = np.bincount(rows[dealt == held], minlength=len(y)) * each
        fit = np.bincount(rows[dealt != held], minlength=len(y)) * each
        yield fit, judge


def _group_parts(
    groups: IntArray, weight: FloatArray, n_folds: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Groups are dealt whole, whatever the order of their rows."""
    dealt = np.random.default_rng(seed).permutation(groups.max() + 1) % n_folds
    for held in range(n_folds):
        is_held = dealt[groups] == held
        yield weight * ~is_held, weight * is_held


def _copies(weight: FloatArray) -> IntArray:
    """How often each row is dealt: its weight where all are whole numbers, else once."""
    is_whole = weight.sum() <= _MAX_COPIES and bool((weight == np.floor(weight)).all())
    return (weight if is_whole else weight > 0).astype(np.intp)


def _content_order(scores: FloatArray, y: IntArray) -> IntArray:
    """An order of rows that does not depend on how they were ordered; equal rows are neighbours."""
    # One number a row, summed by NumPy along contiguous rows: equal rows get equal numbers, which
    # BLAS does not promise.
    rays = np.random.default_rng(0).random(scores.shape[1])
    key = (np.ascontiguousarray(finite_logits(scores)) * rays).sum(axis=1)
    return np.lexsort((key, y))


def deal_folds(y: IntArray, n_folds: int, before: IntArray | None = None) -> IntArray:
    """Fold of each row: the rows of each class are dealt out in their existing order, ``before``
    being how many of each class came before these.

    Examples
    --------
    >>> deal_folds(np.array([0, 0, 1, 0, 1]), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    fold = np.empty(len(y), dtype=np.intp)
    for k in range(y.max(initial=-1) + 1):
        rows = np.flatnonzero(y == k)
        first = 0 if before is None else int(before[k])
        fold[rows] = np.arange(first, first + len(rows)) % n_folds
    return fold
