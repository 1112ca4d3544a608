"""The boundary: what users pass becomes float arrays, column codes and weights, or an error that
says what to do.

Data is checked once, here. Inside, ``scores`` are ``(n, K)`` float32 or float64, ``y`` are column
codes, ``weight`` are floats (never None). Checks run over row blocks, so that they need no copy of
the data.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._blocks import READ_ELEMENTS, map_blocks
from calibrant._simplex import row_sum
from calibrant._typing import (
    AnyArray,
    FloatArray,
    Inputs,
    IntArray,
    LabelsLike,
    Rng,
    ScoresLike,
    WeightsLike,
)

_SUM_TOLERANCE = {
    np.dtype(np.float64): 1e-6,
    np.dtype(np.float32): 1e-3,
    np.dtype(np.float16): 1e-2,
}

LOGITS_HINT = "pass inputs='logits' for raw scores"
SOFTMAX_HINT = (
    "turn raw scores into probabilities first, for example by scipy.special.softmax(z, axis=1)"
)


DIVIDE_HINT = "or divide by p.sum(axis=1, keepdims=True)"


class _Wording(NamedTuple):
    """What messages about scores say: what to do with logits and with rounded rows, and the number
    of the first row.
    """

    hint: str
    sum_hint: str
    first_row: int


class Predictions(NamedTuple):
    """Checked predictions: scores (n, K), column codes (n,), weights (n,), the labels of the
    columns (K,).
    """

    scores: FloatArray
    y: IntArray
    weight: FloatArray
    classes: AnyArray


def as_array(data: Any) -> AnyArray:
    """NumPy array of lists, data frames, memory maps and torch tensors; no copy where none is
    needed.
    """
    if type(data).__module__.partition(".")[0] == "torch":
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
        return np.asarray(data.numpy())
    return np.asarray(data)


def check_inputs(inputs: str) -> Inputs:
    """The declared kind of scores."""
    if inputs not in ("proba", "logits"):
        raise ValueError(f"inputs must be 'proba' or 'logits', got {inputs!r}")
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
) -> FloatArray:
    """Scores as an ``(n, K)`` float array, checked; ``(n,)`` is class 1 of a binary problem.

    ``sum_to_one=False`` is for class-wise claims, which need not. ``hint`` ends the messages about
    values that look like logits, ``sum_hint`` those about rounded rows; ``first_row`` is the number
    of the first row where these are a part of a file. ``renormalize`` divides rows of probabilities
    by their sum instead of refusing them.
    """
    kind, said = check_inputs(inputs), _Wording(hint, sum_hint, first_row)
    array, tolerance = _as_float(scores)
    if array.ndim == 1:
        array = _binary_columns(array, kind, said)
    _check_shape(array)
    if kind == "logits":
        _check_logits(array, said)
        return array
    if renormalize:
        array = _renormalized(array, said)
    _check_proba(array, tolerance if sum_to_one else None, said)
    return array


def _as_float(scores: ScoresLike) -> tuple[FloatArray, float]:
    array = as_array(scores)
    if array.dtype.kind in "OSU" or array.dtype.kind == "c":
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


def _binary_columns(score: FloatArray, kind: Inputs, said: _Wording) -> FloatArray:
    """Two columns from the probability (or the log-odds) of class 1."""
    if kind == "logits":
        return np.column_stack([np.zeros_like(score), score])
    _raise_if_outside(score[:, None], said)
    return np.column_stack([1 - score, score])


def _check_shape(array: AnyArray) -> None:
    if array.ndim != 2:
        raise ValueError(
            f"scores must have shape (n_samples, n_classes), or (n_samples,) for a binary problem; "
            f"got shape {array.shape}"
        )
    if array.shape[0] == 0:
        raise ValueError(f"scores are empty (shape {array.shape}): at least one row is needed")
    if array.shape[1] < 2:
        raise ValueError(
            f"scores have shape {array.shape}: one column per class is needed; "
            "for a binary problem pass scores[:, 0], the probability of class 1, with shape "
            "(n_samples,)"
        )


def _check_logits(array: FloatArray, said: _Wording) -> None:
    def worst(rows: slice) -> bool:
        block = array[rows]
        largest = block.max(axis=1)  # NaN and +inf show up here, rows of -inf alone too
        return bool(np.isfinite(largest).all())

    if not all(map_blocks(worst, *array.shape, elements=READ_ELEMENTS)):
        row = int(np.flatnonzero(~np.isfinite(array.max(axis=1)))[0])
        raise ValueError(
            f"row {row + said.first_row} of the logits is {_shown(array[row])}: NaN, +inf and rows "
            "of only -inf are not allowed; "
            "remove such rows, or find out why the model gives them (-inf for single impossible "
            "classes is fine)"
        )


def _check_proba(array: FloatArray, tolerance: float | None, said: _Wording) -> None:
    def is_fine(rows: slice) -> bool:
        block = array[rows]
        if not block.min() >= 0:  # also false for NaN
            return False
        if tolerance is None:
            return bool(block.max() <= 1)
        return bool(np.abs(row_sum(block) - 1).max() <= tolerance)

    if all(map_blocks(is_fine, *array.shape, elements=READ_ELEMENTS)):
        return
    _raise_if_outside(array, said)
    sums = array.sum(axis=1, dtype=np.float64)
    row = int(np.flatnonzero(~(np.abs(sums - 1) <= cast(float, tolerance)))[0])
    raise ValueError(
        f"row {row + said.first_row} of the probabilities sums to {sums[row]:.6g} instead of 1: "
        f"{said.hint}, {said.sum_hint}"
    )


def _raise_if_outside(array: FloatArray, said: _Wording) -> None:
    """Name the first entry that is not a probability."""
    bad = ~((array >= 0) & (array <= 1))
    if not bad.any():
        return
    row, column = (int(i[0]) for i in np.nonzero(bad))
    value = array[row, column]
    place = f"row {row + said.first_row}, column {column} of the probabilities is"
    if not np.isfinite(value):
        raise ValueError(
            f"{place} {value}: remove or impute such rows; "
            "NaN and infinite probabilities are not allowed"
        )
    if 1 < value <= 1 + 1e-6:
        raise ValueError(f"{place} {value!r}, above 1 by rounding: use np.clip(p, 0, 1)")
    raise ValueError(f"{place} {value:.6g}, outside [0, 1]: {said.hint}")


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


def check_classes(classes: LabelsLike | None, n_classes: int) -> AnyArray:
    """Labels of the columns: ``classes``, or 0..K-1."""
    if classes is None:
        return np.arange(n_classes)
    array = as_array(classes)
    if array.ndim != 1 or len(array) != n_classes:
        raise ValueError(
            f"classes must name each of the {n_classes} columns once, got {len(array)} names"
        )
    if len(set(array.tolist())) != n_classes:
        raise ValueError(f"classes must be different from each other, got {array.tolist()}")
    return array


def encode_labels(
    labels: LabelsLike, n_classes: int, classes: LabelsLike | None = None
) -> tuple[IntArray, AnyArray]:
    """Column codes of the labels, and the label of each column.

    Integers and booleans are column indices unless ``classes`` is given. Anything else is matched
    to ``classes``, or, if exactly K different labels occur, to the columns in sorted order.
    """
    y = as_array(labels)
    if y.ndim != 1:
        raise ValueError(
            f"labels must have shape (n_samples,), got shape {y.shape}; for one-hot rows pass "
            f"y.argmax(axis=1)"
        )
    if y.size == 0:
        raise ValueError("labels are empty: at least one row is needed")
    if classes is not None:
        names = check_classes(classes, n_classes)
        return _match(y, names), names
    if y.dtype.kind in "bui":
        return _check_codes(y, n_classes), np.arange(n_classes)
    names = np.unique(y)
    if len(names) != n_classes:
        raise ValueError(
            f"the labels hold {len(names)} different values ({shortened(names, show=repr)}) for "
            f"{n_classes} columns: say which column is which by classes=[...], in the order of the "
            "columns"
        )
    return _match(y, names), names


def _check_codes(y: AnyArray, n_classes: int) -> IntArray:
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= n_classes:
        bad = low if low < 0 else high
        row = int(np.flatnonzero(y == bad)[0])
        raise ValueError(
            f"label {bad} in row {row} is out of range: integer labels are column indices "
            f"0..{n_classes - 1}; "
            "if your labels have other values, give them in the order of the columns by "
            "classes=[...]"
        )
    return y.astype(np.intp, copy=False)


def _match(y: AnyArray, names: AnyArray) -> IntArray:
    """Position in ``names`` of each label."""
    order = np.argsort(names, kind="stable")
    try:
        place = np.searchsorted(names[order], y)
        codes = order[np.minimum(place, len(names) - 1)]
        unknown = np.flatnonzero(names[codes] != y)
    except TypeError:
        raise TypeError(
            f"labels ({shortened(y, show=repr)}) and classes ({shortened(names, show=repr)}) are "
            "of different types"
        ) from None
    if unknown.size:
        row = int(unknown[0])
        raise ValueError(
            f"label {shortened(y[row : row + 1], show=repr)} in row {row} is not among the classes "
            f"{shortened(names, show=repr)}; "
            "add it to classes=[...] and to the scores"
        )
    return codes.astype(np.intp, copy=False)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Kinds of characters that are not seen, or that command what shows them: control and escape
characters, marks that turn the direction of writing, halves of characters, line ends."""

