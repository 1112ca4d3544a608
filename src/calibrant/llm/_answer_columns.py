"""Transform confidences and other features of answers to columns for a logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._kernels.simplex import log_odds
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import as_array
from calibrant.llm._run import Run, Runs
from calibrant.llm._stated import parse_confidence

_STATED_FLOOR = 0.005
"""Stated confidences are clipped to half a percent, the usual precision of statements. Without
clipping, "100%" would have infinite log-odds."""

_AGREEMENT_FLOOR = 0.02
"""Agreements of samples are clipped as if there were 50 samples."""


def answer_frame(X: Any) -> tuple[Any, AnyArray | None]:
    """Return a frame or dictionary of columns, and correctness if it is part of a run.

    Runs become one frame with the column ``task``.
    """
    if isinstance(X, Run):
        return {**X.features, "confidence": X.confidence}, X.correct
    if not isinstance(X, Runs):
        return X, None
    X.one_source("calibrator")
    runs = X.evaluated
    return _join_features(runs), np.concatenate([run.correct for run in runs.values()])


def _join_features(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Return the features, confidences and task names of all runs as columns."""
    names = {name for run in runs.values() for name in run.features}
    columns: dict[str, Any] = {
        name: np.concatenate(
            [run.features.get(name, np.full(len(run), np.nan)) for run in runs.values()]
        )
        for name in sorted(names)
    }
    columns["confidence"] = np.concatenate([run.confidence for run in runs.values()])
    columns["task"] = np.repeat(list(runs), [len(run) for run in runs.values()])
    return columns


def answer_columns(frame: Any, names: Sequence[str], *, percent: bool) -> FloatArray:
    """Return transformed features, (n, d). A missing feature is NaN."""
    columns = [_transform(name, column_of(frame, name), percent=percent) for name in names]
    lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"Columns must have the same number of rows, got {lengths}.")
    return np.column_stack(columns)


def column_of(frame: Any, name: str) -> Any:
    """Return a column of a data frame or dictionary."""
    is_frame = isinstance(frame, Mapping) or hasattr(frame, "columns")
    names = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    if not is_frame or name not in names:
        raise ValueError(
            f"X has the columns {names}, but column {name!r} is needed. Pass a data frame, a "
            f"dictionary of columns or llm.Runs with the column {name!r}."
        )
    return frame[name]


def _transform(name: str, values: Any, *, percent: bool) -> FloatArray:
    if name in ("confidence", "agreement"):
        floor = _STATED_FLOOR if name == "confidence" else _AGREEMENT_FLOOR
        shares = _shares(name, values, percent=percent)
        return np.where(np.isnan(shares), np.nan, log_odds(np.nan_to_num(shares, nan=0.5), floor))
    numbers = _numbers(name, values)
    if name == "length":
        if (numbers < 0).any():
            raise ValueError("Column 'length' has negative values. Pass numbers of characters.")
        return np.log1p(numbers)
    return numbers


def _shares(name: str, values: Any, *, percent: bool) -> FloatArray:
    """Return numbers between 0 and 1. Strings are parsed, and become NaN if parsing fails."""
    array = as_array(values)
    if array.dtype.kind in "OSU":
        parsed = [parse_confidence(value, percent=percent) for value in array.tolist()]
        return np.array([np.nan if value is None else value for value in parsed], dtype=float)
    numbers = array.astype(np.float64) / (100 if percent and name == "confidence" else 1)
    is_wrong = (numbers < 0) | (numbers > 1)
    if is_wrong.any():
        raise ValueError(
            f"Column {name!r} must be between 0 and 1, got {array[is_wrong][0]}. Pass "
            "percent=True for percentages."
        )
    return numbers


def _numbers(name: str, values: Any) -> FloatArray:
    try:
        numbers = as_array(values).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Column {name!r} must contain numbers. Convert the column, or remove {name!r} from "
            "features."
        ) from None
    if np.isinf(numbers).any():
        raise ValueError(f"Column {name!r} has infinite values. Replace infinite values by NaN.")
    return numbers
