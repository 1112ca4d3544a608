"""Weights of a report: whole ones become copies of rows, so that what draws or counts rows can be
had; others stay what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant._validation import Predictions, check_row_counts, check_weight
from calibrant.metrics._groups import as_columns

_MOST_COPIES = 2**20
"""Rows that may be made of whole weights, or four times the rows that there are."""


def is_weighted(weight: FloatArray) -> bool:
    """Whether any row counts for more or less than one."""
    return not bool((weight == 1).all())


def with_copies(data: Predictions, by: Any = None) -> tuple[Predictions, Any]:
    """Predictions, and groups where there are any, with rows of whole weights copied; as they are
    where weights are not whole, or too large.
    """
    weight = data.weight
    if not is_weighted(weight):
        return data, by
    check_row_counts(weight, "a report")
    is_whole = bool((weight == np.floor(weight)).all())
    if not is_whole or weight.sum() > max(_MOST_COPIES, 4 * len(weight)):
        return data, by
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
    groups = None if by is None else {k: part[rows] for k, part in as_columns(by).items()}
    copied = Predictions(
        data.scores[rows], data.y[rows], check_weight(None, len(rows)), data.classes
    )
    return copied, groups


def weight_sentences(given: FloatArray, used: FloatArray) -> tuple[str, ...]:
    """How weights were taken, and what is left out for them."""
    if not is_weighted(given):
        return ()
    said = (
        f"Rows have weights, which are numbers of copies and come to {given.sum():,.6g} rows of "
        f"{np.count_nonzero(given):,}: of importance or survey weights intervals are too short. "
        "No guarantee is given, because its proof counts rows."
    )
    if not is_weighted(used):
        return (said,)
    return (
        said,
        "The weights are not whole numbers, or too many copies: accuracy, log-loss and Brier score "
        "have no interval and the kernel test is left out, because these draw rows one by one.",
    )
