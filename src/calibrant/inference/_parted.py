"""The consistency test of rows that come in parts: outcomes are drawn cell by cell of scores."""

from __future__ import annotations

import numpy as np

from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.binary.histogram import uniform_edges
from calibrant.binning import BinRule, distinct_sums
from calibrant.notions import Claims, Notion
from calibrant.notions._claims import sample_of_parts
from calibrant.notions._parted import parted_claims


class CellBinomials:
    """One claim a row: the counts of a bin are sums of binomial variables, one a cell of scores.

    Rows of a cell are taken to have its mean score, which leaves the means of the counts as they
    are, and makes their variances too large by less than the squared width of the cell a row.
    O(cells) a draw, whatever the number of rows.
    """

    reusable = True

    def __init__(self, claims: Claims, bins: BinRule) -> None:
        self.n_cells = claims.n_claims * bins.n_bins
        found = [_cells_of(claim.score, claim.weight) for claim in claims]
        places = [
            bins.assign(np.asarray(score)) + index * bins.n_bins
            for index, (score, _) in enumerate(found)
        ]
        self._place = np.concatenate(places)
        self._score, self._rows = (np.concatenate(part) for part in zip(*found, strict=True))

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""
        starts = np.flatnonzero(np.diff(self._place, prepend=-1))
        each = generator.binomial(self._rows, self._score, size=(size, len(self._rows)))
        drawn = np.zeros((size, self.n_cells))
        drawn[:, self._place[starts]] = np.add.reduceat(each, starts, axis=1)
        return drawn


def _cells_of(score: FloatArray, weight: FloatArray) -> tuple[FloatArray, AnyArray]:
    """Mean scores of cells, in order, and their rows."""
    values, total, _ = distinct_sums(score, np.zeros(len(score)), weight)
    return values, total.round().astype(np.int64)


def claims_to_draw(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    *,
    inputs: str,
    n_bins: int,
) -> Claims:
    """The claims of parts whose outcomes can be drawn, in cells that no bin's edge lies inside of;
    an error that says what cannot be.
    """
    sample, names = sample_of_parts(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claims = parted_claims(notion.bound(names), sample, uniform_edges(n_bins))
    if claims.n_quantities > 1:
        raise TypeError(
            f"the notion {notion.name!r} makes several claims about a row, so that labels of rows "
            "would have to be drawn, and rows that come in parts, such as dask arrays, are not "
            "gathered: use 'confidence' or 'top-label', or some of the rows"
        )
    if not sample.counts.is_unit:
        raise TypeError("of rows that come in parts the consistency test takes no weights")
    return claims
