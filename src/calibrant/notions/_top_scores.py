"""Binary problems of predictions that contain only the top scores of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant._data.top_scores import TopSample, TopScores
from calibrant._typing import IntArray
from calibrant.notions._claims import ClaimBlock, Claims

if TYPE_CHECKING:
    from calibrant.notions._notion import Notion


def top_claims(notion: Notion, data: TopSample) -> Claims:
    """Return all claims of top scores for a notion that selects scores by rank."""
    top, n_classes = data.top, data.top.n_classes
    _check_known(notion, top)

    def select(rows: slice) -> ClaimBlock:
        return select_top(notion, top[rows], data.y[rows])

    size = (len(top), notion.n_quantities(n_classes), notion.n_labels(n_classes))
    return Claims(*size, data.weight, select, top.n_known)


def select_top(notion: Notion, top: TopScores, y: IntArray | None = None) -> ClaimBlock:
    """Select the claims of a block of top scores.

    `Notion.select` is the same function for complete rows.
    """
    _check_known(notion, top)
    proba, quantities = top.proba, range(notion.n_quantities(top.n_classes))
    ranks = [notion.ranks_of(j, top.n_classes) or range(0) for j in quantities]
    places = [slice(place.start - 1, place.stop - 1) for place in ranks]
    score = np.column_stack([proba[:, place].sum(axis=1) for place in places])
    label = None
    if notion.reports_labels:
        label = np.column_stack([top.labels[:, place.start] for place in places])
    hit = np.empty(0, dtype=np.intp)
    if y is not None:
        is_true = top.labels == y[:, None]
        hit = np.flatnonzero(np.column_stack([is_true[:, place].any(axis=1) for place in places]))
    return ClaimBlock(np.minimum(score, 1.0), label, hit)


def _check_known(notion: Notion, top: TopScores) -> None:
    """Raise ValueError if a notion needs more than the top classes."""
    for quantity in range(notion.n_quantities(top.n_classes)):
        ranks = notion.ranks_of(quantity, top.n_classes)
        if ranks is None:
            raise ValueError(
                f"notion {notion.name!r} needs the scores of given classes in every row, but "
                f"TopScores contain the top {top.n_known} of {top.n_classes} classes. Pass "
                f"'confidence', 'top-label', 'rank-<r>', 'within-top-<r>' or 'top-<k>-label'."
            )
        if ranks.stop - 1 > top.n_known:
            raise ValueError(
                f"notion {notion.name!r} needs the top {ranks.stop - 1} classes of a row, but "
                f"TopScores contain only the top {top.n_known} classes. Pass a notion about ranks "
                f"up to {top.n_known}."
            )
