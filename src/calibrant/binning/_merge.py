"""Merge neighboring bins with few rows, so every point of a diagram has enough rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.binning._rules import Bins, MergedBins, UniformBins
from calibrant.binning._table import BinTable

_LEAST_ROWS = 10.0
"""Minimum number of rows of a bin that is not merged. The frequency of ten rows has a standard
error of up to 0.16, about the width of two default bins."""


def least_rows(rows: FloatArray) -> FloatArray:
    """Minimum rows of a bin that is not merged: the square root of all rows, and at least 10.

    Small data sets therefore get fewer bins. In large data sets, the minimum is a small share of
    the rows, so few bins are merged.
    """
    return np.maximum(_LEAST_ROWS, np.sqrt(rows))


def merge_small_bins(table: BinTable) -> BinTable:
    """Merge neighboring bins of each claim that have fewer than `least_rows`.

    A bin with enough rows is never merged, because its rows would dominate those of its neighbor. A
    small bin between two bins with enough rows therefore stays small.

    Examples
    --------
    >>> rows = np.array([[4.0, 0.0, 7.0, 50.0]])
    >>> table = BinTable(rows, 0.5 * rows, 0.4 * rows, 1, 1, UniformBins(4))
    >>> merge_small_bins(table).weight
    array([[11., 50.]])
    """
    assert isinstance(table.bins, UniformBins | Bins)
    least = least_rows(table.claim_weight)
    groups = [_groups(rows, few) for rows, few in zip(table.weight, least, strict=True)]
    bins = MergedBins(table.bins, np.array(groups))
    claim = np.repeat(np.arange(table.n_claims), table.n_bins)
    cell = claim * bins.n_bins + bins.group.ravel()
    weight, score, outcome = (
        np.bincount(cell, sums.ravel(), table.n_claims * bins.n_bins).reshape(table.n_claims, -1)
        for sums in (table.weight, table.score, table.outcome)
    )
    return replace(table, weight=weight, score=score, outcome=outcome, bins=bins)


def _groups(rows: FloatArray, least: float) -> IntArray:
    """The merged bin of each bin of one claim, in increasing order."""
    is_start = np.zeros(len(rows), dtype=bool)
    is_large = rows >= least
    is_start[is_large] = True
    # Split each run of small bins between large bins separately.
    edges = np.flatnonzero(np.diff(is_large, prepend=True, append=True))
    for first, stop in edges.reshape(-1, 2).tolist():
        is_start[first:stop] = _starts(rows[first:stop], least)
    # The bins before the first start are empty.
    return np.maximum(np.cumsum(is_start) - 1, 0)


def _starts(rows: FloatArray, least: float) -> BoolArray:
    """Mark the bins that start a merged bin in a run of small bins.

    The last merged bin contains the remaining rows.
    """
    starts = np.zeros(len(rows), dtype=bool)
    rows_left, total = float(rows.sum()), np.inf
    for b, count in enumerate(rows.tolist()):
        # A merged bin starts at a bin if the previous merged bin and the remaining bins have enough
        # rows.
        if count > 0 and total >= least and (rows_left >= least or not starts.any()):
            starts[b], total = True, 0.0
        total, rows_left = total + count, rows_left - count
    return starts
