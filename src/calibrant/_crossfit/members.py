"""Calibrators inside others: told what the scores are, fitted on some rows, asked for
probabilities of others.

This is the one machine of cross-fitting: `_folds` cuts, `fit_folds` fits a clone on each fold's
rows, `out_of_fold` and `proba_blocks` predict the rows that it has not seen.

Ours have the parameters ``inputs`` and ``classes``. Any other classifier with ``fit`` and
``predict_proba`` is taken too: it is given probabilities and column codes, and a class that it has
not seen gets probability zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._blocks import BLOCK_ELEMENTS, PREDICT_ELEMENTS, row_blocks
from calibrant._data.folds import Fold
from calibrant._data.sample import ArraySample
from calibrant._simplex import as_proba
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import check_weight
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.reductions import MulticlassToBinary

_MAX_COPIES = 100
"""Rows are not copied more often than this on average; above, weights are given as they are."""

_BLOCK_SHARE = 64
"""A block of predictions is at most this part of all of them (or a block of the usual size): what a
map computes on the way is a few times its block, and must stay small beside the output."""


def check_calibrator(calibrator: Any) -> Any:
    """What can calibrate, as it is; else an error that says what can."""
    if isinstance(calibrator, type):
        name = calibrator.__name__
        raise TypeError(f"got the class {name} where a calibrator is needed: pass {name}()")
    if isinstance(calibrator, str):
        raise TypeError(
            f"got the name {calibrator!r} where a calibrator is needed: pass "
            f"calibrant.method({calibrator!r})"
        )
    if not (hasattr(calibrator, "fit") and hasattr(calibrator, "predict_proba")):
        raise TypeError(
            f"a calibrator has the methods fit and predict_proba, which {calibrator!r} has not"
        )
    return calibrator


def set_up(calibrator: Any, inputs: str, n_classes: int, classes: AnyArray | None = None) -> Any:
    """An unfitted clone for scores of this kind; a binary calibrator is lifted where there are more
    than two classes.

    The lifting is class-wise and normalised: each class on its own, rows divided by their sum.
    """
    made = clone(check_calibrator(calibrator))
    if isinstance(made, BaseBinaryCalibrator) and n_classes > 2:
        made = MulticlassToBinary(
            made.set_params(inputs="proba", classes=None), notion="class-wise", normalize=True
        )
    return made.set_params(inputs=inputs, classes=classes) if isinstance(made, Calibrator) else made


def fit_on(
    calibrator: Any,
    scores: FloatArray,
    y: IntArray,
    weight: FloatArray | None,
    inputs: str,
    groups: IntArray | None = None,
) -> Any:
    """Fit a calibrator that is set up on checked scores and column codes; ``groups`` of rows stay
    together in the folds that it cuts.
    """
    if weight is not None and _counts_rows(calibrator, weight):
        copies = np.repeat(np.arange(len(y)), weight.astype(np.intp))
        scores, y, weight = scores[copies], y[copies], None
        groups = None if groups is None else groups[copies]
    if isinstance(calibrator, Calibrator):
        weight = check_weight(None, len(y)) if weight is None else weight
        return calibrator._fit_checked(ArraySample(scores, y, weight, groups=groups))
    options = {} if weight is None or (weight == 1).all() else {"sample_weight": weight}
    return calibrator.fit(as_proba(scores, inputs), y, **options)


def _counts_rows(calibrator: Any, weight: FloatArray) -> bool:
    """Whether the method counts rows, so that it must be given whole weights as copies."""
    if not getattr(calibrator, "counts_rows", False):
        return False
    is_whole = bool((weight == np.floor(weight)).all()) and weight.sum() <= _MAX_COPIES * len(
        weight
    )
    return is_whole and bool((weight != 1).any())


def fit_fold(
    calibrator: Any,
    scores: FloatArray,
    y: IntArray,
    fold: Fold,
    inputs: str,
    like: Any = None,
) -> Any:
    """A clone of a calibrator that is set up, fitted on the rows of a fold; a search begins where
    that of another fold ended.
    """
    rows, made = fold.fit, clone(calibrator)
    if like is not None and isinstance(made, Calibrator):
        made._start_like(like)
    return fit_on(made, scores[rows], y[rows], fold.fit_weight, inputs, fold.fit_groups)


def fit_folds(
    calibrator: Any, scores: FloatArray, y: IntArray, folds: Sequence[Fold], inputs: str
) -> list[Any]:
    """One map per fold, of a calibrator that is set up; each has not seen the rows that it is to
    judge.
    """
    first = [fit_fold(calibrator, scores, y, fold, inputs) for fold in folds[:1]]
    return first + [fit_fold(calibrator, scores, y, fold, inputs, first[0]) for fold in folds[1:]]


def out_of_fold(
    maps: Sequence[Any], folds: Sequence[Fold], scores: FloatArray, inputs: str
) -> FloatArray:
    """Probabilities (n, K) of rows that are each judged in one fold, by the map of that fold."""
    out = np.empty(scores.shape)
    for fitted, fold in zip(maps, folds, strict=True):
        for part, proba in proba_blocks(fitted, scores, inputs, fold.judge):
            out[fold.judge[part]] = proba
    return out


def proba_of(
    fitted: Any, scores: FloatArray, inputs: str, rows: IntArray | None = None
) -> FloatArray:
    """Probabilities of checked scores in float64, of all rows or some; memory is that of the
    output.
    """
    out = np.empty((len(scores) if rows is None else len(rows), scores.shape[1]))
    for part, proba in proba_blocks(fitted, scores, inputs, rows):
        out[part] = proba
    return out


def proba_blocks(
    fitted: Any, scores: FloatArray, inputs: str, rows: IntArray | None = None
) -> Iterator[tuple[slice, FloatArray]]:
    """Probabilities of all rows or some, block by block, each with its place among them."""
    n_rows = len(scores) if rows is None else len(rows)
    elements = _block_elements(fitted, n_rows * scores.shape[1])
    for part in row_blocks(n_rows, scores.shape[1], elements=elements):
        yield part, _predict(fitted, scores[part if rows is None else rows[part]], inputs)


def _block_elements(fitted: Any, size: int) -> int:
    own = fitted._block_elements if isinstance(fitted, Calibrator) else PREDICT_ELEMENTS
    return min(own or BLOCK_ELEMENTS, max(BLOCK_ELEMENTS, size // _BLOCK_SHARE))


def _predict(fitted: Any, scores: FloatArray, inputs: str) -> FloatArray:
    if isinstance(fitted, Calibrator):
        return fitted._proba_of(scores)
    out = np.zeros(scores.shape)
    # What does not say which classes it has seen has a column for each.
    seen = getattr(fitted, "classes_", np.arange(scores.shape[1]))
    out[:, np.asarray(seen, dtype=np.intp)] = fitted.predict_proba(as_proba(scores, inputs))
    return out
