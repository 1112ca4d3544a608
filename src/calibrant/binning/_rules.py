"""Bin rules, which assign the scores of a claim to bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._typing import FloatArray, IntArray
from calibrant._validation import check_count, check_option

STRATEGIES = ("uniform", "quantile", "unique")


@dataclass(frozen=True)
class UniformBins:
    """``n_bins`` equal-width bins: score s is in bin ``min(int(s * n_bins), n_bins - 1)``.

    See Also
    --------
    Bins : Bins with given edges.
    """

    n_bins: int

    @property
    def is_shared(self) -> bool:
        """Whether all claims have the same bins."""
        return True

    @property
    def width(self) -> float | None:
        """Width of every bin."""
        return 1.0 / self.n_bins

    def assign(self, score: FloatArray, claim: int = 0) -> IntArray:
        """Return the bin of each score, computed in float64.

        The bins are the same for every claim.
        """
        # Compute in float64, because a product in float32 could round a score up to the next bin.
        bins = (np.asarray(score, dtype=np.float64) * self.n_bins).astype(np.intp)
        return np.minimum(bins, self.n_bins - 1, out=bins)


@dataclass(frozen=True, eq=False)
class Bins:
    """Right-closed bins with given upper edges, one array of edges per claim.

    Bin b of a claim contains the scores in ``(edges[b - 1], edges[b]]``. The first bin has no lower
    limit and the last no upper limit. A single array of edges is used for all claims.

    See Also
    --------
    UniformBins : Equal-width bins.

    Examples
    --------
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
                "edges must be one or more increasing arrays of upper edges, one array per binary "
                "problem. For example, pass Bins([np.array([0.2, 0.5, 1.0])])."
            )
        object.__setattr__(self, "edges", edges)

    @property
    def n_bins(self) -> int:
        """Largest number of bins of a claim."""
        return max(e.size for e in self.edges)

    @property
    def is_shared(self) -> bool:
        """Whether all claims have the same bins."""
        return len(self.edges) == 1

    @property
    def width(self) -> float | None:
        """None, because bins with given edges have different widths."""
        return None

    def edges_of(self, claim: int) -> FloatArray:
        """Return the upper edges of one claim."""
        return self.edges[0 if self.is_shared else claim]

    def assign(self, score: FloatArray, claim: int = 0) -> IntArray:
        """Return the bin of each score of one claim."""
        return place_scores(score, self.edges_of(claim))


def place_scores(score: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin of each score, given the upper edges of right-closed bins."""
    # The search omits the last edge, so scores above it are in the last bin.
    return np.searchsorted(edges[:-1], score, side="left")


@runtime_checkable
class HasBins(Protocol):
    """A fitted calibrator whose bins can be used to evaluate other predictions."""

    @property
    def bins_(self) -> Bins: ...


@dataclass(frozen=True, eq=False)
class MergedBins:
    """Bins of another rule, some of which are merged with their neighbors.

    Each row of ``group`` contains the merged bin of each original bin of one claim.
    """

    base: UniformBins | Bins
    group: IntArray

    @property
    def n_bins(self) -> int:
        """Largest number of merged bins of a claim."""
        return int(self.group.max(initial=0)) + 1

    @property
    def is_shared(self) -> bool:
        """Whether all claims have the same bins."""
        return False

    @property
    def width(self) -> float | None:
        """None, because merged bins have different widths."""
        return None

    def assign(self, score: FloatArray, claim: int = 0) -> IntArray:
        """Return the merged bin of each score of one claim."""
        return self.group[claim][self.base.assign(score, claim)]


BinRule = UniformBins | Bins | MergedBins


def have_same_edges(a: BinRule, b: BinRule) -> bool:
    if isinstance(a, Bins) and isinstance(b, Bins):
        return len(a.edges) == len(b.edges) and all(
            np.array_equal(x, y) for x, y in zip(a.edges, b.edges, strict=True)
        )
    return a == b


def check_bin_rule(bins: Any, n_bins: int, strategy: str) -> BinRule | None:
    """Return the rule if it does not depend on the data, otherwise None."""
    if isinstance(bins, UniformBins | Bins):
        return bins
    if isinstance(bins, HasBins):
        return bins.bins_
    if bins is not None:
        raise TypeError(
            f"bins must be a fitted binning calibrator or a Bins object, got "
            f"{type(bins).__name__}. For a number of bins, pass n_bins=15."
        )
    check_count(n_bins, "n_bins")
    check_option(strategy, "strategy", STRATEGIES)
    return UniformBins(int(n_bins)) if strategy == "uniform" else None


def quantile_edges(values: FloatArray, total: FloatArray, n_bins: int) -> FloatArray:
    """Upper edges of ``n_bins`` quantile bins of distinct ``values`` with weights ``total``.

    Value v is in bin ``ceil(n_bins F(v)) - 1``, where F is the share of the weight at or below v.
    Ties are never split, and a bin may be empty.
    """
    last = quantile_ends(np.cumsum(total) / total.sum(), n_bins)
    return np.where(last >= 0, values[np.maximum(last, 0)], -np.inf)


def quantile_ends(share: FloatArray, n_bins: int) -> IntArray:
    """Return the index of the last distinct value of each bin, or -1. ``share`` is F.

    ``ceil(n_bins F) - 1 <= b`` is equivalent to ``F <= (b + 1) / n_bins``, so each bin takes one
    binary search.
    """
    return np.searchsorted(share, np.arange(1, n_bins + 1) / n_bins + ROUND_OFF, side="right") - 1
