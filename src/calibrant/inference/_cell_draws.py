"""The consistency test for chunked rows.

Outcomes are drawn per cell of scores, or labels are drawn in each chunk, and only their counts are
gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.binary.histogram import uniform_edges
from calibrant.binning import BinRule, distinct_sums
from calibrant.inference._draws import CellDraws, CountDraws
from calibrant.notions import Claims, Notion, sample_for


class CellBinomials:
    """Counts per bin for one claim per row, as sums of binomial variables over cells of scores.

    All rows of a cell get the mean score of the cell. This approximation leaves the means of the
    counts unchanged. Per row, the approximation overestimates the variances of the counts by less
    than the squared width of the cell. A draw takes O(cells) time, regardless of the number of
    rows.
    """

    reusable = True

    def __init__(self, claims: Claims, bins: BinRule) -> None:
        self.n_cells = claims.n_claims * bins.n_bins
        cells = [_cells_of(claim.score, claim.weight) for claim in claims]
        places = [
            bins.assign(np.asarray(score)) + index * bins.n_bins
            for index, (score, _) in enumerate(cells)
        ]
        self._place = np.concatenate(places)
        self._score, self._rows = (np.concatenate(part) for part in zip(*cells, strict=True))

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""
        starts = np.flatnonzero(np.diff(self._place, prepend=-1))
        hits = generator.binomial(self._rows, self._score, size=(size, len(self._rows)))
        drawn = np.zeros((size, self.n_cells))
        drawn[:, self._place[starts]] = np.add.reduceat(hits, starts, axis=1)
        return drawn


class ChunkDraws:
    """Counts per bin for several claims per row, from labels that are drawn in each chunk.

    The seed of a chunk depends on the number of its first row. Apart from the seeds, labels are
    drawn as for rows in memory. One pass over the chunks computes one portion of the resamples.
    """

    reusable = False

    def __init__(self, notion: Notion, sample: Sample, bins: BinRule) -> None:
        self.notion, self.sample, self.bins = notion, sample, bins

    def counts(self, generator: np.random.Generator, size: int) -> AnyArray:
        """Counts of ``size`` draws, (size, n_cells)."""
        seed = int(generator.integers(2**63))
        drawn = partial(_counts_of_chunk, self.notion, self.bins, seed, size)
        counts: AnyArray = self.sample.sum_chunks(drawn)
        return counts


def _counts_of_chunk(
    notion: Notion, bins: BinRule, seed: int, size: int, part: ArraySample
) -> AnyArray:
    claims = notion.claims(part.u, part.y, part.weight)
    generator = np.random.default_rng([seed, part.start])
    return CellDraws(claims, bins).counts(generator, size)


def _cells_of(score: FloatArray, weight: FloatArray) -> tuple[FloatArray, AnyArray]:
    """Return the mean scores of the cells in increasing order, and their numbers of rows."""
    values, total, _ = distinct_sums(score, np.zeros(len(score)), weight)
    return values, total.round().astype(np.int64)


def chunked_null(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    *,
    inputs: str,
    n_bins: int,
) -> tuple[Claims, Callable[[Claims, BinRule], CountDraws], str]:
    """Return the claims of chunked rows, a function that draws outcomes, and the guarantee.

    The edges of the cells include the edges of the bins, so no bin cuts through a cell.
    """
    sample, names = sample_for(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
    if sample.is_weighted or sample.n_rows < sample.shape[0]:
        raise TypeError(
            "The consistency test of chunked scores does not accept weights. Load the rows first, "
            "for example with y_prob.compute()."
        )
    bound = notion.bound(names)
    claims = sample.claims(bound, uniform_edges(n_bins))
    if claims.n_quantities == 1:
        return claims, CellBinomials, "asymptotic"
    return claims, lambda _, bins: ChunkDraws(bound, sample, bins), "exact"
