r"""Binary problems of chunked rows, represented by sums over cells (small intervals) of scores.

Chunked rows are not sorted by score. Instead, rows are counted in cells of scores. Cells are
right-closed and equal for all data. Sums over cells can therefore be added, and do not depend on
the chunks. The ends of N cells are evenly spaced in :math:`\log \frac{s + a}{1 - s + a}` with
:math:`a = 10^{-6}`. Two scores of a cell differ by less than

.. math:: 1.01\, h\, (s + a)(1 - s + a), \qquad h = 27.7 / N,

which is at most 0.0009 for the 8,192 cells per claim that are used for up to 6 claims. All rows of
a cell get the mean score of the cell. Cumulative scores and outcomes at the end of a cell are
therefore exact. Within a cell, the error is at most the share of the rows in the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._data.sample import ArraySample, Sample
from calibrant._kernels import cell_sums
from calibrant._typing import FloatArray, IntArray
from calibrant.notions._claims import Claim, ClaimBlock, Claims

if TYPE_CHECKING:
    from calibrant.notions._notion import Notion

MOST_CELLS, ALL_CELLS, LEAST_CELLS = 2**13, 3 * 2**14, 2**8
"""Maximum number of cells per claim, total number of cells, and minimum number per claim."""

_SOFT = 1e-6
"""Scores closer to 0 or 1 than this distance are in one or two cells."""


class ScoreCells:
    """Cells of scores in [0, 1], given by their upper ends, which include ``cuts``."""

    def __init__(self, n_cells: int, cuts: FloatArray | None = None) -> None:
        self.reach = float(np.log((1.0 + _SOFT) / _SOFT))
        odds = np.exp(np.linspace(-self.reach, self.reach, n_cells + 1)[1:])
        self.ends = (odds * (1.0 + _SOFT) - _SOFT) / (1.0 + odds)
        self.ends[-1] = 1.0
        self.is_even = cuts is None or not len(cuts)
        if cuts is not None:
            self.ends = np.union1d(self.ends, cuts)

    def place(self, score: FloatArray) -> IntArray:
        """Return the cell of each score."""
        n_cells, score = len(self.ends), np.minimum(score, 1.0)
        if not self.is_even:
            return np.searchsorted(self.ends, score)
        odds = np.log((score + _SOFT) / (1.0 - score + _SOFT))
        cell = np.ceil((odds / self.reach + 1.0) * (0.5 * n_cells)).astype(np.intp) - 1
        np.clip(cell, 0, n_cells - 1, out=cell)
        # The logarithm is rounded, so the cell of a score may be wrong by one.
        cell += score > self.ends[cell]
        cell -= (cell > 0) & (score <= self.ends[np.maximum(cell - 1, 0)])
        return cell


def n_cells_of(n_claims: int) -> int:
    """Return the number of cells per claim if there are ``n_claims`` claims."""
    return int(np.clip(ALL_CELLS // n_claims, LEAST_CELLS, MOST_CELLS))


def note_on_cells(n_claims: int) -> str:
    """Explain how a fit to cells of scores differs from a fit to all rows."""
    n_cells = n_cells_of(n_claims)
    # Largest relative change of the odds within a cell.
    width = float(np.expm1(2.0 * ScoreCells(1).reach / n_cells))
    return (
        f"Rows were counted in {n_cells:,} cells of scores per claim instead of being sorted. "
        f"Cells change a score s by less than {width:.3g} s (1 - s), at most {width / 4:.3g}. "
        "There are no more bins than cells."
    )


@dataclass(frozen=True)
class ChunkedClaims(Claims):
    """Binary problems of chunked rows, in which each claim consists of cells of scores.

    ``cuts`` are ends of cells, so no cell has a cut in its interior.
    """

    notion: Notion | None = None
    sample: Sample | None = None
    cuts: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Every process sums the rows of its own chunks, so neither data nor cached sums are sent.
        state = {**super().__getstate__(), "sample": None}
        state.pop("_cells", None)
        return state

    @property
    def n_present(self) -> int:
        assert self.sample is not None
        return self.sample.n_rows

    def effective(self) -> Claims:
        assert self.sample is not None
        assert self.notion is not None
        return chunked_claims(self.notion, self.sample.effective(), self.cuts)

    def check_distinct(self, reason: str) -> None:
        raise TypeError(
            f"{reason} needs the distinct scores of all rows, but chunked data are summarized by "
            "counts of rows in intervals of scores. Pass strategy='uniform' or 'quantile'."
        )

    def sum_over(
        self, function: Callable[[ClaimBlock, FloatArray], Any], *, at_least: int = 0
    ) -> Any:
        assert self.sample is not None
        return self.sample.sum_chunks(partial(_sum_claims, self.notion, function, at_least))

    @cached_property
    def _cells(self) -> tuple[ScoreCells, FloatArray]:
        """Return cells, and sums per claim and cell, (5, n_claims, N).

        The five sums are over weights, scores, positive outcomes, rows and squared weights.
        """
        assert self.sample is not None
        cells = ScoreCells(n_cells_of(self.n_claims), self.cuts)
        size = self.n_claims, len(cells.ends)
        sums = partial(_cell_sums, cells, self.index, size, self.sample.is_weighted)
        total = self.sum_over(sums, at_least=size[0] * size[1]).reshape(-1, *size)
        if not self.sample.is_weighted:
            total = total[[0, 1, 2, 0, 0]]
        return cells, total

    def __iter__(self) -> Iterator[Claim]:
        assert self.sample is not None
        cells, sums = self._cells
        for index, (weight, score, hits, rows, squares) in enumerate(sums.transpose(1, 0, 2)):
            claim = claim_of_cells(index, cells.ends, weight, score, hits)
            places = np.searchsorted(cells.ends, np.asarray(claim.ends))
            yield replace(
                claim,
                is_counted_weighted=self.sample.is_weighted,
                cell_rows=rows[places],
                squares=squares[places] * claim.weight / weight[places],
            )

    def batches(self, elements: int) -> Iterator[list[Claim]]:
        if self.n_labels > 1:
            yield from super().batches(elements)
        else:
            yield from ([claim] for claim in self)


def chunked_claims(notion: Notion, sample: Sample, cuts: FloatArray | None = None) -> ChunkedClaims:
    """Return the claims of a bound notion about chunked probabilities."""
    n_rows, n_classes = sample.shape
    size = n_rows, notion.n_quantities(n_classes), notion.n_labels(n_classes)
    return ChunkedClaims(*size, _weight_of(sample), _no_rows, n_classes, notion, sample, cuts)


def _weight_of(sample: Sample) -> FloatArray:
    """Return an array that sums to the total weight.

    The array is a broadcast one, which takes no memory, or a single number.
    """
    if sample.is_weighted or sample.n_rows < sample.shape[0]:
        return np.array([sample.total])
    return np.broadcast_to(np.float64(1.0), (sample.shape[0],))


def _no_rows(rows: slice) -> ClaimBlock:
    raise TypeError(
        "This operation needs all rows in memory, but the scores are read in chunks. Load the "
        "rows first, for example with X.compute(), or pass a sample of the rows."
    )


def claim_of_cells(
    index: int, ends: FloatArray, weight: FloatArray, score: FloatArray, hits: FloatArray
) -> Claim:
    """Return a claim whose entries are the negative and the positive outcomes of each cell."""
    used = np.flatnonzero(weight > 0)
    mean = _restore_decimals(np.clip(score[used] / weight[used], 0.0, 1.0))
    count = np.concatenate([weight[used] - hits[used], hits[used]])
    outcome = np.repeat([False, True], len(used))
    rows = np.flatnonzero(count > 0)
    columns = np.concatenate([mean, mean])[rows], outcome[rows], count[rows]
    return Claim(index, slice(None), *columns, np.concatenate([ends[used]] * 2)[rows])


def _restore_decimals(mean: FloatArray) -> FloatArray:
    """Remove the round-off of means of tied decimal scores.

    Otherwise, a mean slightly below or above the decimal could be on the wrong side of a step.
    """
    decimal = np.round(mean, 12)
    # Sums of many tied scores lose a few bits, so accept an error of 16 units in the last place.
    return np.where(np.abs(decimal - mean) <= 16.0 * np.spacing(mean), decimal, mean)


def _sum_claims(
    notion: Any,
    function: Callable[[ClaimBlock, FloatArray], Any],
    at_least: int,
    chunk: ArraySample,
) -> Any:
    claims = notion.claims(chunk.u, chunk.y, chunk.weight)
    return claims.sum_over(function, at_least=at_least)


def _cell_sums(
    cells: ScoreCells,
    index: Callable[[ClaimBlock], IntArray],
    size: tuple[int, int],
    is_weighted: bool,
    block: ClaimBlock,
    weight: FloatArray,
) -> FloatArray:
    cell = cells.place(block.score) + index(block) * size[1]
    n_cells = size[0] * size[1]
    sums = cell_sums(cell, block.score, block.hit, weight, n_cells)
    if not is_weighted:  # weights are 0 or 1, so the sum of squares is not needed
        return np.array(sums, dtype=np.float64)
    rows = np.bincount(cell[weight > 0].ravel(), minlength=n_cells)
    squared_weight = np.broadcast_to(weight[:, None] ** 2, cell.shape)
    squares = np.bincount(cell.ravel(), squared_weight.ravel(), n_cells)
    return np.array([*sums, rows, squares], dtype=np.float64)
