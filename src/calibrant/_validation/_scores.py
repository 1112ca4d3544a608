"""Validation of scores.

Scores of a declared type become an ``(n, K)`` float array. Invalid scores raise an error that
describes the probable cause and the fix.

Rows of probabilities must sum to one up to the round-off of their type (1e-6 in float64, 1e-3 in
float32, 1e-2 in float16). If values were rounded, rows are divided by their sum, with a warning.
The tolerance of K values with d decimals is K / 2 units of the last decimal, but at most 0.05. The
tolerance of 16-bit values is 0.01.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from calibrant._kernels.blocks import READ_BLOCK, map_blocks, one_blas_thread
from calibrant._kernels.simplex import rough_row_sum, row_sum
from calibrant._typing import AnyArray, FloatArray, Inputs, ScoresLike
from calibrant._validation._warnings import warn_data, warn_data_once
from calibrant._validation.arrays import as_array
from calibrant._validation.score_hints import (
    HALF_TOLERANCE,
    LARGEST_TOLERANCE,
    LOGITS_HINT,
    SOME_ROWS,
    ScoreHints,
    diagnose,
    positive_hint,
    raw_hint,
    shares_hint,
)

KINDS = ("proba", "logits", "log_proba")

_SUM_TOLERANCE = {
    np.dtype(np.float64): 1e-6,
    np.dtype(np.float32): 1e-3,
    np.dtype(np.float16): 1e-2,
}

_SIGN_TOLERANCE = 1e-6
"""Negative numbers of this size are round-off of zero."""

LARGEST_LOGIT = 1e30
"""Sums of products of larger logits with coefficients may overflow, even in single precision."""

_DEEP_HINT = (
    " For pixels or tokens, fit calibrant.flatten_predictions(labels, scores, class_axis=1) and "
    "predict with calibrant.map_scores(model.predict_proba, scores, class_axis=1)."
)

_CLIPPED = "Probabilities that rounding moved outside [0, 1] were set to 0 and 1"


class _Context(NamedTuple):
    """Context for messages about scores.

    ``first_row`` is the number of the first row. ``slack`` is the tolerance of row sums for scores
    that the user cannot change, such as those of a classifier. ``note`` is called with a message if
    scores were repaired.
    """

    hints: ScoreHints
    first_row: int
    slack: float
    note: Callable[[str], None]


def check_inputs(inputs: str) -> Inputs:
    """Return the declared type of scores, or raise if the type is unknown."""
    if inputs not in KINDS:
        raise ValueError(f"inputs must be 'proba', 'logits' or 'log_proba', got {inputs!r}.")
    return cast(Inputs, inputs)


def check_scores(
    scores: ScoresLike,
    *,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: ScoreHints = LOGITS_HINT,
    first_row: int = 0,
    renormalize: bool = False,
    slack: float = 0.0,
    note: Callable[[str], None] = warn_data,
) -> FloatArray:
    """Return scores as a checked ``(n, K)`` float array. Scores ``(n,)`` belong to class 1 of two.

    Parameters
    ----------
    scores : array-like
    inputs : {"proba", "logits", "log_proba"}
    sum_to_one : bool
        Whether rows of probabilities must sum to one. Rows of scores of class-wise events need not
        sum to one.
    hint : ScoreHints
        The fixes that error messages suggest.
    first_row : int
        Number of the first row, if the scores are a block of a larger data set.
    renormalize : bool
        Whether to divide rows of probabilities by their sum, even if the sum is far from one.
    slack : float
        Rows of probabilities whose sum differs from one by at most this number are divided by their
        sum.
    note : callable
        Called with a message if scores were repaired.
    """
    kind, context = check_inputs(inputs), _Context(hint, first_row, slack, note)
    array, tolerance = _as_float(scores)
    if array.ndim == 1:
        array = _binary_columns(array, kind, tolerance, context)
    _check_shape(array)
    if kind == "logits":
        return _check_logits(array, context)
    if kind == "log_proba":
        return _check_log_proba(array, max(tolerance, slack), renormalize, context)
    if renormalize:
        array = _renormalized(array, context)
    return _check_proba(array, tolerance if sum_to_one else None, context)


def _as_float(scores: ScoresLike) -> tuple[FloatArray, float]:
    """Return scores as float32 or float64, and the tolerance of row sums of their original type."""
    array = as_array(scores)
    if array.dtype.kind in "cMm":
        raise TypeError(f"Scores must be real numbers, got an array of dtype {array.dtype}.")
    if array.dtype.kind in "OSU":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"Scores must be numbers, but {_first_text(array)}. Pass only the columns of "
                "scores, for example X[['p_cat', 'p_dog']]."
            ) from None
    tolerance = _SUM_TOLERANCE.get(array.dtype, 1e-6)
    dtype = np.float32 if array.dtype in (np.float16, np.float32) else np.float64
    return array.astype(dtype, copy=False), tolerance


def _first_text(array: AnyArray) -> str:
    """Name the first entry that is not a number."""
    for place, value in np.ndenumerate(array):
        try:
            float(value)
        except (TypeError, ValueError):
            names = ("row", "column") if len(place) < 3 else ("axis",) * len(place)
            where = ", ".join(f"{name} {i}" for name, i in zip(names, place, strict=False))
            entry = value.item() if isinstance(value, np.generic) else value
            return f"{where or 'the value'} is {entry!r:.40}"
    return f"their dtype is {array.dtype}"


def _binary_columns(
    score: FloatArray, kind: Inputs, tolerance: float, context: _Context
) -> FloatArray:
    """Return two columns from the probability, its logarithm, or the log-odds of class 1."""
    if kind == "logits":
        return np.column_stack([np.zeros_like(score), score])
    if kind == "log_proba":
        _raise_if_not_log(score[:, None], context)
        # Compute log(1 - exp(s)) with expm1, which keeps the digits of probabilities near one.
        with np.errstate(divide="ignore"):  # log(0) if class 1 has probability one
            return np.column_stack([np.log(-np.expm1(np.minimum(score, 0.0))), score])
    if score.size and not (score.min() >= 0 and score.max() <= 1):  # also catches NaN
        score = _clipped(score[:, None], tolerance, context)[:, 0]
        context.note(f"{_CLIPPED}.")
    return np.column_stack([1 - score, score])


def _check_shape(array: AnyArray) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"Scores must have shape (n_samples, n_classes), or (n_samples,) for a binary problem, "
            f"got shape {array.shape}.{_DEEP_HINT if array.ndim > 2 else ''}"
        )
    if array.shape[0] == 0:
        raise ValueError(f"Scores are empty (shape {array.shape}). Pass at least one row.")
    if array.shape[1] < 2:
        raise ValueError(
            f"Scores have shape {array.shape}, but one column per class is needed. For a binary "
            "problem, pass the probability of class 1 as scores[:, 0], of shape (n_samples,)."
        )


def _check_logits(array: FloatArray, context: _Context, what: str = "logits") -> FloatArray:
    """Return logits with -inf in place of finite values below ``-LARGEST_LOGIT``."""

    def is_valid(rows: slice) -> bool:
        block = array[rows]
        # The result is False for NaN and +inf.
        return bool(block.max() <= LARGEST_LOGIT and block.min() >= -LARGEST_LOGIT)

    if _all_rows(is_valid, array):
        return array
    _raise_if_not_logits(array, context, what)
    # Finite masks such as the lowest float mean -inf. Copy the array only if it has such masks.
    is_mask = (array < -LARGEST_LOGIT) & np.isfinite(array)
    return np.where(is_mask, -np.inf, array).astype(array.dtype) if is_mask.any() else array


def _raise_if_not_logits(array: FloatArray, context: _Context, what: str) -> None:
    """Raise if a logit is NaN, +inf or too large, or if a row has only -inf."""
    top = array.max(axis=1)
    bad = np.flatnonzero(~(np.abs(top) <= LARGEST_LOGIT))
    if bad.size:
        row = int(bad[0])
        raise ValueError(
            f"Row {row + context.first_row} of the {what} is {_format_row(array[row])}, but NaN, "
            f"+inf, values above {LARGEST_LOGIT:g} and rows with only -inf are not allowed. Remove "
            "such rows, or find out why the model returns them. (-inf for some classes of a row "
            "is accepted and stands for the probability eps.)"
        )


def _all_rows(is_valid: Callable[[slice], bool], array: FloatArray) -> bool:
    """Return whether all blocks of rows are valid. A small array is one block."""
    if array.size <= READ_BLOCK:
        with one_blas_thread(array.size):
            return is_valid(slice(None))
    return all(map_blocks(is_valid, *array.shape, elements=READ_BLOCK))


def _check_log_proba(
    array: FloatArray, tolerance: float, renormalize: bool, context: _Context
) -> FloatArray:
    """Check log-probabilities.

    Log-probabilities are used as logits, which are normalized later, so rounded rows need no
    repair.
    """
    array = _check_logits(array, context, "log-probabilities")
    _raise_if_not_log(array, context)
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
    if off.max() <= max(tolerance, HALF_TOLERANCE):
        return array
    row = int(off.argmax())
    raise ValueError(
        f"Row {row + context.first_row} of the log-probabilities represents probabilities that sum "
        f"to {sums[row]:.6g} instead of 1. If some classes have no column, add a column for their "
        f"probability, or pass {context.hints.logits} to condition on the classes with a column."
    )


def _raise_if_not_log(array: FloatArray, context: _Context) -> None:
    """Raise if a log-probability is positive, and suggest what the scores are."""
    bad = ~(array <= _SIGN_TOLERANCE)
    if not bad.any():
        return
    row, column = (int(i[0]) for i in np.nonzero(bad))
    raise ValueError(
        f"Row {row + context.first_row}, column {column} of the log-probabilities is "
        f"{array[row, column]:.6g}, but the logarithm of a probability is at most 0. "
        f"{positive_hint(array, context.hints)}"
    )


def _check_proba(array: FloatArray, tolerance: float | None, context: _Context) -> FloatArray:
    if _all_rows(lambda rows: _has_valid_proba(array[rows], tolerance), array):
        return array
    if tolerance is None:
        clipped = _clipped(array, _SUM_TOLERANCE[array.dtype], context)
        context.note(f"{_CLIPPED}.")
        return clipped
    return _repaired(array, tolerance, context)


def _has_valid_proba(block: FloatArray, tolerance: float | None) -> bool:
    """Return whether rows need no repair. A tolerance of None allows any sum."""
    if not block.min() >= 0:  # also catches NaN
        return False
    if tolerance is None:
        return bool(block.max() <= 1)
    # A row sum within 1e-6 of one bounds the entries of float64 rows by 1 + 1e-6. The tolerance of
    # float32 is larger, so float32 entries need a separate check.
    if tolerance > _SIGN_TOLERANCE and not block.max() <= 1 + _SIGN_TOLERANCE:
        return False
    return bool(np.abs(rough_row_sum(block) - 1).max() <= tolerance)


def _repaired(array: FloatArray, tolerance: float, context: _Context) -> FloatArray:
    """Divide rows by their sum if it differs from one by rounding, and raise for other rows."""
    wide_tolerance = max(tolerance, context.slack, rounding_tolerance(array))
    clipped = _clipped(array, wide_tolerance, context, most=np.inf)
    sums = clipped.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1)
    if not off.max() <= wide_tolerance:
        row = int(np.flatnonzero(~(off <= wide_tolerance))[0])
        is_missing = bool(sums.max() <= 1 + wide_tolerance)
        raise ValueError(
            f"Row {row + context.first_row} of the probabilities sums to {sums[row]:.6g} instead "
            f"of 1. {'Add the missing column if a class has none. ' if is_missing else ''}"
            f"{diagnose(array, context.hints) or shares_hint(context.hints)}"
        )
    _note_repair(sums, wide_tolerance, tolerance, context)
    return np.asarray(clipped / sums[:, None], dtype=array.dtype)


def _note_repair(
    sums: FloatArray, wide_tolerance: float, tolerance: float, context: _Context
) -> None:
    if np.abs(sums - 1).max() <= tolerance:
        context.note(f"{_CLIPPED}, and rows were divided by their sum.")
        return
    message = _rounding_message(sums, wide_tolerance, context)
    if context.note is warn_data:
        # Users usually fit, predict and evaluate the same rows, so warn only once about the same
        # rows.
        warn_data_once(message, f"rounding up to {wide_tolerance:.2g}")
    else:
        context.note(message)


def _rounding_message(sums: FloatArray, wide_tolerance: float, context: _Context) -> str:
    row = int(np.abs(sums - 1).argmax())
    message = (
        f"Rows of the probabilities do not sum to 1 because of rounding (row "
        f"{row + context.first_row} sums to {sums[row]:.9g}, and the tolerance is "
        f"{wide_tolerance:.2g}). The rows were divided by their sum."
    )
    if not context.hints.divide.startswith("{"):  # file readers append their own hint
        message += f" To avoid this warning, pass {context.hints.divide}."
    return message


def _clipped(
    array: FloatArray, tolerance: float, context: _Context, most: float = 1.0
) -> FloatArray:
    """Clip entries slightly outside [0, 1], and raise ValueError for entries farther outside."""
    bad = ~((array >= -_SIGN_TOLERANCE) & (array <= 1 + tolerance))
    if bad.any():
        row, column = (int(i[0]) for i in np.nonzero(bad))
        value = array[row, column]
        place = f"Row {row + context.first_row}, column {column} of the probabilities is"
        if not np.isfinite(value) and not np.isneginf(value):
            raise ValueError(
                f"{place} {value}, but NaN and infinite probabilities are not allowed. Remove or "
                "impute such rows."
            )
        raise ValueError(
            f"{place} {value:.6g}, outside [0, 1]. "
            f"{diagnose(array, context.hints) or raw_hint(array, context.hints)}"
        )
    return np.clip(array, 0.0, most)


def rounding_tolerance(array: FloatArray) -> float:
    """Return the largest difference from one that the rounding of these rows explains."""
    sample_rows = np.asarray(array[:SOME_ROWS], dtype=np.float64)
    if not np.isfinite(sample_rows).all():
        return 0.0
    unit = np.finfo(array.dtype).eps
    for decimals in range(1, 8):
        # With this many decimals, every number looks rounded because of the spacing of floats.
        if 10.0**decimals * unit > 0.01:
            break
        multiples = sample_rows * 10.0**decimals
        if np.abs(multiples - np.rint(multiples)).max() <= 10.0**decimals * unit:
            # The rounding error of each of K values is at most half a unit of the last decimal.
            worst = array.shape[1] / 2 * 10.0**-decimals + unit
            return float(min(worst * (1 + 1e-9), LARGEST_TOLERANCE))
    # float16 and bfloat16 leave at least the 13 last bits of the float32 mantissa empty.
    bits = sample_rows.astype(np.float32)
    is_half = (bits == sample_rows).all() and not (bits.view(np.uint32) & 0x1FFF).any()
    return HALF_TOLERANCE if is_half else 0.0


def _renormalized(array: FloatArray, context: _Context) -> FloatArray:
    sums = array.sum(axis=1, dtype=np.float64)
    empty = np.flatnonzero(~((sums > 0) & np.isfinite(sums)))
    if empty.size:
        raise ValueError(
            f"Row {int(empty[0]) + context.first_row} of the probabilities sums to "
            f"{sums[empty[0]]:.6g} and cannot be renormalized. Remove such rows."
        )
    return (array / sums[:, None]).astype(array.dtype)


def _format_row(row: AnyArray) -> str:
    return np.array2string(row[:6], precision=4, separator=", ") + (" ..." if row.size > 6 else "")
