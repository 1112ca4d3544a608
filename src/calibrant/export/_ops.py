"""The operations of programs.

Each operation has a formula, its constants, a rule for its number of columns, and a definition in
NumPy. Values are matrices with one row per case, and all operations work row by row. Every export
target implements each operation as one function. A test compares the lists of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._kernels import entries, top_labels
from calibrant._kernels.simplex import (
    centered,
    finite_logits,
    log_odds,
    log_sigmoids,
    log_softmax,
    row_max,
    row_sum,
    sigmoid,
    softmax,
)
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import shortened

Constants = Mapping[str, Any]
"""Constants of an operation by name: numbers, strings, or arrays."""

SIDES = ("left", "right")

_MATRICES = ("coef",)
_VECTORS = ("factor", "offset", "weights", "edges", "values", "x", "y", "centers", "heights")
_INTEGERS = ("columns",)


@dataclass(frozen=True)
class Op:
    """An operation, with its function ``evaluate(values, constants)`` and the width of its result.

    ``n_args`` is None if any number of arguments is allowed.
    """

    evaluate: Callable[[list[FloatArray], Constants], FloatArray]
    width: Callable[[list[int], Constants], int]
    constants: tuple[str, ...] = ()
    n_args: int | None = 1


def check_constants(op: str, constants: Constants) -> None:
    """Raise unless an operation has exactly its constants, finite and with the correct shape."""
    if set(constants) != set(OPS[op].constants):
        expected = ", ".join(OPS[op].constants) or "none"
        found = shortened([str(name)[:60] for name in constants]) or "none"
        raise ValueError(f"expected the constants {expected}, got {found}")
    for name, value in constants.items():
        if name not in ("side", "count"):
            _check_number(name, np.asarray(value))


def _check_number(name: str, value: AnyArray) -> None:
    n_axes = 2 if name in _MATRICES else int(name in (*_VECTORS, *_INTEGERS))
    kinds = "iu" if name in _INTEGERS else "fiu"
    if value.ndim != n_axes or value.dtype.kind not in kinds or not np.isfinite(value).all():
        what = ("a number", "a list of numbers", "a matrix")[n_axes]
        raise ValueError(f"{name} must be {what} without NaN and infinity")


def _same_width(widths: list[int], constants: Constants) -> int:
    return widths[0]


def _interval_width(widths: list[int], constants: Constants) -> int:
    if not (constants["low"] <= constants["high"] and constants.get("slack", 0.0) >= 0.0):
        raise ValueError(
            f"low must not exceed high, and slack must not be negative, got {dict(constants)}"
        )
    return widths[0]


def _divide_width(widths: list[int], constants: Constants) -> int:
    if constants["by"] == 0:
        raise ValueError("by must not be 0")
    return widths[0]


def _constant_width(widths: list[int], constants: Constants) -> int:
    if not len(constants["values"]):
        raise ValueError("values must not be empty")
    return len(constants["values"])


def _one_column(widths: list[int], constants: Constants) -> int:
    return 1


def _broadcast_width(widths: list[int], constants: Constants) -> int:
    """Raise unless the second argument has one column or as many columns as the first argument."""
    if widths[1] not in (1, widths[0]):
        raise ValueError(f"the second argument must have 1 or {widths[0]} columns, got {widths[1]}")
    return widths[0]


def _check_same(widths: list[int], constants: Constants) -> int:
    if len(set(widths)) != 1:
        raise ValueError(f"arguments must have the same number of columns, got {widths}")
    return widths[0]


def _mix_width(widths: list[int], constants: Constants) -> int:
    _check_length(constants, "weights", (len(widths),))
    return _check_same(widths, constants)


def _check_length(constants: Constants, name: str, allowed: tuple[int, ...]) -> None:
    shape = np.shape(constants[name])
    if len(shape) != 1 or shape[0] not in allowed:
        raise ValueError(f"{name} must have length {' or '.join(map(str, allowed))}, got {shape}")


def _affine_width(widths: list[int], constants: Constants) -> int:
    shape = np.shape(constants["coef"])
    if len(shape) != 2 or shape[1] != widths[0]:
        raise ValueError(f"coef must have {widths[0]} columns, got shape {shape}")
    _check_length(constants, "offset", (shape[0],))
    return int(shape[0])


def _finite_width(widths: list[int], constants: Constants) -> int:
    if not 0 < constants["eps"] < 1:
        raise ValueError(f"eps must lie between 0 and 1, got {constants['eps']}")
    return widths[0]


def _scale_width(widths: list[int], constants: Constants) -> int:
    for name in ("factor", "offset"):
        _check_length(constants, name, (1, widths[0]))
    return widths[0]


def _step_width(widths: list[int], constants: Constants) -> int:
    edges = np.asarray(constants["edges"])
    _check_length(constants, "values", (len(edges) + 1,))
    if constants["side"] not in SIDES or (np.diff(edges) < 0).any():
        raise ValueError("edges must be in increasing order, and side must be 'left' or 'right'")
    return widths[0]


def _interpolate_width(widths: list[int], constants: Constants) -> int:
    x = np.asarray(constants["x"])
    _check_length(constants, "y", (len(x),))
    if not len(x) or (np.diff(x) <= 0).any():
        raise ValueError("x must be strictly increasing")
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(segments(x, constants["y"])[2]).all():
            raise ValueError("the slopes between the points (x, y) must be finite")
    return widths[0]


def _bumps_width(widths: list[int], constants: Constants) -> int:
    _check_length(constants, "heights", (len(constants["centers"]),))
    if not len(constants["centers"]) or not constants["width"] > 0:
        raise ValueError("centers must not be empty, and width must be positive")
    return widths[0]


def _top_width(widths: list[int], constants: Constants) -> int:
    if type(constants["count"]) is not int or not 1 <= constants["count"] <= widths[0]:
        raise ValueError(
            f"count must be an integer between 1 and {widths[0]}, got {constants['count']!r}"
        )
    return int(constants["count"])


def _columns_width(widths: list[int], constants: Constants) -> int:
    columns = np.asarray(constants["columns"])
    if not len(columns) or columns.min() < 0 or columns.max() >= widths[0]:
        raise ValueError(
            f"columns must be numbers from 0 to {widths[0] - 1}, got {columns.tolist()!r:.80}"
        )
    return len(columns)


def _put_width(widths: list[int], constants: Constants) -> int:
    if widths[2] not in (1, widths[1]):
        raise ValueError(f"the third argument must have 1 or {widths[1]} columns, got {widths[2]}")
    return widths[0]


def _mix(values: list[FloatArray], c: Constants) -> FloatArray:
    total = np.full(values[0].shape, c["constant"])
    for weight, value in zip(c["weights"], values, strict=True):
        total += weight * value
    return total


def _normalize(values: list[FloatArray], c: Constants) -> FloatArray:
    total = values[0].sum(axis=1, keepdims=True)
    return np.divide(values[0], total, out=np.full(values[0].shape, c["empty"]), where=total > 0)


def _admit(values: list[FloatArray], c: Constants) -> FloatArray:
    x, low, high, slack = values[0], c["low"], c["high"], c["slack"]
    is_admitted = (x >= low - slack) & (x <= high + slack)  # false for NaN
    return np.where(is_admitted, np.clip(x, low, high), np.nan)


def _log_sum_exp(values: list[FloatArray], c: Constants) -> FloatArray:
    with np.errstate(invalid="ignore"):  # invalid rows may have inf - inf
        top = row_max(values[0])[:, None]
        return np.asarray(top + np.log(row_sum(np.exp(values[0] - top)))[:, None])


def _step(values: list[FloatArray], c: Constants) -> FloatArray:
    return np.asarray(c["values"])[np.searchsorted(c["edges"], values[0], side=c["side"])]


def _bumps(values: list[FloatArray], c: Constants) -> FloatArray:
    distance = (values[0][..., None] - np.asarray(c["centers"])) / c["width"]
    return np.exp(-0.5 * distance * distance) @ np.asarray(c["heights"])


def label_count(op: str, counts: list[int | None], width: int, constants: Constants) -> int | None:
    """Return the number of columns that the column numbers in a result may refer to.

    Returns None if the entries are not column numbers. ``counts`` contains the result of this
    function for each argument, and ``width`` is the number of columns of the first argument.
    """
    if op == "top":
        return width
    if op == "constant":
        values = np.asarray(constants["values"])
        is_label = (values >= 0).all() and (values == np.floor(values)).all()
        return int(values.max()) + 1 if is_label else None
    if op not in ("columns", "stack") or None in counts:
        return None
    return max(count for count in counts if count is not None)


def _as_labels(values: FloatArray) -> Any:
    return values.astype(np.intp)


def _put(values: list[FloatArray], c: Constants) -> FloatArray:
    out, labels = np.array(values[0]), _as_labels(values[1])
    np.put_along_axis(out, labels, np.broadcast_to(values[2], labels.shape), axis=1)
    return out


def segments(x: Any, y: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return start, height and slope of the pieces of a piecewise linear function.

    The pieces are before the first point, between the points, and after the last point.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    slope = np.diff(y) / np.diff(x)
    flat = np.zeros(1)
    return np.append(x[:1], x), np.append(y[:1], y), np.concatenate([flat, slope, flat])


OPS: dict[str, Op] = {
    # x_k if it is finite, else the minimum of log(eps sum_l exp(x_l)) and of all finite x_l
    "finite": Op(lambda v, c: finite_logits(v[0], c["eps"]), _finite_width, ("eps",)),
    # min(max(x, low), high)
    "clip": Op(lambda v, c: np.clip(v[0], c["low"], c["high"]), _interval_width, ("low", "high")),
    # min(max(x, low), high) if low - slack <= x <= high + slack, else missing (NaN or NULL)
    "admit": Op(_admit, _interval_width, ("low", "high", "slack")),
    # a if a is not missing, else b; b may have one column
    "coalesce": Op(lambda v, c: np.where(np.isnan(v[0]), v[1], v[0]), _broadcast_width, n_args=2),
    "log": Op(lambda v, c: np.log(v[0]), _same_width),
    # log(x / (1 - x)) for 0 < x < 1
    "log_odds": Op(lambda v, c: log_odds(v[0], 0.0), _same_width),
    # log(1 / (1 + exp(-x)))
    "log_expit": Op(lambda v, c: log_sigmoids(v[0])[0], _same_width),
    # 1 / (1 + exp(-x))
    "expit": Op(lambda v, c: sigmoid(v[0]), _same_width),
    # x / by, where by is a number
    "divide": Op(lambda v, c: v[0] / c["by"], _divide_width, ("by",)),
    # x_k factor_k + offset_k; factor and offset may be one number for all columns
    "scale": Op(
        lambda v, c: v[0] * np.asarray(c["factor"]) + np.asarray(c["offset"]),
        _scale_width,
        ("factor", "offset"),
    ),
    # sum_k coef_jk x_k + offset_j
    "affine": Op(
        lambda v, c: v[0] @ np.asarray(c["coef"]).T + np.asarray(c["offset"]),
        _affine_width,
        ("coef", "offset"),
    ),
    # x_k minus the mean of the row
    "center": Op(lambda v, c: centered(v[0]), _same_width),
    # exp(x_k) / sum_l exp(x_l)
    "softmax": Op(lambda v, c: softmax(v[0]), _same_width),
    # x_k - log(sum_l exp(x_l))
    "log_softmax": Op(lambda v, c: log_softmax(v[0]), _same_width),
    # log(sum_l exp(x_l)); missing if an entry is missing or inf, or if all entries are -inf
    "log_sum_exp": Op(_log_sum_exp, _one_column),
    # sum of the row
    "sum": Op(lambda v, c: v[0].sum(axis=1, keepdims=True), _one_column),
    # x_k / sum_l x_l; all entries are ``empty`` if the sum is 0
    "normalize": Op(_normalize, _same_width, ("empty",)),
    # a + b, a * b and a / b; b may have one column
    "add": Op(lambda v, c: v[0] + v[1], _broadcast_width, n_args=2),
    "multiply": Op(lambda v, c: v[0] * v[1], _broadcast_width, n_args=2),
    "quotient": Op(lambda v, c: v[0] / v[1], _broadcast_width, n_args=2),
    # constant + sum_i weights_i x_i
    "mix": Op(_mix, _mix_width, ("weights", "constant"), None),
    # values_j, where j is the number of edges < x ("left") or <= x ("right")
    "step": Op(_step, _step_width, ("edges", "values", "side")),
    # linear between the points (x_j, y_j), constant beyond them
    "interpolate": Op(lambda v, c: np.interp(v[0], c["x"], c["y"]), _interpolate_width, ("x", "y")),
    # sum_j heights_j exp(-(x - centers_j)^2 / (2 width^2))
    "bumps": Op(_bumps, _bumps_width, ("centers", "heights", "width")),
    # columns of the ``count`` largest entries, from the largest; ties go to the lowest column
    "top": Op(lambda v, c: top_labels(v[0], c["count"]).astype(float), _top_width, ("count",)),
    # the columns with the given numbers
    "columns": Op(lambda v, c: v[0][:, np.asarray(c["columns"])], _columns_width, ("columns",)),
    # the columns of all arguments, side by side
    "stack": Op(lambda v, c: np.hstack(v), lambda widths, c: sum(widths), n_args=None),
    # the same numbers in every row
    "constant": Op(
        lambda v, c: np.tile(np.asarray(c["values"], dtype=np.float64), (len(v[0]), 1)),
        _constant_width,
        ("values",),
    ),
    # in each row, the entries of a at the column indices in b
    "take": Op(lambda v, c: entries(v[0], _as_labels(v[1])), lambda w, c: w[1], n_args=2),
    # in each row, the entries of a, except that c replaces those at the column indices in b
    "put": Op(_put, _put_width, n_args=3),
}
