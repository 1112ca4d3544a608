"""Folds that depend on the content of rows, but not on their order and representation.

A weight of 2 is equivalent to duplicating the row, and a weight of 0 is equivalent to removing the
row. The order of rows does not matter. Rows are therefore sorted by their content first. Then every
copy is assigned to a fold at random. A row with weight 3 may therefore have weight 2 in one
fold and weight 1 in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from calibrant._kernels.simplex import finite_logits
from calibrant._typing import FloatArray, IntArray, Rng
from calibrant._validation import as_array, as_seed, check_count, raise_if_missing, warn_data

_MAX_COPIES = 2**24
"""Maximum number of copies that are assigned one by one. So many copies take half a gigabyte. With
more copies, every row is assigned once and keeps its weight."""


FEW_ROWS = 100
"""With fewer rows, every additional row improves a calibrator noticeably, so more folds are
used."""


class Fold(NamedTuple):
    """Training rows and held-out rows, with their weights.

    If there are groups, ``fit_groups`` are the groups of the training rows, for nested folds.
    """

    fit: IntArray
    fit_weight: FloatArray
    held_out: IntArray
    held_out_weight: FloatArray
    fit_groups: IntArray | None = None


def check_groups(groups: Any, n_samples: int) -> IntArray | None:
    """Return the group codes of the rows, or None if there are no groups."""
    if groups is None:
        return None
    names = as_array(groups)
    if names.shape != (n_samples,):
        raise ValueError(
            f"groups must have shape ({n_samples},), got shape {names.shape}. Pass one group per "
            "row."
        )
    raise_if_missing(groups, names, "group")
    codes: IntArray = np.unique(names, return_inverse=True)[1]
    if codes.max() < 1:
        raise ValueError(
            "groups has only one distinct value, but cross-validation needs at least two groups. "
            "Pass groups=None if the rows are independent."
        )
    return codes


def as_folds(
    cv: Any,
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray,
    random_state: Rng,
    groups: IntArray | None = None,
) -> list[Fold]:
    """Make folds from an integer, None, a scikit-learn splitter or an iterable of row pairs.

    If ``cv`` is an integer or None, rows or whole ``groups`` are assigned to folds at random.
    ``random_state=None`` means seed 0. ``cv=None`` chooses the number of folds by the number of
    rows. The groups are passed to the splitter if ``cv`` is a splitter. Folds without training rows
    or without held-out rows are removed, so a single row has no folds.
    """
    seed = as_seed(random_state) or 0
    if isinstance(cv, int | np.integer) or cv is None:
        n_folds = folds_for(float(weight.sum())) if cv is None else check_count(cv, "cv", minimum=2)
        parts = (
            _random_parts(scores, y, weight, n_folds, seed)
            if groups is None
            else _group_parts(groups, weight, n_folds, seed)
        )
        return _usable_folds(parts, groups)
    folds = _usable_folds(_given_parts(cv, scores, y, weight, groups), groups)
    if not folds:
        raise ValueError(
            f"cv={cv!r} has no split with training rows and test rows of positive weight. Pass a "
            "number of folds, such as cv=5."
        )
    return folds


def _usable_folds(
    parts: Iterable[tuple[FloatArray, FloatArray]], groups: IntArray | None
) -> list[Fold]:
    """Return folds with training rows and held-out rows, from the weights of these rows."""
    folds = (_fold(fit, held_out, groups) for fit, held_out in parts)
    return [fold for fold in folds if fold.fit.size and fold.held_out.size]


def folds_for(n_samples: float) -> int:
    """Default number of folds: 5, or 20 for fewer than 100 rows.

    If there are few rows, a fit to four fifths of the rows is much worse than a fit to all rows.
    Fits to a few rows are cheap, so more folds cost little.
    """
    return 20 if n_samples < FEW_ROWS else 5


def stratified_rows(
    cv: int, codes: IntArray, groups: IntArray | None = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Make stratified folds to train a classifier and to score held-out rows.

    Every class is in every fold if it has enough rows. There are at most as many folds as the
    largest class has rows. ``groups`` stay together. Stratification ensures that classifiers are
    trained on all classes. Calibrators are evaluated on the folds of `as_folds` instead.
    """
    n_folds = _limit_folds(check_count(cv, "cv", minimum=2), codes)
    if groups is not None:
        strata = _strata(codes, n_folds)
        from sklearn.model_selection import StratifiedGroupKFold  # this import takes half a second

        yield from StratifiedGroupKFold(n_folds).split(np.zeros(len(codes)), strata, groups)
        return
    fold = _assign_by_class(codes, n_folds)
    for number in range(n_folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def _limit_folds(n_folds: int, codes: IntArray) -> int:
    """Return the number of folds, which is at most the number of rows of the largest class."""
    most = int(np.bincount(codes).max())
    if most < 2:
        raise ValueError(
            f"Cross-validation needs a class with at least two rows, got n_samples={len(codes)} "
            "rows of different classes."
        )
    if n_folds > len(codes):
        raise ValueError(
            f"cv={n_folds} folds need at least {n_folds} rows, got n_samples={len(codes)}. Pass a "
            f"smaller cv, such as cv={len(codes)}."
        )
    _warn_rare(codes, n_folds, most)
    return min(n_folds, most)


def _warn_rare(codes: IntArray, n_folds: int, most: int) -> None:
    """Warn about classes with fewer rows than folds.

    Rare classes are allowed, because calibrators have a column for every class, even if a fold
    lacks the class.
    """
    if n_folds > most:
        warn_data(
            f"cv={n_folds} was reduced to {most}, because no class has more than {most} rows."
        )
        return
    counts = np.bincount(codes)
    least = int(counts[counts > 0].min())
    if least < n_folds:
        warn_data(
            f"The smallest class has {least} row{'s' * (least > 1)}, fewer than the {n_folds} folds"
            f" of cv, so some folds have no row of this class. Pass more rows, or a smaller cv."
        )


def _assign_by_class(codes: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each row, with the same result as scikit-learn's StratifiedKFold.

    StratifiedKFold is not used, because it warns about rare classes. Classes are taken in the order
    of their occurrence. The rows of a class are assigned to the folds in turn, and the first rows
    of a class go to the first folds.
    """
    _, first, label = np.unique(codes, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[label]
    order = np.argsort(place, kind="stable")
    turn = np.arange(len(codes)) % n_folds
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = turn[np.lexsort((turn, place[order]))]
    return fold


def _strata(codes: IntArray, n_folds: int) -> IntArray:
    """Return strata for grouped folds: classes, with all rare classes merged into one stratum.

    If the merged classes still have fewer rows than folds, they join the largest class, because
    scikit-learn cannot stratify by fewer rows than folds.
    """
    counts = np.bincount(codes)
    is_rare = counts < n_folds
    stratum = len(counts) if counts[is_rare].sum() >= n_folds else counts.argmax()
    return np.where(is_rare[codes], stratum, codes)


def held_out_rows(
    share: float, codes: IntArray, groups: IntArray | None = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Split rows at random into training rows and a share of held-out rows.

    The split is stratified if every class has at least two rows. If there are ``groups``, a share
    of the groups is held out.
    """
    if not 0 < share < 1:
        raise ValueError(
            "cv must be a number of folds, or a fraction between 0 and 1 of rows to hold out, got "
            f"{share!r}. For example, pass cv=5 or cv=0.2."
        )
    counts = np.bincount(codes)
    is_common = counts[counts > 0].min() >= 2 and share * len(codes) >= len(counts)
    from sklearn import model_selection as splits  # this import takes half a second

    splitter = splits.StratifiedShuffleSplit if is_common else splits.ShuffleSplit
    kind = splitter if groups is None else splits.GroupShuffleSplit
    yield from kind(1, test_size=share, random_state=0).split(np.zeros(len(codes)), codes, groups)


def _fold(fit: FloatArray, held_out: FloatArray, groups: IntArray | None) -> Fold:
    fit_rows, other_rows = np.flatnonzero(fit), np.flatnonzero(held_out)
    fit_groups = None if groups is None else groups[fit_rows]
    return Fold(fit_rows, fit[fit_rows], other_rows, held_out[other_rows], fit_groups)


def _given_parts(
    cv: Any, scores: FloatArray, y: IntArray, weight: FloatArray, groups: IntArray | None
) -> Iterator[tuple[FloatArray, FloatArray]]:
    from sklearn.model_selection import check_cv  # this import takes half a second

    for split in check_cv(cv, y, classifier=True).split(scores, y, groups):
        train, test = (row_indices(rows, len(y)) for rows in split)
        parts = np.zeros((2, len(y)))
        parts[0, train], parts[1, test] = weight[train], weight[test]
        yield parts[0], parts[1]


def row_indices(rows: Any, n_rows: int) -> IntArray:
    """Return rows of a split as indices from 0. Masks and negative indices are also accepted."""
    indices = np.asarray(rows)
    is_mask = indices.dtype == bool
    is_inside = is_mask or not indices.size or -n_rows <= indices.min() <= indices.max() < n_rows
    if not is_inside or (is_mask and len(indices) != n_rows):
        raise ValueError(
            f"A split of cv does not fit the {n_rows} rows. Pass (train, test) pairs with rows "
            f"from 0 to {n_rows - 1}, or masks of length {n_rows}."
        )
    if is_mask:
        return np.flatnonzero(indices)
    return indices.astype(np.intp) % n_rows


def _random_parts(
    scores: FloatArray, y: IntArray, weight: FloatArray, n_folds: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Return the weights of the training rows and of the held-out rows, for each fold.

    Folds are not stratified by label, which would leak the label frequencies of the held-out rows
    to the calibrator.
    """
    order = _content_order(scores, y)
    copies = _copies(weight)[order]
    rows = np.repeat(order, copies)
    generator = np.random.default_rng(seed)
    fold = generator.permutation(len(rows)) % n_folds
    copy_weight = weight / np.maximum(_copies(weight), 1)
    for number in range(n_folds):
        held_out = np.bincount(rows[fold == number], minlength=len(y)) * copy_weight
        fit = np.bincount(rows[fold != number], minlength=len(y)) * copy_weight
        yield fit, held_out


def _group_parts(
    groups: IntArray, weight: FloatArray, n_folds: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Return the weights of training rows and held-out rows, with whole groups in each fold."""
    fold_of_group = np.random.default_rng(seed).permutation(groups.max() + 1) % n_folds
    for number in range(n_folds):
        is_held = fold_of_group[groups] == number
        yield weight * ~is_held, weight * is_held


def _copies(weight: FloatArray) -> IntArray:
    """Return the number of copies of each row: its weight if all weights are integers, else one."""
    is_whole = weight.sum() <= _MAX_COPIES and bool((weight == np.floor(weight)).all())
    return (weight if is_whole else weight > 0).astype(np.intp)


def _content_order(scores: FloatArray, y: IntArray) -> IntArray:
    """Return an order of rows that does not depend on their original order.

    Equal rows are adjacent.
    """
    # Sort by a random projection, one number per row. NumPy sums contiguous rows, so equal rows get
    # exactly equal numbers. BLAS does not guarantee equal numbers for equal rows.
    direction = np.random.default_rng(0).random(scores.shape[1])
    key = (np.ascontiguousarray(finite_logits(scores)) * direction).sum(axis=1)
    return np.lexsort((key, y))


def assign_folds(y: IntArray, n_folds: int, before: IntArray | None = None) -> IntArray:
    """Assign the rows of each class to folds in turn, in their existing order.

    ``before`` is the number of rows of each class in earlier chunks.

    Examples
    --------
    >>> assign_folds(np.array([0, 0, 1, 0, 1]), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    fold = np.empty(len(y), dtype=np.intp)
    for k in range(y.max(initial=-1) + 1):
        rows = np.flatnonzero(y == k)
        first = 0 if before is None else int(before[k])
        fold[rows] = np.arange(first, first + len(rows)) % n_folds
    return fold
