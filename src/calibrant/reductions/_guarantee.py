"""From the fitted bins of a multiclass-to-binary reduction to its guarantee: what is covered, and
what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import shortened
from calibrant.binary.histogram import HistogramBinning
from calibrant.guarantees import BinnedClaim, BinnedQuantity, Guarantee, binning_guarantee
from calibrant.notions import Notion, class_text


class FittedBins(NamedTuple):
    """Histogram binning of all claims of a notion: the bins and the rows of each, and which of the
    claims share a pooled fit.
    """

    notion: Notion
    classes: AnyArray
    fitted: Sequence[HistogramBinning]
    rows: FloatArray
    pooled: IntArray


def check_guaranteed(base: Any, *, is_weighted: bool) -> HistogramBinning:
    """The calibrator that a guarantee is about; raises where there is none, with the reason."""
    if not isinstance(base, HistogramBinning):
        raise ValueError(
            f"{type(base).__name__} has no distribution-free guarantee: its values are not "
            f"frequencies in bins; "
            "use HistogramBinning()"
        )
    if base.boundary != "exclude":
        raise ValueError(
            "boundary='include' has no guarantee: rows that became bin edges are not independent "
            "draws from their bin; "
            "use boundary='exclude'"
        )
    if is_weighted:
        raise ValueError(
            "there is no guarantee for weighted rows: fit without sample_weight, or with weights "
            "of one"
        )
    return base


def reduction_guarantee(
    bins: FittedBins, alpha: Any, delta: float, *, is_normalized: bool
) -> Guarantee:
    """The guarantee of fitted claims; raises where nothing can be guaranteed."""
    own = {c: _binned_claim(bins, c) for c in range(len(bins.fitted)) if c not in bins.pooled}
    reasons = [*_uncovered_claims(bins, own.values()), *_uncovered_scores(bins, own)]
    if is_normalized:
        reasons.append("the normalised rows of predict_proba")
    return binning_guarantee(_quantities(bins, own), alpha, delta, tuple(reasons))


def _binned_claim(bins: FittedBins, claim: int) -> BinnedClaim:
    fit = bins.fitted[claim]
    points = fit.points_per_bin if fit.n_bins is None else bins.rows[claim] // fit.n_bins
    said = bins.notion.claim_text(claim, bins.classes)
    return BinnedClaim(said, int(points), fit.values_, fit.counts_, fit.hits_)


def _quantities(bins: FittedBins, own: dict[int, BinnedClaim]) -> list[BinnedQuantity]:
    """The covered claims of each quantity."""
    n_labels = bins.notion.n_labels(len(bins.classes))
    quantities = []
    for start in range(0, len(bins.fitted), n_labels):
        claims = [own[c] for c in range(start, start + n_labels) if c in own]
        name = "all labels" if n_labels > 1 else claims[0].name
        rows = int(bins.rows[start : start + n_labels].sum())
        quantities.append(BinnedQuantity(name, rows, [c for c in claims if c.is_covered]))
    return quantities


def _uncovered_claims(bins: FittedBins, own: Iterable[BinnedClaim]) -> Iterator[str]:
    """Claims that the guarantee does not speak of."""
    if bins.pooled.size:
        labels = np.unique(bins.pooled % len(bins.classes))
        names = shortened([class_text(bins.classes[k]) for k in labels], 5)
        yield f"{names}, with too few rows for bins of their own"
    few = [claim.name for claim in own if not claim.is_covered]
    if few:
        yield f"{shortened(few, 5)}, with fewer than two rows a bin"


def _uncovered_scores(bins: FittedBins, own: dict[int, BinnedClaim]) -> Iterator[str]:
    """Scores of covered claims that the guarantee does not speak of."""
    n_empty = sum(claim.n_empty for claim in own.values() if claim.is_covered)
    if n_empty:
        yield f"{n_empty} bin(s) without rows, which report 0.5"
    n_tied = sum(bins.fitted[c].n_tied_edges_ for c in own)
    if n_tied:
        yield (
            f"the scores of {n_tied} bin edge(s) that several rows share (the proofs assume "
            f"distinct scores)"
        )
