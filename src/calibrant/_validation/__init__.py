"""The boundary: what users pass becomes float arrays, column codes and weights, or an error that
says what to do.

Data is checked once, here. Inside, ``scores`` are ``(n, K)`` float32 or float64, ``y`` are column
codes, ``weight`` are floats (never None). Checks run over row blocks, so that they need no copy of
the data.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._kernels.simplex import as_proba, total_weight
from calibrant._typing import (
    AnyArray,
    FloatArray,
    IntArray,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation._arguments import check_arguments, remark_other_order
from calibrant._validation._arrays import as_array
from calibrant._validation._columns import (
    arrange,
    arrange_as_fitted,
    categories_of,
    column_names,
    match_columns,
    match_labels,
    order_of,
    readings,
)
from calibrant._validation._labels import (
    as_labels,
    check_classes,
    encode_labels,
    missing_as_text,
    raise_if_missing,
    raise_if_other_order,
    remark_count_from_one,
)
from calibrant._validation._layouts import FlatPredictions, flatten_predictions, map_scores
from calibrant._validation._parameters import Message, ParameterError, Spelling
from calibrant._validation._remarks import remark, user_level
from calibrant._validation._scores import (
    DIVIDE_HINT,
    KINDS,
    LARGEST_LOGIT,
    LOGITS_HINT,
    SOFTMAX_HINT,
    check_inputs,
    check_scores,
    look_like_proba,
)
from calibrant._validation._text import (
    printable,
    printable_lines,
    shortened,
    unknown_name,
)

__all__ = [
    "DIVIDE_HINT",
    "LARGEST_LOGIT",
    "LOGITS_HINT",
    "SOFTMAX_HINT",
    "FlatPredictions",
    "Message",
    "ParameterError",
    "Predictions",
    "Spelling",
    "arrange_as_fitted",
    "as_array",
    "as_seed",
    "check_classes",
    "check_count",
    "check_eps",
    "check_fitted",
    "check_inputs",
    "check_number",
    "check_option",
    "check_predictions",
    "check_prior_scale",
    "check_row_counts",
    "check_same_length",
    "check_scores",
    "check_strength",
    "check_total",
    "check_weight",
    "column_names",
    "encode_labels",
    "flatten_predictions",
    "look_like_proba",
    "map_scores",
    "match_columns",
    "match_labels",
    "missing_as_text",
    "one_seed",
    "order_of",
    "printable",
    "printable_lines",
    "raise_if_missing",
    "readings",
    "remark",
    "remark_few_weights",
    "remark_other_order",
    "shortened",
    "unknown_name",
    "user_level",
]


_MANY_ROWS = 20
"""Rows whose weights do not come to two by chance, and whose logits do not sum to one."""


_MOST_WEIGHT = 1e100
"""Sums of squares of larger weights overflow."""

_NEGLIGIBLE = 1e-30
"""Weights that are smaller compared with the largest do not change a sum, but their quotients
underflow."""


class Predictions(NamedTuple):
    """Checked predictions: scores (n, K), column codes (n,), weights (n,), the labels of the
    columns (K,).
    """

    scores: FloatArray
    y: IntArray
    weight: FloatArray
    classes: AnyArray


def check_weight(
    sample_weight: WeightsLike | None, n_samples: int, *, first_row: int = 0
) -> FloatArray:
    """Weights in float64; ones that take no memory where none are given. Errors count rows from
    ``first_row``.
    """
    if sample_weight is None:
        return _unit_weights(n_samples)
    weight = _as_weights(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one weight a row; got shape "
            f"{weight.shape}"
        )
    if n_samples and not (weight.min() >= 0 and weight.max() < np.inf):  # false for NaN too
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise ValueError(
            f"sample_weight of row {row + first_row} is {weight[row]}: weights must be finite and "
            "not negative"
        )
    if not weight.any():
        raise ValueError("all sample weights are zero: at least one row must count")
    return _without_negligible(weight, first_row)


def _without_negligible(weight: FloatArray, first_row: int) -> FloatArray:
    """Weights with zero in place of those that no sum would show."""
    largest = float(weight.max())
    if not 1 / _MOST_WEIGHT <= largest <= _MOST_WEIGHT:
        raise ValueError(
            f"sample_weight of row {int(weight.argmax()) + first_row} is {largest:g}: the largest "
            f"weight must be between {1 / _MOST_WEIGHT:g} and {_MOST_WEIGHT:g}. Multiply all "
            "weights by a constant."
        )
    least = _NEGLIGIBLE * largest
    if float(weight.min()) >= least:
        return weight
    return np.where(weight < least, 0.0, weight) if (weight[weight > 0] < least).any() else weight


def _unit_weights(n_samples: int) -> FloatArray:
    """What `np.broadcast_to` gives, in half its time."""
    ones: FloatArray = np.ndarray((n_samples,), np.float64, _ONE, strides=(0,))
    ones.flags.writeable = False
    return ones


_ONE = np.ones(1)


def _as_weights(sample_weight: WeightsLike) -> FloatArray:
    array = as_array(sample_weight)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        hint = (
            "; for balanced classes pass sklearn.utils.class_weight.compute_sample_weight("
            "'balanced', y)"
        )
        raise TypeError(
            f"sample_weight must be numbers, one a row, got {sample_weight!r:.80}"
            + (hint if isinstance(sample_weight, str) else "")
        ) from None


def check_row_counts(weight: FloatArray, what: str) -> None:
    """Raise where ``what`` needs to know how many rows there are and the weights, which are
    numbers of copies of a row, come to fewer than two.
    """
    check_total(total_weight(weight), int(np.count_nonzero(weight)), what)


def check_total(total: float, n_rows: int, what: str) -> None:
    """`check_row_counts` of ``n_rows`` rows by the sum of their weights."""
    problem = _few_weights(total, n_rows)
    if problem:
        raise ValueError(f"{what} counts rows, a row of weight 2 as two, and {problem}")


def _few_weights(total: float, n_rows: int) -> str | None:
    if total >= 2 or n_rows < 2:
        return None
    return (
        f"the weights of {n_rows:,} rows sum to {total:.6g}: give weights that are normalised to "
        "one as w * n / w.sum(), with n the number of rows (or the effective one, "
        "w.sum() ** 2 / (w ** 2).sum())"
    )


def check_predictions(
    y_true: LabelsLike,
    scores: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: str = SOFTMAX_HINT,
    renormalize: bool = False,
) -> Predictions:
    """Truth and scores of the same rows, checked together: the first line of every metric and every
    fit. Columns of a data frame are those of the classes that they are named after.
    """
    labels, table = as_labels(y_true), as_array(scores)
    check_arguments(labels, table)
    remark_other_order(y_true, scores, sample_weight)
    raise_if_missing(y_true, labels)
    table, names = arrange(table, column_names(scores), labels, categories_of(y_true), classes)
    array = check_scores(
        table, inputs=inputs, sum_to_one=sum_to_one, hint=hint, renormalize=renormalize
    )
    if inputs == "logits" and len(array) >= _MANY_ROWS and look_like_proba(array):
        remark(
            "the logits are between 0 and 1 and every row sums to one: if these are probabilities, "
            "leave inputs='logits' out"
        )
    y, own = encode_labels(labels, array.shape[1], names)
    if names is None and labels.dtype.kind in "OSU":
        raise_if_other_order(array, y, own)
    if names is None and array.shape[1] > 2 and y.min() == 1:
        remark_count_from_one(y, as_proba(array, inputs))
    return Predictions(array, y, check_weight(sample_weight, len(y)), own)


def check_same_length(**arrays: AnyArray) -> None:
    """Raise and name the lengths where they differ."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {length} rows" for name, length in lengths.items())
        raise ValueError(f"rows do not match: {said}")


