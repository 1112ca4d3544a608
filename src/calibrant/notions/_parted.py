r"""Claims of rows that come in parts: sums over all of them, and where scores must be ordered, a
summary of each claim.

The summary counts rows in cells of scores, right-closed and the same for all data, so that
summaries add up and do not depend on how rows were cut into parts. The ends of N cells are evenly
spaced in :math:`\log \frac{s + a}{1 - s + a}`, :math:`a = 10^{-6}`: two scores of a cell differ by
less than

.. math:: 1.01\, h\, (s + a)(1 - s + a), \qquad h = 27.7 / N,

which is 0.0009 at most for the 8,192 cells of a claim where there are up to 6 of them. Rows of a
cell are taken to have its mean score. So the cumulated scores and outcomes at the end of a cell are
exact, and what lies within a cell is known up to the share of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from calibrant._data.chunks import ChunkedSample
from calibrant._data.sample import ArraySample
from calibrant._kernels import cell_sums
from calibrant._typing import FloatArray, IntArray
from calibrant.notions._claims import Claim, ClaimBlock, Claims
from calibrant.notions._notion import Notion

MOST_CELLS, ALL_CELLS, LEAST_CELLS = 2**13, 3 * 2**14, 2**8
"""Cells of a claim, of all claims together, and of a claim where there are many."""

_SOFT = 1e-6
"""Scores that are closer to 0 or 1 are not told apart."""


class ScoreCells:
    """Cells of scores in [0, 1], by their upper ends; none of the ``cuts`` lies inside of one."""

    def __init__(self, n_cells: int, cuts: FloatArray | None = None) -> None:
        self.reach = float(np.log((1.0 + _SOFT) / _SOFT))
        odds = np.exp(np.linspace(-self.reach, self.reach, n_cells + 1)[1:])
        self.ends = (odds * (1.0 + _SOFT) - _SOFT) / (1.0 + odds)
        self.ends[-1] = 1.0
        self.is_even = cuts is None or not len(cuts)
        if cuts is not None:
            self.ends = np.union1d(self.ends, cuts)

    def place(self, score: FloatArray) -> IntArray:
        """The cell of each score."""
        n_cells, score = len(self.ends), np.minimum(score, 1.0)
        if not self.is_even:
            return np.searchsorted(self.ends, score)
        odds = np.log((score + _SOFT) / (1.0 - score + _SOFT))
        cell = np.ceil((odds / self.reach + 1.0) * (0.5 * n_cells)).astype(np.intp) - 1
        np.clip(cell, 0, n_cells - 1, out=cell)
        # Rounding may have put a score beside its cell.
        cell += score > self.ends[cell]
        cell -= (cell > 0) & (score <= self.ends[np.maximum(cell - 1, 0)])
        return cell


def n_cells_of(n_claims: int) -> int:
    """Cells of each of so many claims."""
    return int(np.clip(ALL_CELLS // n_claims, LEAST_CELLS, MOST_CELLS))


def words_of_cells(n_claims: int) -> str:
    """What is to be said of a map that was fitted to the cells of so many claims."""
    n_cells = n_cells_of(n_claims)
    width = float(np.expm1(2.0 * ScoreCells(1).reach / n_cells))  # odds of a cell are in this ratio
    return (
        f"Rows were counted in {n_cells:,} cells of scores a claim, which take the place of their "
        f"order: a score s is taken for one that differs by less than {width:.3g} s (1 - s), at "
        f"most {width / 4:.3g}, and there are no more bins than cells."
    )


def parted_claims(notion: Notion, sample: ChunkedSample, cuts: FloatArray | None = None) -> Claims:
    """All claims of a notion that knows its classes about probabilities that come in parts; rows
    on different sides of ``cuts`` are never taken together.
    """
    n_rows, n_classes = sample.shape
    n_quantities, n_labels = notion.n_quantities(n_classes), notion.n_labels(n_classes)
    parted = _Parted(notion, sample, (n_quantities, n_labels), cuts)
    weight = sample.weight
    return Claims(n_rows, n_quantities, n_labels, weight, _no_rows, n_classes, parted)


def _no_rows(rows: slice) -> ClaimBlock:
    raise TypeError(
        "this needs the rows themselves, and of scores that come in parts, such as dask arrays, "
        "nothing but sums is gathered: pass X.compute() where they fit into memory, or some of them"
    )


class _Parted:
    """What adds up the claims of parts."""

    def __init__(
        self,
        notion: Notion,
        sample: ChunkedSample,
        size: tuple[int, int],
        cuts: FloatArray | None,
    ) -> None:
        self.notion, self.sample, self.cuts = notion, sample, cuts
        self.n_quantities, self.n_labels = size

    def sum_over(self, function: Callable[[ClaimBlock, FloatArray], Any], at_least: int) -> Any:
        return self.sample.sum_chunks(partial(_sum_claims, self.notion, function, at_least))

    @cached_property
    def _cells(self) -> tuple[ScoreCells, FloatArray]:
        """Sums of weights, scores and hits in the cells of each claim, (3, n_claims, N)."""
        n_claims = self.n_quantities * self.n_labels
        cells = ScoreCells(n_cells_of(n_claims), self.cuts)
        size = n_claims, len(cells.ends)
        index = partial(_claim_index, self.n_quantities, self.n_labels)
        total = self.sum_over(partial(_cell_sums, cells, index, size), size[0] * size[1])
        return cells, total.reshape(3, *size)

    def whole(self) -> Iterator[Claim]:
        cells, sums = self._cells
        for index, (weight, score, hits) in enumerate(sums.transpose(1, 0, 2)):
            yield summarised(index, cells.ends, weight, score, hits)


def summarised(
    index: int, ends: FloatArray, weight: FloatArray, score: FloatArray, hits: FloatArray
) -> Claim:
    """A claim whose rows are the hits and the misses of each cell."""
    used = np.flatnonzero(weight > 0)
    mean = np.clip(score[used] / weight[used], 0.0, 1.0)
    count = np.concatenate([weight[used] - hits[used], hits[used]])
    outcome = np.repeat([False, True], len(used))
    rows = np.flatnonzero(count > 0)
    both = np.concatenate([mean, mean])[rows], outcome[rows], count[rows]
    return Claim(index, slice(None), *both, np.concatenate([ends[used]] * 2)[rows])


def _sum_claims(
    notion: Notion,
    function: Callable[[ClaimBlock, FloatArray], Any],
    at_least: int,
    part: ArraySample,
) -> Any:
    claims = notion.claims(part.u, part.y, part.weight)
    return claims.sum_over(function, at_least=at_least)


def _claim_index(n_quantities: int, n_labels: int, block: ClaimBlock) -> IntArray:
    quantity = np.arange(n_quantities) * n_labels
    return quantity if n_labels == 1 else block.labels() + quantity


def _cell_sums(
    cells: ScoreCells,
    index: Callable[[ClaimBlock], IntArray],
    size: tuple[int, int],
    block: ClaimBlock,
    weight: FloatArray,
) -> FloatArray:
    cell = cells.place(block.score) + index(block) * size[1]
    return np.array(cell_sums(cell, block.score, block.hit, weight, size[0] * size[1]))
