"""Bin rules: which scores of a claim belong to the same bin."""

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
    """A fitted calibrator whose bins can be used to evaluate others."""

    @property
    def bins_(self) -> Bins: ...


BinRule = UniformBins | Bins


def have_same_edges(a: BinRule, b: BinRule) -> bool:
    if isinstance(a, Bins) and isinstance(b, Bins):
        return len(a.edges) == len(b.edges) and all(
            np.array_equal(x, y) for x, y in zip(a.edges, b.edges, strict=True)
        )
    return a == b


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


def quantile_edges(values: FloatArray, total: FloatArray, n_bins: int) -> FloatArray:
    """Upper edges of ``n_bins`` quantile bins of distinct ``values`` with weights ``total``.

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