_JOINERS = "\u200c\u200d"
"""Of that kind, but parts of words of some languages and of emoji."""


def printable(value: Any) -> str:
    r"""A value as text that a terminal, a log and a page show as it is: what would command them is
    written out.

    Examples
    --------
    >>> print(printable("red \x1b[31m and\nnext"))
    red \x1b[31m and\nnext
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_written_out, text))


def printable_lines(value: Any) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(map(printable, str(value).split("\n")))


def _written_out(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def shortened(
    values: Sequence[Any] | AnyArray, limit: int = 8, show: Callable[[Any], str] = printable
) -> str:
    """The first of some values for a message, and how many more there are."""
    first = values[:limit].tolist() if isinstance(values, np.ndarray) else values[:limit]
    rest = len(values) - limit
    return ", ".join(map(show, first)) + (f" and {rest:,} more" if rest > 0 else "")


def unknown_name(kind: str, name: Any, valid: Iterable[str], otherwise: str = "") -> str:
    """The message about a name that does not exist: the nearest one, and all that do."""
    names = list(valid)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    rest = f", or {otherwise}" if otherwise else ""
    return f"unknown {kind} {name!r}; {hint}valid are {', '.join(names)}{rest}"


def check_weight(sample_weight: WeightsLike | None, n_samples: int) -> FloatArray:
    """Weights in float64; ones that take no memory where none are given."""
    if sample_weight is None:
        return np.broadcast_to(np.float64(1.0), (n_samples,))
    weight = as_array(sample_weight).astype(np.float64, copy=False)
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
            f"sample_weight of row {row} is {weight[row]}: weights must be finite and not negative"
        )
    if not weight.any():
        raise ValueError("all sample weights are zero: at least one row must count")
    return weight


def check_predictions(
    y_true: LabelsLike,
    scores: ScoresLike,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    *,
    inputs: str = "proba",
    sum_to_one: bool = True,
    hint: str = SOFTMAX_HINT,
) -> Predictions:
    """Truth and scores of the same rows, checked together: the first line of every metric and every
    fit.
    """
    array = check_scores(scores, inputs=inputs, sum_to_one=sum_to_one, hint=hint)
    y, names = encode_labels(y_true, array.shape[1], classes)
    check_same_length(y=y, scores=array)
    return Predictions(array, y, check_weight(sample_weight, len(y)), names)


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


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's ``NotFittedError`` before the first fit."""
    check_is_fitted(estimator, "classes_")


def check_eps(eps: float) -> None:
    """The floor of probabilities."""
    if not 0 < eps < 0.5:
        raise ValueError(f"eps must lie between 0 and 0.5, got {eps!r}")


def check_strength(value: float, name: str) -> None:
    """A penalty: finite and not negative."""
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")


def check_prior_scale(value: float | None) -> None:
    """The standard deviation of a Gaussian prior, or None for no prior."""
    if value is not None and not value > 0:
        raise ValueError(f"prior_scale must be positive, or None for no prior; got {value!r}")
