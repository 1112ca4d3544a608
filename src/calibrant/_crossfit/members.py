"""Fit the members of composite calibrators on some rows, and predict the held-out rows.

All cross-fitting of the package uses this module. `fit_folds` fits a clone on the training rows of
each fold of a `FoldPlan`. `proba_of` and `proba_blocks` predict probabilities of the held-out rows.

Calibrators of this package have the parameters ``inputs`` and ``classes``. Any other classifier
with ``fit`` and ``predict_proba`` is also accepted. Such a classifier is fitted to probabilities
and column codes. A class without training rows gets probability zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant._data.fold_plan import FoldPlan
from calibrant._data.sample import Sample
from calibrant._kernels.blocks import CACHE_BLOCK, CALL_BLOCK, row_blocks
from calibrant._kernels.simplex import as_proba, zero_absent
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant.base import BaseBinaryCalibrator, Calibrator
from calibrant.base.new_scores import proba_of_present
from calibrant.reductions import MulticlassToBinary

_BLOCK_SHARE = 64
"""A block has at most 1/64 of all predictions, or the usual size if the usual size is larger.
Calibrators need temporary arrays of a few blocks, which must be small compared with the output."""


def check_calibrator(calibrator: Any) -> Any:
    """Return the calibrator, or raise a TypeError if it lacks the methods of a calibrator."""
    if isinstance(calibrator, type):
        name = calibrator.__name__
        raise TypeError(f"Expected a calibrator, got the class {name}. Pass {name}().")
    if isinstance(calibrator, str):
        raise TypeError(
            f"Expected a calibrator, got the name {calibrator!r}. Pass "
            f"calibrant.method({calibrator!r})."
        )
    if not (hasattr(calibrator, "fit") and hasattr(calibrator, "predict_proba")):
        raise TypeError(
            f"Expected a calibrator with the methods fit and predict_proba, got {calibrator!r}. "
            f"For example, pass TemperatureScaling()."
        )
    return calibrator


def set_up(calibrator: Any, inputs: str, n_classes: int, classes: AnyArray | None = None) -> Any:
    """Return an unfitted clone that is set up for scores of the type ``inputs``.

    With more than two classes, a binary calibrator is extended one-vs-rest, and each row
    is divided by its sum.
    """
    member = clone(check_calibrator(calibrator))
    if isinstance(member, BaseBinaryCalibrator) and n_classes > 2:
        binary = member.set_params(inputs="proba", classes=None)
        member = MulticlassToBinary(binary, notion="class-wise", normalize=True)
    if isinstance(member, Calibrator):
        member.set_params(inputs=inputs, classes=classes)
    return member


def fit_on(calibrator: Any, sample: Sample, inputs: str) -> Any:
    """Fit a calibrator that was prepared by `set_up` to a checked sample."""
    if isinstance(calibrator, Calibrator):
        rows = sample.with_copies() if calibrator.counts_rows else sample
        return calibrator._fit_checked(rows)
    arrays = sample.rows(type(calibrator).__name__)
    options = {"sample_weight": arrays.weight} if (arrays.weight != 1).any() else {}
    return calibrator.fit(as_proba(arrays.u[:], inputs), arrays.y, **options)


def fit_clone(calibrator: Any, sample: Sample, inputs: str, like: Any = None) -> Any:
    """Fit a clone of a calibrator from `set_up`. Iterations start at the optimum of ``like``."""
    member = clone(calibrator)
    if like is not None and isinstance(member, Calibrator):
        member._start_like(like)
    return fit_on(member, sample, inputs)


def fit_folds(
    calibrator: Any, plan: FoldPlan, inputs: str, start: Callable[[], None] | None = None
) -> list[Any]:
    """Fit a calibrator from `set_up` once per fold, on the training rows of the fold.

    ``start`` is called before each fit.
    """
    fits: list[Any] = []
    for fold in range(plan.n_folds):
        if start is not None:
            start()
        # Folds share most of their rows, so the first optimum is a good start for the other fits.
        fits.append(fit_clone(calibrator, plan.train(fold), inputs, *fits[:1]))
    return fits


def proba_of(
    fitted: Any,
    scores: FloatArray,
    inputs: str,
    rows: IntArray | None = None,
    columns: Sequence[AnyArray] = (),
) -> FloatArray:
    """Predict float64 probabilities for validated scores, optionally only for ``rows``.

    ``columns`` contains additional columns of these rows, such as groups. Only a few calibrators
    use additional columns. The function needs little memory in addition to its output.
    """
    out = np.empty((len(scores) if rows is None else len(rows), scores.shape[1]))
    for part, proba in proba_blocks(fitted, scores, inputs, rows, columns):
        out[part] = proba
    return out


def proba_blocks(
    fitted: Any,
    scores: FloatArray,
    inputs: str,
    rows: IntArray | None = None,
    columns: Sequence[AnyArray] = (),
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield probabilities of all rows, or of ``rows``, as pairs of a slice and its block."""
    n_rows = len(scores) if rows is None else len(rows)
    elements = _block_elements(fitted, n_rows * scores.shape[1])
    for part in row_blocks(n_rows, scores.shape[1], elements=elements):
        places = part if rows is None else rows[part]
        yield part, _predict(fitted, scores[places], inputs, [c[places] for c in columns])


def _block_elements(fitted: Any, size: int) -> int:
    most = fitted._block_elements if isinstance(fitted, Calibrator) else CALL_BLOCK
    return min(most or CACHE_BLOCK, max(CACHE_BLOCK, size // _BLOCK_SHARE))


def _predict(
    fitted: Any, scores: FloatArray, inputs: str, columns: Sequence[AnyArray]
) -> FloatArray:
    if isinstance(fitted, Calibrator):
        return proba_of_present(fitted, scores, *(columns if fitted._uses_columns else ()))
    out = np.zeros(scores.shape)
    # A classifier without classes_ has one column per class.
    codes = getattr(fitted, "classes_", np.arange(scores.shape[1]))
    out[:, np.asarray(codes, dtype=np.intp)] = fitted.predict_proba(as_proba(scores, inputs))
    return zero_absent(out, scores)
