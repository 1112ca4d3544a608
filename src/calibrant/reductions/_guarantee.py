"""Guarantee of a multiclass-to-binary reduction, from its fitted bins."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import shortened
from calibrant.binary.histogram import HistogramBinning, empty_bins
from calibrant.guarantees import (
    BinnedClaim,
    BinnedQuantity,
    Guarantee,
    binning_guarantee,
    tied_edges,
)
from calibrant.notions import Notion, class_text


class FittedBins(NamedTuple):
    """Fitted histogram binning of all claims, rows per claim, and claims with a pooled fit."""

    notion: Notion
    classes: AnyArray
    fitted: Sequence[HistogramBinning]
    rows: FloatArray
    pooled: IntArray


def check_guaranteed(base: Any, *, is_weighted: bool) -> HistogramBinning:
    """Return the calibrator if it has a guarantee, or raise ValueError."""
    if not isinstance(base, HistogramBinning):
        raise ValueError(
            f"{type(base).__name__} has no distribution-free guarantee, because its values are not "
            f"frequencies in bins. Use MulticlassToBinary(HistogramBinning())."
        )
    base._check_guaranteed(is_weighted=is_weighted)
    return base


def reduction_guarantee(
    bins: FittedBins, alpha: Any, delta: float, *, is_normalized: bool
) -> Guarantee:
    """Return the guarantee of fitted claims, or raise ValueError if no claim has a guarantee."""
    claims = {c: _binned_claim(bins, c) for c in range(len(bins.fitted)) if c not in bins.pooled}
    return binning_guarantee(
        _quantities(bins, claims),
        alpha,
        delta,
        tuple(_not_covered(bins, claims.values(), is_normalized)),
        tied_edges(sum(bins.fitted[c].n_tied_edges_ for c in claims)),
        ("predict_claims", "predict_top") if bins.notion.reports_labels else ("predict_claims",),
    )


def _binned_claim(bins: FittedBins, claim: int) -> BinnedClaim:
    text = bins.notion.claim_text(claim, bins.classes)
    return bins.fitted[claim]._binned_claim(text, bins.rows[claim])


def _quantities(bins: FittedBins, binned: dict[int, BinnedClaim]) -> list[BinnedQuantity]:
    """Return the claims of each quantity that the guarantee covers."""
    n_labels = bins.notion.n_labels(len(bins.classes))
    quantities = []
    for start in range(0, len(bins.fitted), n_labels):
        claims = [binned[c] for c in range(start, start + n_labels) if c in binned]
        name = "all labels" if n_labels > 1 else claims[0].name
        rows = int(bins.rows[start : start + n_labels].sum())
        quantities.append(BinnedQuantity(name, rows, [c for c in claims if c.is_covered]))
    return quantities


def _not_covered(
    bins: FittedBins, claims: Collection[BinnedClaim], is_normalized: bool
) -> Iterator[str]:
    """Describe the claims, bins and predictions that the guarantee does not cover."""
    if bins.pooled.size:
        labels = np.unique(bins.pooled % len(bins.classes))
        names = shortened([class_text(bins.classes[k]) for k in labels], 5)
        yield f"{names} (too few rows for separate bins)"
    few = [claim.name for claim in claims if not claim.is_covered]
    if few:
        yield f"{shortened(few, 5)} (fewer than two rows per bin)"
    if n_empty := sum(claim.n_empty for claim in claims if claim.is_covered):
        yield empty_bins(n_empty)
    if is_normalized:
        yield "the normalized rows of predict_proba"
