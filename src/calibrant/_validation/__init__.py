"""Validation of user input.

Valid input becomes float arrays, column codes and weights. Invalid input raises an error that
suggests a fix. Data are checked only once, in this subpackage. Inside the package, ``scores`` are
``(n, K)`` float32 or float64 arrays, ``y`` are column codes and ``weight`` are floats (never None).
Checks run over blocks of rows, so they need no copy of the data.
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
from calibrant._validation._arguments import check_arguments, raise_if_many_labels, warn_other_order
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
from calibrant._validation._costs import add_abstention, check_costs, check_share
from calibrant._validation._layouts import FlatPredictions, flatten_predictions, map_scores
from calibrant._validation._options import (
    OptionScores,
    check_option_inputs,
    raise_if_not_log,
)
from calibrant._validation._parameters import Message, ParameterError, Spelling
from calibrant._validation._scores import KINDS, LARGEST_LOGIT, check_inputs, check_scores
from calibrant._validation._text import (
    printable,
    printable_lines,
    shortened,
    unknown_name,
)
from calibrant._validation._warnings import user_level, warn_data, warn_data_once
from calibrant._validation.arrays import as_array
from calibrant._validation.labels import (
    as_labels,
    check_classes,
    check_new_labels,
    encode_labels,
    is_missing,
    missing_as_text,
    raise_if_missing,
    raise_if_other_kind,
    raise_if_other_order,
    warn_count_from_one,
)
from calibrant._validation.score_hints import (
    LOGITS_HINT,
    NEW_SCORE_HINTS,
    SOFTMAX_HINT,
    ScoreHints,
    look_like_proba,
)

__all__ = [
    "LARGEST_LOGIT",
    "LOGITS_HINT",
    "NEW_SCORE_HINTS",
    "SOFTMAX_HINT",
    "FlatPredictions",
    "Message",
    "OptionScores",
    "ParameterError",
    "Predictions",
    "ScoreHints",
    "Spelling",
    "add_abstention",
    "arrange_as_fitted",
    "as_array",
    "as_labels",
    "as_seed",
    "check_classes",
    "check_costs",
    "check_count",
    "check_eps",
    "check_fitted",
    "check_inputs",
    "check_new_labels",
    "check_number",
    "check_option",
    "check_option_inputs",
    "check_predictions",
    "check_prior_scale",
    "check_row_counts",
    "check_same_length",
    "check_scores",
    "check_share",
    "check_strength",
    "check_total",
    "check_weight",
    "column_names",
    "encode_labels",
    "flatten_predictions",
    "is_missing",
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
    "raise_if_not_log",
    "raise_if_other_kind",
    "readings",
    "shortened",
    "unknown_name",
    "user_level",
    "warn_data",
    "warn_data_once",
    "warn_other_order",
    "warn_proba_as_logits",
]


_MANY_ROWS = 20
"""With at least this many rows, logits that all look like probabilities trigger a warning."""


_MOST_WEIGHT = 1e100
"""Maximum of the weights. Much larger weights would overflow when they are squared."""

_NEGLIGIBLE = 1e-30
"""Weights below this fraction of the largest weight do not change a sum in double precision, but
quotients with them underflow."""


class Predictions(NamedTuple):
    """Checked scores (n, K), column codes (n,), weights (n,) and labels of the columns (K,)."""

    scores: FloatArray
    y: IntArray
    weight: FloatArray
    classes: AnyArray


def check_weight(
    sample_weight: WeightsLike | None, n_samples: int, *, first_row: int = 0
) -> FloatArray:
    """Return weights in float64. None becomes an array of ones that takes no memory.

    Row numbers in errors start at ``first_row``.
    """
    if sample_weight is None:
        return _unit_weights(n_samples)
    weight = _as_weights(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_samples, float(weight))
    if weight.shape != (n_samples,):
        is_column = weight.shape in {(n_samples, 1), (1, n_samples)}
        fix = "np.ravel(sample_weight)" if is_column else "one weight per row"
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), got shape {weight.shape}. Pass {fix}."
        )
    _raise_if_invalid(weight, first_row)
    return _without_negligible(weight, first_row)


def _raise_if_invalid(weight: FloatArray, first_row: int) -> None:
    if weight.size and not (weight.min() >= 0 and weight.max() < np.inf):  # also catches NaN
        row = int(np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))[0])
        raise ValueError(
            f"sample_weight of row {row + first_row} is {weight[row]}, but weights must be finite "
            "and not negative."
        )
    if not weight.any():
        raise ValueError(
            "All sample weights are zero. Pass a positive weight for at least one row."
        )


def _without_negligible(weight: FloatArray, first_row: int) -> FloatArray:
    """Return weights, with zero in place of weights that are too small to change a sum."""
    largest = float(weight.max())
    if not 1 / _MOST_WEIGHT <= largest <= _MOST_WEIGHT:
        raise ValueError(
            f"sample_weight of row {int(weight.argmax()) + first_row} is {largest:g}, but the "
            f"largest weight must be between {1 / _MOST_WEIGHT:g} and {_MOST_WEIGHT:g}. Pass "
            "sample_weight / sample_weight.max()."
        )
    least = _NEGLIGIBLE * largest
    if float(weight.min()) >= least:
        return weight
    return np.where(weight < least, 0.0, weight) if (weight[weight > 0] < least).any() else weight


def _unit_weights(n_samples: int) -> FloatArray:
    """Return a read-only array of ones with stride 0, which stores a single number."""
    # `np.broadcast_to` takes twice as long, which matters for small fits.
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
            " For balanced classes, pass sklearn.utils.class_weight.compute_sample_weight("
            "'balanced', y)."
        )
        raise TypeError(
            f"sample_weight must be numbers, one per row, got {sample_weight!r:.80}."
            + (hint if isinstance(sample_weight, str) else "")
        ) from None


def check_row_counts(weight: FloatArray, what: str) -> None:
    """Raise if weights sum to less than two, for methods that count rows."""
    check_total(total_weight(weight), int(np.count_nonzero(weight)), what)


def check_total(total: float, n_rows: int, what: str) -> None:
    """Raise if the weights of several rows sum to less than two. ``what`` names the operation."""
    if total < 2 <= n_rows:
        raise ValueError(
            f"{what[0].upper()}{what[1:]} counts a weight of 2 as two rows, but the weights of "
            f"{n_rows:,} rows sum to {total:.6g}. Pass w * n / w.sum() with n = len(w), or with "
            "the effective number of rows n = w.sum() ** 2 / (w ** 2).sum()."
        )


def check_predictions(
    y_true: LabelsLike,
    scores: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: ScoreHints = SOFTMAX_HINT,
    renormalize: bool = False,
) -> Predictions:
    """Check labels and scores of the same rows, as every metric and every fit does first.

    The columns of a data frame are matched to the classes by name.
    """
    if isinstance(scores, OptionScores):
        return _check_options(y_true, scores, sample_weight, classes, inputs)
    labels, table = as_labels(y_true), as_array(scores)
    check_arguments(labels, table)
    warn_other_order(y_true, scores, sample_weight)
    raise_if_missing(y_true, labels)
    table, names = arrange(table, column_names(scores), labels, categories_of(y_true), classes)
    # Check the labels first. If a column is missing, rows do not sum to one either, but only the
    # labels show the cause.
    codes = _encode_for(table, labels, names)
    array = check_scores(
        table, inputs=inputs, sum_to_one=sum_to_one, hint=hint, renormalize=renormalize
    )
    if inputs == "logits":
        warn_proba_as_logits(array)
    y, column_labels = codes or encode_labels(labels, array.shape[1], names)
    if names is None and labels.dtype.kind in "OSU":
        raise_if_other_order(array, y, column_labels)
    if names is None and array.shape[1] > 2 and y.min() == 1:
        warn_count_from_one(y, as_proba(array, inputs))
    return Predictions(array, y, check_weight(sample_weight, len(y)), column_labels)


def _check_options(
    y_true: LabelsLike,
    options: OptionScores,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
) -> Predictions:
    """Labels and scores of questions with different numbers of options."""
    labels = as_labels(y_true)
    check_same_length(y_true=labels, scores=options.n_options)
    raise_if_missing(y_true, labels)
    y, names = encode_labels(labels, options.n_classes, classes)
    options.check_labels(y)
    check_inputs(inputs)
    return Predictions(options.as_scores(inputs), y, check_weight(sample_weight, len(y)), names)


def _encode_for(
    table: AnyArray, labels: AnyArray, classes: LabelsLike | None
) -> tuple[IntArray, AnyArray] | None:
    """Encode labels for the columns of unchecked scores, or return None if the shape is invalid."""
    if table.ndim == 2 and table.shape[1] >= 2:
        return encode_labels(labels, table.shape[1], classes)
    if table.ndim == 1:
        raise_if_many_labels(labels, table.shape)
        return encode_labels(labels, 2, classes)
    return None


def warn_proba_as_logits(scores: FloatArray, fix: str = "inputs='proba'") -> None:
    """Warn if scores that were declared as logits look like probabilities."""
    if len(scores) >= _MANY_ROWS and look_like_proba(scores):
        warn_data(
            "The logits are between 0 and 1 and every row sums to one. If these scores are "
            f"probabilities, pass {fix}."
        )


def check_same_length(**arrays: AnyArray) -> None:
    """Raise if arrays have different lengths."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        numbers = " and ".join(f"{name} has {length} rows" for name, length in lengths.items())
        raise ValueError(f"Arrays must have the same number of rows, but {numbers}.")


