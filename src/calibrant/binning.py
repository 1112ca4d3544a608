"""Bins of scores, and tables of sums per bin that add up.

A bin rule puts a score of a claim into one of ``n_bins`` bins. `UniformBins` is the same for all
data; `Bins` holds upper edges per claim, made from the data (``"quantile"``, ``"unique"``) or taken
from a fitted calibrator. A `BinTable` holds the sums of a set of rows: tables of two sets, on the
same bins, add to the table of their union.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant._blocks import READ_ELEMENTS, ROUND_OFF, row_blocks
from calibrant._kernels import cell_sums, kernel, ordered_pairs
from calibrant._output.results import ShortRepr
from calibrant._simplex import is_unit
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import check_count, check_option
from calibrant.notions import ClaimBlock, Claims

__all__ = [
    "BinTable",
    "Bins",
    "HasBins",
    "UniformBins",
    "bin_table",
    "cell_index",
    "distinct_sums",
    "quantile_edges",
]

STRATEGIES = ("uniform", "quantile", "unique")
AGGREGATES = ("mean", "sum", "bin")


@dataclass(frozen=True)
class UniformBins:
    """``n_bins`` bins of equal width: score s goes to ``min(int(s * n_bins), n_bins - 1)``."""

    n_bins: int

    @property
    def is_shared(self) -> bool:
        """Whether all claims have the same bins."""
        return True

    @property
    def width(self) -> float | None:
        """Of every bin, where they are equally wide from 0 to 1."""
        return 1.0 / self.n_bins

    def assign(self, score: FloatArray, claim: int = 0) -> IntArray:
        """Bin of each score, computed in float64; that of every claim."""
        bins = (np.asarray(score, dtype=np.float64) * self.n_bins).astype(np.intp)
        return np.minimum(bins, self.n_bins - 1, out=bins)


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins by their upper edges, right-closed, one array of edges per claim.

    Bin b of a claim holds the scores in ``(edges[b - 1], edges[b]]``; the first has no lower limit
    and the last no upper one. One array of edges serves all claims.

    >>> Bins([np.array([0.2, 0.5, 1.0])]).assign(np.array([0.2, 0.3, 0.9]), 0)
    array([0, 1, 2])
    """

    edges: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        edges = tuple(np.asarray(e, dtype=np.float64) for e in self.edges)
        if not edges or any(
            e.ndim != 1 or not e.size or np.isnan(e).any() or (e[1:] < e[:-1]).any() for e in edges
        ):
            raise ValueError(
                "edges must be one or more increasing arrays of upper edges, one array per claim"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def n_bins(self) -> int:
        """The largest number of bins of a claim."""
        return max(e.size for e in self.edges)

    @property
    def is_shared(self) -> bool:
        """Whether all claims have the same bins."""
        return len(self.edges) == 1

    @property
    def width(self) -> float | None:
        """Of every bin, where they are equally wide from 0 to 1: not known of edges."""
        return None

    def edges_of(self, claim: int) -> FloatArray:
        """Upper edges of one claim."""
        return self.edges[0 if self.is_shared else claim]

    def assign(self, score: FloatArray, claim: int = 0) -> IntArray:
        """Bin of each score of one claim."""
        return place_scores(score, self.edges_of(claim))


def place_scores(score: FloatArray, edges: FloatArray) -> IntArray:
    """Bin of each score by the upper edges of right-closed bins."""
    return np.searchsorted(edges[:-1], score, side="left")


@runtime_checkable
class HasBins(Protocol):
    """A fitted calibrator on whose bins others can be judged."""

    @property
    def bins_(self) -> Bins: ...


BinRule = UniformBins | Bins


@dataclass(frozen=True, eq=False, repr=False)
class BinTable(ShortRepr):
    """Sums per (claim, bin): of weights, of scores and of outcomes, each of shape (n_claims,
    n_bins).

    ``n_quantities * n_labels`` is the number of claims; ``weight[c, b]`` is 0 where nothing fell.
    """

    weight: FloatArray
    score: FloatArray
    outcome: FloatArray
    n_quantities: int
    n_labels: int
    bins: BinRule = field(repr=False)

    @property
    def n_claims(self) -> int:
        return self.weight.shape[0]

    @property
    def n_bins(self) -> int:
        return self.weight.shape[1]

    @property
    def mean_score(self) -> FloatArray:
        """Mean score per cell; NaN where empty."""
        return _ratio(self.score, self.weight)

    @property
    def mean_outcome(self) -> FloatArray:
        """Frequency of the outcome per cell; NaN where empty."""
        return _ratio(self.outcome, self.weight)

    @property
    def gap(self) -> FloatArray:
        """``|mean outcome - mean score|`` per cell; 0 where empty."""
        return np.abs(_ratio(self.outcome - self.score, self.weight, empty=0.0))

    @property
    def claim_weight(self) -> FloatArray:
        """Rows behind each claim, (n_claims,)."""
        return self.weight.sum(axis=1)

    @property
    def quantity_weight(self) -> FloatArray:
        """Rows behind each claim's quantity, (n_claims,)."""
        per_quantity = self.claim_weight.reshape(self.n_quantities, self.n_labels).sum(axis=1)
        return np.repeat(per_quantity, self.n_labels)

    @property
    def share(self) -> FloatArray:
        """``v_c w_cb`` of each cell, its part of the data; they sum to one."""
        return self.weight / self.quantity_weight[:, None] / self.n_quantities

    @property
    def claim_errors(self) -> FloatArray:
        """Mean gap of each claim among its own rows, (n_claims,); 0 where it has none."""
        return _ratio(self._claim_gaps, self.claim_weight, empty=0.0)

    @property
    def worst_first(self) -> IntArray:
        """Claims by the part of the error that they make up, the largest first."""
        return np.argsort(-self._claim_gaps, kind="stable")

    @property
    def pooled_gap(self) -> FloatArray:
        """Mean gap of each bin over its claims, weighted by rows, (n_bins,); NaN where empty."""
        return _ratio((self.weight * self.gap).sum(axis=0), self.weight.sum(axis=0))

    @property
    def debiased_square(self) -> FloatArray:
        """Per claim: sum over bins of rows times (squared gap - variance of the mean outcome).

        Bins of fewer than two rows are not counted (Kumar et al. 2019, arXiv:1909.10155).
        """
        enough = self.weight >= 2
        rate = np.where(enough, self.mean_outcome, 0.0)
        variance = rate * (1 - rate) / np.where(enough, self.weight - 1, 1.0)
        return np.where(enough, self.weight * (self.gap**2 - variance), 0.0).sum(axis=1)

    @property
    def counted_weight(self) -> FloatArray:
        """Rows behind each claim in bins of two rows or more, as debiasing needs, (n_claims,)."""
        return np.where(self.weight >= 2, self.weight, 0.0).sum(axis=1)

    @property
    def _claim_gaps(self) -> FloatArray:
        return (self.weight * self.gap).sum(axis=1)

    def error(self, *, norm: float = 1, debias: bool = False, aggregate: str = "mean") -> float:
        """The calibration error of the table; see `calibrant.metrics.expected_calibration_error`.

        >>> sums = np.array([[4.0]]), np.array([[3.2]]), np.array([[3.0]])
        >>> round(BinTable(*sums, 1, 1, UniformBins(1)).error(), 3)
        0.05
        """
        _check_error(norm, debias, aggregate)
        if debias:
            return self._debiased_error(aggregate)
        if aggregate == "bin":
            return self._error_of_bins(norm)
        if np.isinf(norm):
            return float(self.gap.max())
        power = (self.weight * self.gap**norm).sum(axis=1)
        # v_c times 1 / (rows of the claim) is 1 / (rows of the quantity), whether or not the
        # quantity is split by label.
        total = float((power / self.quantity_weight).sum())
        return float((total if aggregate == "sum" else total / self.n_quantities) ** (1 / norm))

    def errors(self, outcomes: AnyArray, **options: Any) -> FloatArray:
        """`error` for each of many outcome sums, (m, n_claims, n_bins), on the same scores."""
        aggregate = options.get("aggregate", "mean")
        if options.get("norm", 1) != 1 or options.get("debias") or aggregate == "bin":
            return np.array([replace(self, outcome=one).error(**options) for one in outcomes])
        _check_error(1, False, aggregate)
        # Of the absolute gap times its weight the weight cancels; empty cells have no sums.
        gaps = np.abs(outcomes - self.score).sum(axis=2) @ (1.0 / self.quantity_weight)
        return gaps if aggregate == "sum" else gaps / self.n_quantities

    def _debiased_error(self, aggregate: str) -> float:
        """The root of the debiased squares over the rows that are counted; NaN where none are."""
        shape = self.n_quantities, self.n_labels
        square = np.maximum(self.debiased_square, 0.0).reshape(shape).sum(axis=1)
        counted = self.counted_weight.reshape(shape).sum(axis=1)
        each = square[counted > 0] / counted[counted > 0]
        if not each.size:
            return float("nan")
        return float(each.sum() if aggregate == "sum" else each.mean()) ** 0.5

    def _error_of_bins(self, norm: float) -> float:
        rows, gap = self.weight.sum(axis=0), np.nan_to_num(self.pooled_gap)
        if np.isinf(norm):
            return float(gap.max())
        return float((rows / rows.sum() @ gap**norm) ** (1 / norm))

    def __add__(self, other: BinTable) -> BinTable:
        if not isinstance(other, BinTable):
            return NotImplemented
        if self.weight.shape != other.weight.shape or not _same_bins(self.bins, other.bins):
            raise ValueError("tables add only if they have the same claims and the same bins")
        return BinTable(
            self.weight + other.weight,
            self.score + other.score,
            self.outcome + other.outcome,
            self.n_quantities,
            self.n_labels,
            self.bins,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON; empty cells are None."""
        return {
            "n_claims": self.n_claims,
            "n_bins": self.n_bins,
            "weight": self.weight.tolist(),
            "mean_score": _none_for_nan(self.mean_score),
            "mean_outcome": _none_for_nan(self.mean_outcome),
        }


def _check_error(norm: float, debias: bool, aggregate: str) -> None:
    check_option(aggregate, "aggregate", AGGREGATES)
    if isinstance(norm, str) or not norm >= 1:
        raise ValueError(
            f"norm must be a number of at least 1, or inf; got {norm!r} (1 for l1, 2 for l2, "
            "np.inf for the largest gap)"
        )
    if debias and (norm != 2 or aggregate == "bin"):
        raise ValueError(
            f"debias=True is defined for norm=2 with aggregate='mean' or 'sum'; got norm={norm}, "
            f"aggregate={aggregate!r}"
        )


def _ratio(a: FloatArray, b: FloatArray, empty: float = np.nan) -> FloatArray:
    return np.divide(a, b, out=np.full_like(b, empty), where=b > 0)


def _none_for_nan(values: FloatArray) -> list[list[float | None]]:
    return [[None if np.isnan(v) else float(v) for v in row] for row in values]


def _same_bins(a: BinRule, b: BinRule) -> bool:
    if isinstance(a, Bins) and isinstance(b, Bins):
        return len(a.edges) == len(b.edges) and all(
            np.array_equal(x, y) for x, y in zip(a.edges, b.edges, strict=True)
        )
    return a == b


def distinct_sums(
    score: FloatArray, outcome: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct scores in increasing order, with the sums of weight and of weight times outcome at
    each.

    Rows of weight zero are absent. This is how every method that orders scores treats ties.
    """
    if is_unit(weight) and score.size and score.min() >= 0.0 and score.max() <= 1.0:
        return pair_sums(*ordered_pairs(score, outcome))
    score, outcome, weight = present_rows(score, outcome, weight)
    order = np.argsort(score, kind="stable")
    values, starts = _steps(score[order])
    if not values.size:
        return values, np.empty(0), np.empty(0)
    total, hits = weight[order], (weight * outcome)[order]
    if values.size == total.size:
        return values, total, hits
    return values, np.add.reduceat(total, starts), np.add.reduceat(hits, starts)


def interpolated(score: FloatArray, places: FloatArray, values: FloatArray) -> FloatArray:
    """Values on the lines between places, at scores; next to each other below 1e-300, two places
    have a line of infinite slope, and the value of one of them is as good.
    """
    found = np.interp(score, places, values)
    is_lost = ~np.isfinite(found)
    if is_lost.any():
        found[is_lost] = values[np.searchsorted(places, score[is_lost])]
    return found


def present_rows(
    score: FloatArray, outcome: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows of positive weight; of several claims the last axis is that of the rows."""
    if is_unit(weight) or weight.all():
        return score, outcome, weight
    present = weight > 0
    return score[..., present], outcome[..., present], weight[present]


def _steps(score: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct values of ordered scores, and where each begins."""
    is_new = np.empty(score.size, dtype=bool)
    is_new[:1] = True
    np.not_equal(score[1:], score[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    return (score if starts.size == score.size else score[starts]), starts


def pair_sums(score: FloatArray, hit: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`distinct_sums` of ordered scores that count one each."""
    values, starts = _steps(score)
    if values.size == score.size:
        return values, np.ones(score.size), hit.astype(np.float64)
    ends = np.append(starts[1:], score.size)
    hits = np.add.reduceat(hit, starts)
    return values, (ends - starts).astype(np.float64), hits.astype(np.float64)


def quantile_edges(values: FloatArray, total: FloatArray, n_bins: int) -> FloatArray:
    """Upper edges of ``n_bins`` bins of equal mass of distinct ``values`` with weights ``total``.

    Value v goes to bin ``ceil(n_bins F(v)) - 1``, F the share of the weight at or below v: ties
    never split, and a bin may stay empty.
    """
    last = quantile_ends(np.cumsum(total) / total.sum(), n_bins)
    return np.where(last >= 0, values[np.maximum(last, 0)], -np.inf)


def quantile_ends(share: FloatArray, n_bins: int) -> IntArray:
    """Index of the last distinct value up to the end of each bin, -1 where there is none; ``share``
    is F at each value.

    ``ceil(n_bins F) - 1 <= b`` means ``F <= (b + 1) / n_bins``: a binary search for each bin.
    """
    return np.searchsorted(share, np.arange(1, n_bins + 1) / n_bins + ROUND_OFF, side="right") - 1


def check_bin_rule(bins: Any, n_bins: int, strategy: str) -> BinRule | None:
    """The rule that is fixed beforehand, or None where the data must make it."""
    if isinstance(bins, UniformBins | Bins):
        return bins
    if isinstance(bins, HasBins):
        return bins.bins_
    if bins is not None:
        raise TypeError(
            f"bins must be a fitted binning calibrator or a Bins object, got {type(bins).__name__}"
        )
    check_count(n_bins, "n_bins")
    check_option(strategy, "strategy", STRATEGIES)
    return UniformBins(int(n_bins)) if strategy == "uniform" else None


def bin_table(
    claims: Claims,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    rows_per_bin: int = 1,
) -> BinTable:
    """Sums of all claims per bin.

    Bins of equal mass are fewer for a claim that has not ``rows_per_bin`` rows for each.

    Uniform bins need O(block) memory beside the table. Others gather one claim at a time, O(n);
    ``"unique"`` makes a table as wide as the largest number of distinct scores of a claim.
    """
    rule = check_bin_rule(bins, n_bins, strategy)
    if isinstance(rule, UniformBins):
        return _uniform_table(claims, rule)
    if rule is not None:
        _check_claims(rule, claims)
    if claims.is_chunked and rule is not None:
        return _given_table(claims, rule)
    if claims.is_chunked and strategy == "unique":
        raise TypeError(
            "strategy='unique' needs the distinct scores of all rows, and rows that come in parts, "
            "such as dask arrays, are summarised: use 'uniform' or 'quantile'"
        )
    edges, rows = [], []
    for claim in claims:
        values, total, hits = distinct_sums(claim.score, claim.outcome, claim.weight)
        most = min(n_bins, max(1, int(claim.weight.sum() // rows_per_bin)))
        own = rule.edges_of(claim.index) if rule else _edges(values, total, most, strategy)
        edges.append(own)
        rows.append(_bin_sums(own, values, total, hits))
    bins_of_data = rule or Bins(tuple(edges))
    sums = np.zeros((3, len(rows), bins_of_data.n_bins))
    for index, row in enumerate(rows):
        sums[:, index, : row.shape[1]] = row
    return BinTable(sums[0], sums[1], sums[2], claims.n_quantities, claims.n_labels, bins_of_data)


def cell_index(claims: Claims, block: ClaimBlock, bins: BinRule) -> IntArray:
    """``claim * n_bins + bin`` of every score of a block, (m, J)."""
    claim = np.broadcast_to(claims.index(block), block.score.shape)
    if bins.is_shared:
        return claim * bins.n_bins + bins.assign(block.score)
    place = np.empty(block.score.shape, dtype=np.intp)
    for j, score in enumerate(block.score.T):
        for index in np.unique(claim[:, j]).tolist():
            rows = claim[:, j] == index
            place[rows, j] = bins.assign(score[rows], index)
    return claim * bins.n_bins + place


def _uniform_table(claims: Claims, rule: UniformBins) -> BinTable:
    n_cells = claims.n_claims * rule.n_bins

    find = kernel("column_cells", claims.n_rows * claims.n_quantities)

    def sums(block: ClaimBlock, weight: FloatArray) -> tuple[FloatArray, ...]:
        if claims.n_labels == 1 and claims.n_quantities > 1 and is_unit(weight):
            count, total = _column_sums(find, block.score, rule.n_bins)
            row, column = np.divmod(block.hit, claims.n_quantities)
            place = rule.assign(block.score[row, column]) + column * rule.n_bins
            return count, total, np.bincount(place, minlength=n_cells).astype(np.float64)
        cell = rule.assign(block.score)
        if claims.n_claims > 1:
            cell += claims.index(block) * rule.n_bins
        return cell_sums(cell, block.score, block.hit, weight, n_cells)

    at_least = 8 * n_cells  # a block must outweigh the table that it fills
    total = [part.reshape(-1, rule.n_bins) for part in claims.sum_over(sums, at_least=at_least)]
    return BinTable(total[0], total[1], total[2], claims.n_quantities, claims.n_labels, rule)


def _column_sums(
    find: Callable[[FloatArray, int], tuple[FloatArray, FloatArray]],
    score: FloatArray,
    n_bins: int,
) -> tuple[FloatArray, FloatArray]:
    """Rows and sums of scores of the bins of every column, flat; of so many columns at a time that
    what is made of them stays in the cache.
    """
    n_rows, n_columns = score.shape
    blocks = row_blocks(n_columns, n_rows, elements=READ_ELEMENTS)
    parts = [find(np.ascontiguousarray(score[:, columns]), n_bins) for columns in blocks]
    if len(parts) == 1:
        return parts[0][0].ravel(), parts[0][1].ravel()
    count, total = (np.concatenate(part) for part in zip(*parts, strict=True))
    return count.ravel(), total.ravel()


def _given_table(claims: Claims, rule: Bins) -> BinTable:
    """Sums of all claims in given bins, without gathering any."""
    n_cells = claims.n_claims * rule.n_bins

    def sums(block: ClaimBlock, weight: FloatArray) -> FloatArray:
        cell = cell_index(claims, block, rule)
        return np.array(cell_sums(cell, block.score, block.hit, weight, n_cells))

    total = claims.sum_over(sums, at_least=8 * n_cells).reshape(3, claims.n_claims, rule.n_bins)
    return BinTable(total[0], total[1], total[2], claims.n_quantities, claims.n_labels, rule)


def _check_claims(rule: Bins, claims: Claims) -> None:
    if len(rule.edges) not in (1, claims.n_claims):
        raise ValueError(
            f"the bins are those of {len(rule.edges)} claims, the data make {claims.n_claims}: "
            "use the notion and the number of classes that the bins were made with"
        )


def _edges(values: FloatArray, total: FloatArray, n_bins: int, strategy: str) -> FloatArray:
    if not values.size:
        return np.array([1.0])
    return values if strategy == "unique" else quantile_edges(values, total, n_bins)


def _bin_sums(
    edges: FloatArray, values: FloatArray, total: FloatArray, hits: FloatArray
) -> FloatArray:
    """Sums per bin of the weight, of weight times score and of weight times outcome, (3, n_bins),
    of distinct scores.
    """
    return np.stack([sum_steps(part, values, edges) for part in (total, total * values, hits)])


def sum_steps(part: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Sum of ``part`` over the increasing ``values`` of each right-closed bin, by its edges."""
    starts = np.append(0, np.searchsorted(values, edges[:-1], side="right"))
    # The zero at the end is where bins without values begin that come last.
    sums = np.add.reduceat(np.append(part, 0.0), starts)
    # Of other bins without values reduceat gives the next one.
    sums[:-1][starts[1:] == starts[:-1]] = 0.0
    return sums


def __dir__() -> list[str]:
    return __all__