def check_count(value: Any, name: str, *, minimum: int = 1) -> int:
    """A whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    return int(value)


def check_option(value: Any, name: str, options: tuple[Any, ...]) -> Any:
    """One of a few values."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {value!r}")
    return value


def as_seed(random_state: Rng) -> int | None:
    """The seed that a ``random_state`` stands for: an integer as it is, None where there is none.

    A Generator gives a number of a copy of its state: it is not advanced, so that fitting again
    gives the same result, and clones draw alike.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(deepcopy(random_state).integers(2**63))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            f"random_state must be an integer, a numpy.random.Generator or None, got "
            f"{random_state!r}; for a generator use numpy.random.default_rng(seed)"
        )
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    return int(random_state)


def one_seed(rng: Rng, random_state: Rng) -> Rng:
    """What decides randomness, by either of its names: ``rng`` in functions, and for those who
    know estimators ``random_state``.
    """
    if rng is not None and random_state is not None:
        raise ValueError("rng and random_state are two names for the same: give one of them")
    return random_state if rng is None else rng


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's ``NotFittedError`` before the first fit."""
    if "classes_" not in vars(estimator):
        check_is_fitted(estimator, "classes_")


def check_eps(eps: float) -> None:
    """The floor of probabilities."""
    if not _is_number(eps) or not 0 < eps < 0.5:
        raise ValueError(f"eps must lie between 0 and 0.5, got {eps!r}")


def check_strength(value: float, name: str) -> None:
    """A penalty: finite and not negative."""
    if not _is_number(value) or not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")


def check_number(value: Any, name: str, *, is_positive: bool = False) -> None:
    """A finite number, above zero where it must be."""
    if not _is_number(value) or not np.isfinite(value) or (is_positive and not value > 0):
        wanted = "a positive number" if is_positive else "a finite number"
        raise ValueError(f"{name} must be {wanted}; got {value!r}")


def check_prior_scale(value: Any) -> None:
    """The standard deviation of a Gaussian prior, or None for no prior."""
    if value is not None and (not _is_number(value) or not value > 0):
        hint = f"; to say what the scores are, pass inputs={value!r}" if value in KINDS else ""
        raise ValueError(f"prior_scale must be positive, or None for no prior; got {value!r}{hint}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
