"""Compute the guarantee of fitted bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.exceptions import TooFewRowsError
from calibrant.guarantees._bounds import (
    clopper_pearson,
    conditional_bound,
    expected_bound,
    marginal_bound,
    multinomial_radius,
)
from calibrant.guarantees._results import (
    BinInterval,
    CanonicalGuarantee,
    Guarantee,
    QuantityBounds,
)


@dataclass(frozen=True, eq=False)
class BinnedClaim:
    """Fitted bins of a claim.

    The fields are the name of the claim and the minimum number of rows per bin. For each bin, there
    are also the reported value and the numbers of rows and of positive outcomes.
    """

    name: str
    points_per_bin: int
    values: FloatArray
    counts: FloatArray
    hits: FloatArray

    @cached_property
    def reliable(self) -> IntArray:
        """Indices of bins with at least one row."""
        return np.flatnonzero(self.counts >= 1)

    @property
    def n_empty(self) -> int:
        """Number of bins without rows."""
        return self.values.size - self.reliable.size

    @property
    def is_covered(self) -> bool:
        """Whether there are bins, each with the two or more rows that the theorems require."""
        return self.points_per_bin > 1 and self.reliable.size > 0


class BinnedQuantity(NamedTuple):
    """Claims of a score column that the guarantee covers, and the number of rows.

    A column has a single claim, or one claim per label.
    """

    name: str
    n_samples: int
    claims: Sequence[BinnedClaim]


def tied_edges(n_tied: int) -> tuple[str, ...]:
    """Describe the limitation of the proofs if several rows share the score of an edge."""
    if not n_tied:
        return ()
    edges = "one edge is" if n_tied == 1 else f"{n_tied} edges are"
    return (
        f"bins with tied edges ({edges} shared by several rows, but the proofs assume distinct "
        "scores)",
    )


def check_deployed(is_out_of_fold: bool) -> None:
    """Raise if the bins were fitted on scores of models other than the model that predicts."""
    if is_out_of_fold:
        raise ValueError(
            "There is no guarantee, because this calibrator was fitted on out-of-fold scores, but "
            "another model or an average of models scores new cases. Fit the model first and "
            "calibrate it on held-out rows: CalibratedClassifier(FrozenEstimator(model), "
            "calibrator).fit(X_held_out, y_held_out)"
        )


def check_unweighted(is_weighted: bool) -> None:
    """Raise for weighted rows, which are not independent draws."""
    if is_weighted:
        raise ValueError(
            "There is no guarantee for weighted rows. Fit without sample_weight, or with weights "
            "of 1."
        )


def check_alpha(alpha: Any, n_quantities: int) -> FloatArray:
    """Check the probability of failure, which is one number or one number per score column."""
    levels = np.asarray(alpha, dtype=np.float64)
    if levels.ndim and levels.shape != (n_quantities,):
        raise ValueError(
            f"alpha must be one number, or {n_quantities} numbers (one per score column), got "
            f"{alpha!r}."
        )
    if not ((levels > 0).all() and levels.sum() < 1):
        raise ValueError(
            f"alpha must be between 0 and 1, and several values must sum to less than 1, got "
            f"{alpha!r}. For example, pass alpha=0.05."
        )
    return levels


def binning_guarantee(
    quantities: Sequence[BinnedQuantity],
    alpha: Any,
    delta: float,
    not_covered: tuple[str, ...] = (),
    not_proved: tuple[str, ...] = (),
    covers: tuple[str, ...] = ("predict_claims",),
) -> Guarantee:
    """Compute the guarantee of fitted bins, or raise ``TooFewRowsError`` if no claim has enough
    rows.

    If ``alpha`` is one number, the score columns that the guarantee covers share ``alpha`` evenly.
    """
    levels = check_alpha(alpha, len(quantities))
    is_covered = np.array([bool(quantity.claims) for quantity in quantities])
    covered = [quantity for quantity in quantities if quantity.claims]
    if not covered:
        raise TooFewRowsError(
            "There are too few rows for a guarantee, because no class has bins with at least two "
            "calibration rows. Pass more rows, or use fewer bins, such as "
            "HistogramBinning(n_bins=5)."
        )
    single = levels[is_covered] if levels.ndim else np.full(len(covered), levels)
    share = single if levels.ndim else single / len(covered)
    bounds = [
        _bounds(q, float(a), float(s), delta)
        for q, a, s in zip(covered, share, single, strict=True)
    ]
    return Guarantee(
        alpha=float(single.sum() if levels.ndim else levels),
        marginal=max(b.marginal for b in bounds),
        conditional=max(b.conditional for b in bounds),
        expected_ece=max(b.expected_ece for b in bounds),
        intervals=tuple(
            interval
            for q, b, s in zip(covered, bounds, single, strict=True)
            for interval in _intervals(q, b, float(s))
        ),
        quantities=tuple(bounds),
        not_covered=not_covered,
        not_proved=not_proved,
        covers=covers,
    )


def _bounds(quantity: BinnedQuantity, alpha: float, single: float, delta: float) -> QuantityBounds:
    counts = np.concatenate([claim.counts[claim.reliable] for claim in quantity.claims])
    # The theorems assume k points per bin. One point is the edge, and k - 1 remain. Ties and
    # equal-width bins may have fewer points, so k is computed from the counts.
    k = float(min(counts.min() + 1, *(claim.points_per_bin for claim in quantity.claims)))
    n_bins = max(quantity.n_samples / k, counts.size)
    return QuantityBounds(
        name=quantity.name,
        n_bins=counts.size,
        points_per_bin=k,
        alpha=alpha,
        marginal=marginal_bound(k, alpha, delta),
        conditional=conditional_bound(n_bins, k, alpha, delta),
        expected_ece=expected_bound(k, delta),
        marginal_single=marginal_bound(k, single, delta),
        conditional_single=conditional_bound(n_bins, k, single, delta),
    )


def _intervals(
    quantity: BinnedQuantity, bounds: QuantityBounds, single: float
) -> list[BinInterval]:
    intervals = []
    for claim in quantity.claims:
        bins = claim.reliable
        values, counts, hits = claim.values[bins], claim.counts[bins], claim.hits[bins]
        low, high = clopper_pearson(hits, counts, bounds.alpha / bounds.n_bins)
        columns = (values, counts, low, high, *clopper_pearson(hits, counts, single))
        intervals += [BinInterval(claim.name, *row) for row in np.column_stack(columns).tolist()]
    return intervals


def canonical_guarantee(
    bins: IntArray,
    counts: FloatArray,
    n_classes: int,
    alpha: float,
    not_covered: tuple[str, ...] = (),
    not_proved: tuple[str, ...] = (),
) -> CanonicalGuarantee:
    """Compute the guarantee of class frequencies in bins with ``counts`` rows, by a union bound."""
    check_alpha(alpha, 1)
    radius = multinomial_radius(counts, n_classes, alpha / counts.size)
    single = multinomial_radius(counts, n_classes, alpha)
    return CanonicalGuarantee(
        alpha,
        float(single.max()),
        float(radius.max()),
        bins,
        counts,
        radius,
        single,
        not_covered=not_covered,
        not_proved=not_proved,
    )
