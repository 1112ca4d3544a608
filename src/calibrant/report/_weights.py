"""Weights of a report: integer weights become copies of rows, so that rows can be drawn and
counted; other weights stay as they are.
"""

from __future__ import annotations

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels.simplex import is_unit
from calibrant._validation import check_row_counts, check_weight

_MOST_COPIES = 2**20
"""Copies that integer weights may require, or four times the number of rows."""


def has_weights(sample: Sample) -> bool:
    """Whether any row of a sample counts for more or less than one."""
    return sample.is_weighted or sample.n_rows < sample.shape[0]


def copy_rows(rows: ArraySample) -> ArraySample:
    """Rows of integer weight as copies, with their columns; as they are if weights are not
    integers, or too large.
    """
    weight = rows.weight
    if is_unit(weight):
        return rows
    check_row_counts(weight, "a report")
    is_whole = bool((weight == np.floor(weight)).all())
    if not is_whole or weight.sum() > max(_MOST_COPIES, 4 * len(weight)):
        return rows
    counts = weight.astype(np.intp)
    places = np.repeat(np.arange(len(weight)), counts)
    copies = rows.subset(places, check_weight(None, len(places)))
    copies.columns = tuple(np.repeat(column, counts) for column in rows.columns)
    return copies


def weight_sentences(sample: Sample, *, is_copied: bool) -> tuple[str, ...]:
    """How the weights of a sample are used, and what is left out if its rows are not copied."""
    if not has_weights(sample):
        return ()
    copies = (
        f"Rows have weights, which are numbers of copies and come to {sample.total:,.6g} rows of "
        f"{sample.n_rows:,}: of importance or survey weights intervals are too short. "
        "No guarantee is given, because its proof counts rows."
    )
    if is_copied:
        return (copies,)
    return (
        copies,
        "The weights are not whole numbers, too many copies, or weights of chunked rows: accuracy, "
        "log-loss and Brier score have no interval and the kernel test is left out, because these "
        "draw rows one by one.",
    )
