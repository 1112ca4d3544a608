"""Calibrators inside others: told what the scores are, fitted on some rows, asked for
probabilities.

Ours have the parameters ``inputs`` and ``classes``. Any other classifier with ``fit`` and
``predict_proba`` is taken too: it is given probabilities and column codes, and a class that it has
not seen gets probability zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._folds import Fold
from calibrant._simplex import as_proba
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import check_weight
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.reductions import MulticlassToBinary

_MAX_COPIES = 100
"""Rows are not copied more often than this on average; above, weights are given as they are."""


def set_up(calibrator: Any, inputs: str, n_classes: int, classes: AnyArray | None = None) -> Any:
    """An unfitted clone for scores of this kind; a binary calibrator is lifted where there are more
    than two classes.

    The lifting is class-wise and normalised: each class on its own, rows divided by their sum.
    """
    made = clone(calibrator)
    if isinstance(made, BaseBinaryCalibrator) and n_classes > 2:
        made = MulticlassToBinary(
            made.set_params(inputs="proba", classes=None), notion="class-wise", normalize=True
        )
    return made.set_params(inputs=inputs, classes=classes) if isinstance(made, Calibrator) else made


def fit_on(
    calibrator: Any, scores: FloatArray, y: IntArray, weight: FloatArray | None, inputs: str
) -> Any:
    """Fit a calibrator that is set up on checked scores and column codes."""
    if weight is not None and _counts_rows(calibrator, weight):
        copies = np.repeat(np.arange(len(y)), weight.astype(np.intp))
        scores, y, weight = scores[copies], y[copies], None
    if isinstance(calibrator, Calibrator):
        return calibrator._fit_checked(scores, y, check_weight(weight, len(y)))
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


def fit_fold(calibrator: Any, scores: FloatArray, y: IntArray, fold: Fold, inputs: str) -> Any:
    """A clone of a calibrator that is set up, fitted on the rows of a fold."""
    return fit_on(clone(calibrator), scores[fold.fit], y[fold.fit], fold.fit_weight, inputs)


def proba_of(fitted: Any, scores: FloatArray, inputs: str) -> FloatArray:
    """Probabilities (m, K) of checked scores."""
    if isinstance(fitted, Calibrator):
        return np.asarray(fitted._proba_of(scores), dtype=np.float64)
    out = np.zeros(scores.shape)
    out[:, np.asarray(fitted.classes_, dtype=np.intp)] = fitted.predict_proba(
        as_proba(scores, inputs)
    )
    return out
