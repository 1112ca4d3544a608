"""From the fitted bins of a multiclass-to-binary reduction to its guarantee: what is covered, and
how it is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant.binary.histogram import HistogramBinning
from calibrant.exceptions import TooFewRowsError
from calibrant.guarantees import (
    BinnedClaim,
    BinnedQuantity,
    Guarantee,
    binning_guarantee,
    check_alpha,
    reliable_bins,
)
from calibrant.notions import ClassNotion, Notion, RankNotion, WithinTopNotion


class BinnedClaims(NamedTuple):
    """All claims of a notion as fitted: the bins and the rows of each, and which of them are
    pooled.
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


def certified(claims: BinnedClaims, alpha: Any, delta: float, *, is_normalized: bool) -> Guarantee:
    """The guarantee of fitted claims; raises where nothing can be guaranteed."""
    quantities = _quantities(claims)
    check_alpha(alpha, len(quantities))
    kept = [q for q, quantity in enumerate(quantities) if quantity.claims]
    if not kept:
        raise TooFewRowsError(
            "too few points for a guarantee: no claim has bins of its own with two calibration "
            "rows or more; "
            "use more data, or fewer bins"
        )
    own_alpha = np.asarray(alpha)[kept] if np.ndim(alpha) else alpha
    return binning_guarantee(
        [quantities[q] for q in kept], own_alpha, delta, _not_covered(claims, is_normalized)
    )


def claim_label(notion: Notion, claim: int, n_classes: int) -> int | None:
    """The column that a claim speaks of, where it is one."""
    if isinstance(notion, ClassNotion):
        return claim if notion.column is None else notion.column
    return claim % n_classes if notion.splits_by_label else None


def _quantities(claims: BinnedClaims) -> list[BinnedQuantity]:
    """The covered claims of each quantity."""
    n_labels = claims.notion.n_labels(len(claims.classes))
    made = []
    for start in range(0, len(claims.fitted), n_labels):
        own = [_binned(claims, c) for c in range(start, start + n_labels) if c not in claims.pooled]
        name = "all labels" if n_labels > 1 else _said(claims, start)
        rows = int(claims.rows[start : start + n_labels].sum())
        made.append(BinnedQuantity(name, rows, [claim for claim in own if _is_covered(claim)]))
    return made


def _is_covered(claim: BinnedClaim) -> bool:
    """Whether bins have the two points that the theorems ask for."""
    return claim.points_per_bin > 1 and reliable_bins(claim).size > 0


def _binned(claims: BinnedClaims, index: int) -> BinnedClaim:
    fit = claims.fitted[index]
    points = (
        int(fit.points_per_bin) if fit.n_bins is None else int(claims.rows[index] // fit.n_bins)
    )
    return BinnedClaim(_said(claims, index), points, fit.values_, fit.counts_, fit.hits_)


def _said(claims: BinnedClaims, index: int) -> str:
    """What the model says where it makes a claim."""
    notion, n_classes = claims.notion, len(claims.classes)
    if isinstance(notion, WithinTopNotion):
        return f"one of its top {notion.rank} classes"
    column = claim_label(notion, index, n_classes)
    rank = (
        notion.ranks[index // notion.n_labels(n_classes)] if isinstance(notion, RankNotion) else 1
    )
    name = "its class" if column is None else _named(claims.classes[column])
    if column is None and rank == 1:
        return "its top class"
    return (
        name
        if rank == 1
        else f"{name} of rank {rank}"
        if column is None
        else f"{name} at rank {rank}"
    )


def _named(label: Any) -> str:
    return f"'{label}'" if isinstance(label, str) else f"class {label}"


def _not_covered(claims: BinnedClaims, is_normalized: bool) -> tuple[str, ...]:
    own = {c: _binned(claims, c) for c in range(len(claims.fitted)) if c not in claims.pooled}
    few = [claim.name for claim in own.values() if not _is_covered(claim)]
    n_empty = sum(
        claim.values.size - reliable_bins(claim).size
        for claim in own.values()
        if _is_covered(claim)
    )
    n_tied = sum(claims.fitted[c].n_tied_edges_ for c in own)
    reasons = []
    if claims.pooled.size:
        labels = np.unique(claims.pooled % len(claims.classes))
        reasons.append(
            f"{_some([_named(claims.classes[c]) for c in labels])}, with too few rows for bins of "
            f"their own"
        )
    if few:
        reasons.append(f"{_some(few)}, with fewer than two rows a bin")
    if n_empty:
        reasons.append(f"{n_empty} bin(s) without rows, which report 0.5")
    if n_tied:
        reasons.append(
            f"the scores of {n_tied} bin edge(s) that several rows share (the proofs assume "
            f"distinct scores)"
        )
    if is_normalized:
        reasons.append("the normalised rows of predict_proba")
    return tuple(reasons)


def _some(names: Sequence[str], limit: int = 5) -> str:
    return ", ".join(names[:limit]) + (
        f" and {len(names) - limit} more" if len(names) > limit else ""
    )