def check_count(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return an integer, or raise if it is below ``minimum`` or not an integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}.")
    return int(value)


def check_option(value: Any, name: str, options: tuple[Any, ...]) -> Any:
    """Return a value, or raise if it is not among the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}.")
    return value


def as_seed(random_state: Rng) -> int | None:
    """Return an integer seed for a ``random_state``, or None for None.

    The seed of a Generator is drawn from a copy of its state. The Generator is not advanced, so
    another fit has the same result, and clones draw the same numbers.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(deepcopy(random_state).integers(2**63))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            f"random_state must be an integer, a numpy.random.Generator or None, got "
            f"{random_state!r}. For a generator, pass numpy.random.default_rng(seed)."
        )
    if random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}.")
    return int(random_state)


def one_seed(rng: Rng, random_state: Rng) -> Rng:
    """Return the seed, which users may pass as ``rng`` or as ``random_state``."""
    if rng is not None and random_state is not None:
        raise ValueError(
            "rng and random_state are two names for the same parameter. Pass only random_state."
        )
    return random_state if rng is None else rng


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's ``NotFittedError`` if an estimator is not fitted."""
    # scikit-learn's check takes longer than the prediction of a small array.
    if "classes_" not in vars(estimator):
        check_is_fitted(estimator, "classes_")


def check_eps(eps: float) -> None:
    """Raise if the floor of probabilities is not between 0 and 0.5."""
    if not _is_number(eps) or not 0 < eps < 0.5:
        raise ValueError(f"eps must be a number between 0 and 0.5 (both excluded), got {eps!r}.")


def check_strength(value: float, name: str) -> None:
    """Raise if the strength of a penalty is negative or not finite."""
    if not _is_number(value) or not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")


def check_number(value: Any, name: str, *, is_positive: bool = False) -> None:
    """Raise if a parameter is not a finite number, or not positive if ``is_positive``."""
    if not _is_number(value) or not np.isfinite(value) or (is_positive and not value > 0):
        requirement = "a positive number" if is_positive else "a finite number"
        raise ValueError(f"{name} must be {requirement}, got {value!r}.")


def check_prior_scale(value: Any) -> None:
    """Raise if the standard deviation of a Gaussian prior is neither positive nor None."""
    if value is not None and (not _is_number(value) or not value > 0):
        hint = f" To declare the type of scores, pass inputs={value!r}." if value in KINDS else ""
        raise ValueError(
            f"prior_scale must be positive, or None for no prior, got {value!r}.{hint}"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
