"""Scores of a declared kind become an ``(n, K)`` float array, or an error that says what they look
like and what to do.

Rows of probabilities must sum to one up to round-off of their type (1e-6 in float64, 1e-3 in
float32, 1e-2 in float16). Rows that miss it by the rounding of their values are divided by their
sum, with a remark: numbers of d decimals may miss it by K / 2 units of the last one and at most by
0.05, numbers of 16 bits by 0.01.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from calibrant._kernels.blocks import READ_BLOCK, map_blocks, one_blas_thread
from calibrant._kernels.simplex import rough_row_sum, row_sum
from calibrant._typing import AnyArray, FloatArray, Inputs, ScoresLike
from calibrant._validation._arrays import as_array
from calibrant._validation._remarks import remark, remark_once

KINDS = ("proba", "logits", "log_proba")

_SUM_TOLERANCE = {
    np.dtype(np.float64): 1e-6,
    np.dtype(np.float32): 1e-3,
    np.dtype(np.float16): 1e-2,
}

_LARGEST_TOLERANCE = 0.05
"""Rows that are further from one are wrong and not rounded, whatever their decimals."""

_HALF_TOLERANCE = 1e-2
"""Of numbers of 16 bits, float16 and bfloat16."""

_SIGN_TOLERANCE = 1e-6
"""Negative numbers of this size are round-off of zero."""

LARGEST_LOGIT = 1e30
"""Sums of products of larger logits with coefficients may overflow, even in single precision."""

_LOOKS = 1e-3
"""How far from one rows are that look like probabilities, rounded perhaps."""

_SOME_ROWS = 1000
"""Rows that are looked at to find how values were rounded, or what they are."""

LOGITS_HINT = "pass inputs='logits' for raw scores"
SOFTMAX_HINT = (
    "turn raw scores into probabilities first, for example by scipy.special.softmax(z, axis=1)"
)
DIVIDE_HINT = "divide by p.sum(axis=1, keepdims=True)"

_DEEP_HINT = (
    "; for pixels or tokens say which axis holds the classes: calibrant.flatten_predictions(labels,"
    " scores, class_axis=1) makes rows of them, and calibrant.map_scores(model.predict_proba, "
    "scores, class_axis=1) predicts them"
)

_OUTSIDE = "probabilities outside [0, 1] by rounding were set to 0 and 1"


class _Wording(NamedTuple):
    """What messages about scores say: what to do with logits and with rounded rows, and the number
    of the first row; ``slack`` is how far rows may be from one where their owner cannot be asked,
    ``note`` is told what was repaired.
    """

    hint: str
    sum_hint: str
    first_row: int
    slack: float
    note: Callable[[str], None]


def check_inputs(inputs: str) -> Inputs:
    """The declared kind of scores."""
    if inputs not in KINDS:
        raise ValueError(f"inputs must be 'proba', 'logits' or 'log_proba', got {inputs!r}")
    return cast(Inputs, inputs)


def check_scores(
    scores: ScoresLike,
    *,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: str = LOGITS_HINT,
    sum_hint: str = DIVIDE_HINT,
    first_row: int = 0,
    renormalize: bool = False,
    slack: float = 0.0,
    note: Callable[[str], None] = remark,
) -> FloatArray:
    """Scores as an ``(n, K)`` float array, checked; ``(n,)`` is class 1 of a binary problem.

    ``sum_to_one=False`` is for class-wise claims, which need not. ``hint`` ends the messages about
    values that look like logits, ``sum_hint`` those about rounded rows; ``first_row`` is the number
    of the first row where these are a part of a file. ``renormalize`` divides rows of probabilities
    by their sum instead of refusing them; ``slack`` does so with rows that are no further from one.
    ``note`` is told what was repaired.
    """
    kind, said = check_inputs(inputs), _Wording(hint, sum_hint, first_row, slack, note)
    array, tolerance = _as_float(scores)
    if array.ndim == 1:
        array = _binary_columns(array, kind, tolerance, said)
    _check_shape(array)
    if kind == "logits":
        return _check_logits(array, said)
    if kind == "log_proba":
        return _check_log_proba(array, max(tolerance, slack), renormalize, said)
    if renormalize:
        array = _renormalized(array, said)
    return _check_proba(array, tolerance if sum_to_one else None, said)


def _as_float(scores: ScoresLike) -> tuple[FloatArray, float]:
    array = as_array(scores)
    if array.dtype.kind in "cMm":
        raise TypeError(f"scores must be real numbers, got an array of dtype {array.dtype}")
    if array.dtype.kind in "OSU":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"scores must be numbers, got an array of dtype {array.dtype}: {error}"
            ) from None
    tolerance = _SUM_TOLERANCE.get(array.dtype, 1e-6)
    if array.dtype == np.float16:
        return array.astype(np.float32), tolerance
    if array.dtype not in (np.float32, np.float64):
        return array.astype(np.float64), tolerance
    return array, tolerance


def _binary_columns(
    score: FloatArray, kind: Inputs, tolerance: float, said: _Wording
) -> FloatArray:
    """Two columns from the probability, its logarithm, or the log-odds of class 1."""
    if kind == "logits":
        return np.column_stack([np.zeros_like(score), score])
    if kind == "log_proba":
        _raise_if_no_log(score[:, None], said)
        with np.errstate(divide="ignore"):  # log(0), the other class of a certain one
            return np.column_stack([np.log(-np.expm1(np.minimum(score, 0.0))), score])
    if score.size and not (score.min() >= 0 and score.max() <= 1):  # false for NaN too
        score = _clipped(score[:, None], tolerance, said)[:, 0]
        said.note(_OUTSIDE)
    both = np.empty((len(score), 2), dtype=score.dtype)
    np.subtract(1, score, out=both[:, 0])
    both[:, 1] = score
    return both


def _check_shape(array: AnyArray) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"scores must have shape (n_samples, n_classes), or (n_samples,) for a binary problem; "
            f"got shape {array.shape}{_DEEP_HINT if array.ndim > 2 else ''}"
        )
    if array.shape[0] == 0:
        raise ValueError(f"scores are empty (shape {array.shape}): at least one row is needed")
    if array.shape[1] < 2:
        raise ValueError(
            f"scores have shape {array.shape}: one column per class is needed; "
            "for a binary problem pass scores[:, 0], the probability of class 1, with shape "
            "(n_samples,)"
        )


def _check_logits(array: FloatArray, said: _Wording, what: str = "logits") -> FloatArray:
    """Logits, with -inf in place of those that no product with a coefficient may exceed."""

    def is_fine(rows: slice) -> bool:
        block = array[rows]
        if not block.max() <= LARGEST_LOGIT:  # NaN and +inf show up here
            return False
        return bool(block.min() >= -LARGEST_LOGIT)

    if _all_rows(is_fine, array):
        return array
    top = array.max(axis=1)
    bad = np.flatnonzero(~(np.abs(top) <= LARGEST_LOGIT))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"row {row + said.first_row} of the {what} is {_shown(array[row])}: NaN, +inf and rows "
            f"of only -inf are not allowed, and values must not exceed {LARGEST_LOGIT:g}; "
            "remove such rows, or find out why the model gives them (-inf for single impossible "
            "classes is taken as the probability eps)"
        )
    # A copy only if there are finite values to replace: masks such as the lowest float.
    is_mask = (array < -LARGEST_LOGIT) & np.isfinite(array)
    return np.where(is_mask, -np.inf, array).astype(array.dtype) if is_mask.any() else array


def _all_rows(is_fine: Callable[[slice], bool], array: FloatArray) -> bool:
    """Whether all blocks of rows are fine; one block is checked directly."""
    if array.size <= READ_BLOCK:
        with one_blas_thread(array.size):
            return is_fine(slice(None))
    return all(map_blocks(is_fine, *array.shape, elements=READ_BLOCK))


def _check_log_proba(
    array: FloatArray, tolerance: float, renormalize: bool, said: _Wording
) -> FloatArray:
    """Log-probabilities are used as the logits that they are, so that rounded rows need no
    repair.
    """
    array = _check_logits(array, said, "log-probabilities")
    _raise_if_no_log(array, said)
    if renormalize:
        return array
    sums = np.concatenate(
        list(
            map_blocks(
                lambda rows: row_sum(np.exp(array[rows], dtype=np.float64)),
                *array.shape,
                elements=READ_BLOCK,
            )
        )
    )
    off = np.abs(sums - 1)
    if off.max() <= max(tolerance, _HALF_TOLERANCE):
        return array
    row = int(off.argmax())
    raise ValueError(
        f"the probabilities of row {row + said.first_row} sum to {sums[row]:.6g} instead of 1 "
        "(np.exp of the log-probabilities): if the rest belongs to what has no column, pass "
        "inputs='logits' for the probabilities given that one of these classes is right, or add a "
        "column for the rest"
    )


def _raise_if_no_log(array: FloatArray, said: _Wording) -> None:
    bad = ~(array <= _SIGN_TOLERANCE)
    if bad.any():
        row, column = (int(i[0]) for i in np.nonzero(bad))
        raise ValueError(
            f"row {row + said.first_row}, column {column} of the log-probabilities is "
            f"{array[row, column]:.6g}: the logarithm of a probability is at most 0; "
            "pass inputs='logits' for raw scores"
        )


def _check_proba(array: FloatArray, tolerance: float | None, said: _Wording) -> FloatArray:
    # Sums bound the entries of float64 rows to one; float32 may be off by a thousandth.
    looks = tolerance is not None and tolerance > _SIGN_TOLERANCE

    def is_fine(rows: slice) -> bool:
        block = array[rows]
        if not block.min() >= 0:  # also false for NaN
            return False
        if tolerance is None:
            return bool(block.max() <= 1)
        if looks and not block.max() <= 1 + _SIGN_TOLERANCE:
            return False
        return bool(np.abs(rough_row_sum(block) - 1).max() <= tolerance)

    if _all_rows(is_fine, array):
        return array
    if tolerance is None:
        inside = _clipped(array, _SUM_TOLERANCE[array.dtype], said)
        said.note(_OUTSIDE)
        return inside
    return _repaired(array, tolerance, said)


def _repaired(array: FloatArray, tolerance: float, said: _Wording) -> FloatArray:
    """Rows that miss one by the rounding of their values, divided by their sum."""
    wide = max(tolerance, said.slack, rounding_tolerance(array))
    positive = _clipped(array, wide, said, most=np.inf)
    sums = positive.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1)
    if not off.max() <= wide:
        row = int(np.flatnonzero(~(off <= wide))[0])
        raise ValueError(
            f"row {row + said.first_row} of the probabilities sums to {sums[row]:.6g} instead of "
            f"1: {_diagnosis(array, said) or _shares_hint(said)}"
        )
    _remark_repair(sums, wide, tolerance, said)
    return np.asarray(positive / sums[:, None], dtype=array.dtype)


def _remark_repair(sums: FloatArray, wide: float, tolerance: float, said: _Wording) -> None:
    off = np.abs(sums - 1)
    if off.max() <= tolerance:
        said.note(f"{_OUTSIDE}, and rows divided by their sum")
        return
    row = int(off.argmax())
    how = f"; to say so, {DIVIDE_HINT} first" if said.sum_hint == DIVIDE_HINT else ""
    message = (
        f"rows of the probabilities miss one by rounding (row {row + said.first_row} sums to "
        f"{sums[row]:.9g}, up to {wide:.2g} is taken) and were divided by their sum{how}"
    )
    if said.note is remark:  # the same rows are fitted, predicted and evaluated
        remark_once(message, f"rounding up to {wide:.2g}")
    else:
        said.note(message)


def _clipped(array: FloatArray, tolerance: float, said: _Wording, most: float = 1.0) -> FloatArray:
    """Entries that leave [0, 1] by rounding, set to its ends; an error about others."""
    bad = ~((array >= -_SIGN_TOLERANCE) & (array <= 1 + tolerance))
    if bad.any():
        row, column = (int(i[0]) for i in np.nonzero(bad))
        value = array[row, column]
        place = f"row {row + said.first_row}, column {column} of the probabilities is"
        if not np.isfinite(value) and not np.isneginf(value):
            raise ValueError(
                f"{place} {value}: remove or impute such rows; "
                "NaN and infinite probabilities are not allowed"
            )
        hint = _diagnosis(array, said) or said.hint
        raise ValueError(f"{place} {value:.6g}, outside [0, 1]: {hint}")
    return np.clip(array, 0.0, most)


def look_like_proba(scores: FloatArray) -> bool:
    """Whether scores that are said to be logits have the form of probabilities."""
    if not all(0 <= score <= 1 for score in scores[0].tolist()):  # nearly all that do not
        return False
    some = scores[:_SOME_ROWS]
    is_inside = bool(some.min() >= 0 and some.max() <= 1)
    return is_inside and bool(np.abs(row_sum(some) - 1).max() <= _LOOKS)


def rounding_tolerance(array: FloatArray) -> float:
    """How far from one the rows of probabilities may be that were rounded as these are."""
    some = np.asarray(array[:_SOME_ROWS], dtype=np.float64)
    if not np.isfinite(some).all():
        return 0.0
    unit = np.finfo(array.dtype).eps
    for decimals in range(1, 8):
        if 10.0**decimals * unit > 0.01:  # everything is a multiple of what is that small
            break
        scaled = some * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() <= 10.0**decimals * unit:
            worst = array.shape[1] / 2 * 10.0**-decimals + unit
            return float(min(worst * (1 + 1e-9), _LARGEST_TOLERANCE))
    bits = some.astype(np.float32)
    is_half = (bits == some).all() and not (bits.view(np.uint32) & 0x1FFF).any()
    return _HALF_TOLERANCE if is_half else 0.0


def _diagnosis(array: FloatArray, said: _Wording) -> str | None:
    """What scores that are no probabilities seem to be, and what to do; None where that is not
    clear.
    """
    some = np.asarray(array[:_SOME_ROWS], dtype=np.float64)
    has_inputs = said.hint == LOGITS_HINT
    if np.isnan(some).any() or np.isposinf(some).any():
        return None
    if some.max() <= 0:
        logs = "pass inputs='log_proba'" if has_inputs else "pass np.exp(p)"
        if some.shape[1] == 1:
            odds = "inputs='logits'" if has_inputs else "scipy.special.expit(p)"
            return (
                f"none is positive: if these are logarithms of probabilities {logs}; if they are "
                f"log-odds, {odds}"
            )
        if np.abs(np.exp(some).sum(axis=1) - 1).max() <= _HALF_TOLERANCE:
            return f"these are log-probabilities: {logs}"
        return None
    if some.min() < 0 or not 1 < some.max() <= 100 * (1 + _HALF_TOLERANCE):
        return None
    if some.shape[1] == 1:
        labels = "" if (some % 1).any() else "if these are predicted labels pass predict_proba; "
        return f"{labels}if these are percentages divide by 100; if they are log-odds, {said.hint}"
    if np.abs(some.sum(axis=1) - 100).max() <= 100 * _LARGEST_TOLERANCE:
        return "these are percentages: divide by 100"
    return _shares_hint(said)


def _shares_hint(said: _Wording) -> str:
    """What to do with rows that sum to something else than one."""
    if said.sum_hint != DIVIDE_HINT:
        return f"{said.hint}, {said.sum_hint}"
    return f"if these are shares or counts, {DIVIDE_HINT}; if not, {said.hint}"


def _renormalized(array: FloatArray, said: _Wording) -> FloatArray:
    sums = array.sum(axis=1, dtype=np.float64)
    empty = np.flatnonzero(~((sums > 0) & np.isfinite(sums)))
    if empty.size:
        raise ValueError(
            f"row {int(empty[0]) + said.first_row} of the probabilities sums to "
            f"{sums[empty[0]]:.6g} and cannot be renormalised"
        )
    return (array / sums[:, None]).astype(array.dtype)


def _shown(row: AnyArray) -> str:
    return np.array2string(row[:6], precision=4, separator=", ") + (" ..." if row.size > 6 else "")
