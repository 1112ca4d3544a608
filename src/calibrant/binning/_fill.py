"""Fill tables of claims with uniform bins, given bins, or bins computed from the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant._kernels import cell_sums, kernel
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import is_unit
from calibrant._typing import FloatArray, IntArray
from calibrant.binning._distinct import distinct_sums, sum_steps
from calibrant.binning._rules import BinRule, Bins, check_bin_rule, quantile_edges
from calibrant.binning._table import BinTable
from calibrant.notions import ClaimBlock, Claims


def bin_table(
    claims: Claims,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    rows_per_bin: int = 1,
) -> BinTable:
    """Sum all claims per bin.

    A claim with fewer than ``n_bins * rows_per_bin`` rows gets fewer quantile bins.

    Uniform bins need O(block) memory in addition to the table. Other bins need O(n) memory, because
    one claim is gathered at a time. The table of ``"unique"`` is as wide as the largest number of
    distinct scores of a claim.

    See Also
    --------
    calibrant.metrics.calibration_curve : Compute the table from labels and probabilities.
    """
    rule = check_bin_rule(bins, n_bins, strategy)
    if rule is not None:
        _check_claims(rule, claims)
        return _given_table(claims, rule)
    if strategy == "unique":
        claims.check_distinct("strategy='unique'")
    return _data_table(claims, n_bins, strategy, rows_per_bin)


def _data_table(claims: Claims, n_bins: int, strategy: str, rows_per_bin: int) -> BinTable:
    """Sums of one claim at a time, in bins computed from its scores."""
    edges, rows = [], []
    for claim in claims:
        values, total, hits = distinct_sums(claim.score, claim.outcome, claim.weight)
        n_filled = min(n_bins, max(1, int(claim.weight.sum() // rows_per_bin)))
        edges.append(_edges(values, total, n_filled, strategy))
        rows.append(_bin_sums(edges[-1], values, total, hits))
    bins = Bins(tuple(edges))
    # Claims may have different numbers of bins. Missing bins stay empty.
    sums = np.zeros((3, len(rows), bins.n_bins))
    for index, row in enumerate(rows):
        sums[:, index, : row.shape[1]] = row
    return BinTable(sums[0], sums[1], sums[2], claims.n_quantities, claims.n_labels, bins)


def cell_index(claims: Claims, block: ClaimBlock, bins: BinRule) -> IntArray:
    """Index ``claim * n_bins + bin`` of every score of a block, (m, J)."""
    if claims.n_claims == 1:
        return bins.assign(block.score)
    claim = claims.index(block)
    if bins.is_shared:
        return bins.assign(block.score) + claim * bins.n_bins
    place = np.empty(block.score.shape, dtype=np.intp)
    for j, score in enumerate(block.score.T):
        if claims.n_labels == 1:
            place[:, j] = bins.assign(score, claim[j])
            continue
        for index in np.flatnonzero(np.bincount(claim[:, j])).tolist():
            rows = np.flatnonzero(claim[:, j] == index)
            place[rows, j] = bins.assign(score[rows], index)
    return claim * bins.n_bins + place


def _given_table(claims: Claims, rule: BinRule) -> BinTable:
    """Sums of all claims in given bins, without gathering any claim."""
    n_cells = claims.n_claims * rule.n_bins
    find = kernel("column_cells", claims.n_rows * claims.n_quantities)
    # If all columns have the same uniform bins, summing per column is faster than per score.
    has_columns = claims.n_labels == 1 and claims.n_quantities > 1 and rule.width is not None

    def sums(block: ClaimBlock, weight: FloatArray) -> tuple[FloatArray, ...]:
        if not (has_columns and is_unit(weight)):
            cell = cell_index(claims, block, rule)
            return cell_sums(cell, block.score, block.hit, weight, n_cells)
        count, total = _column_sums(find, block.score, rule.n_bins)
        row, column = np.divmod(block.hit, claims.n_quantities)
        place = rule.assign(block.score[row, column]) + column * rule.n_bins
        return count, total, np.bincount(place, minlength=n_cells).astype(np.float64)

    at_least = 8 * n_cells  # each block fills a new table, so blocks must be larger than the table
    total = [part.reshape(-1, rule.n_bins) for part in claims.sum_over(sums, at_least=at_least)]
    return BinTable(total[0], total[1], total[2], claims.n_quantities, claims.n_labels, rule)


def _column_sums(
    find: Callable[[FloatArray, int], tuple[FloatArray, FloatArray]],
    score: FloatArray,
    n_bins: int,
) -> tuple[FloatArray, FloatArray]:
    """Numbers of rows and sums of scores per bin of every column, flattened.

    The columns are processed in parts that fit in the cache with their temporary arrays.
    """
    n_rows, n_columns = score.shape
    blocks = row_blocks(n_columns, n_rows, elements=READ_BLOCK)
    parts = [find(np.ascontiguousarray(score[:, columns]), n_bins) for columns in blocks]
    if len(parts) == 1:
        return parts[0][0].ravel(), parts[0][1].ravel()
    count, total = (np.concatenate(part) for part in zip(*parts, strict=True))
    return count.ravel(), total.ravel()


def _check_claims(rule: BinRule, claims: Claims) -> None:
    if isinstance(rule, Bins) and len(rule.edges) not in (1, claims.n_claims):
        raise ValueError(
            f"The bins were fitted for {len(rule.edges)} binary events, but the data have "
            f"{claims.n_claims} binary events. Pass notion= and classes= as in the fit of the bins."
        )


def _edges(values: FloatArray, total: FloatArray, n_bins: int, strategy: str) -> FloatArray:
    if not values.size:
        return np.array([1.0])
    return values if strategy == "unique" else quantile_edges(values, total, n_bins)


def _bin_sums(
    edges: FloatArray, values: FloatArray, total: FloatArray, hits: FloatArray
) -> FloatArray:
    """Sums per bin of weight, weighted score and weighted outcome, (3, n_bins)."""
    return np.stack([sum_steps(part, values, edges) for part in (total, total * values, hits)])
