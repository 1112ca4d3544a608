"""Binning-free calibration error: the Kolmogorov-Smirnov distance of cumulative scores and
outcomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calibrant._kernels import packed_pairs, unpacked_pairs
from calibrant._kernels.blocks import row_blocks
from calibrant._kernels.simplex import is_unit
from calibrant._typing import (
    AnyArray,
    FloatArray,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant.notions import Claim, Claims, Notion, as_notion, claims_of


def ks_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Kolmogorov-Smirnov calibration error.

    The largest distance between the cumulative score and the cumulative outcome,

    .. math:: \max_s \frac1n \Big| \sum_{i:\, f_i \le s} (f_i - o_i) \Big| ,

    taken at the ends of groups of tied scores. For a notion of several claims, their mean with the
    weights of `expected_calibration_error`.

    ``notion="rank-2"`` and ``"within-top-2"`` are the top-2 and within-top-2 errors of the paper.

    Notes
    -----
    O(n log n) time and O(n) memory per claim: scores must be ordered, a memory map is read but its
    top scores are held.

    References
    ----------
    Gupta et al. (2021), Calibration of neural networks using splines, eq. 9 to 11,
    arXiv:2006.12800.

    Examples
    --------
    >>> ks_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], notion="class-1")
    0.05...
    """
    return claims_ks(
        claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)[0]
    )


_N_COLUMNS = 12
"""Columns that are made of a block of ordered rows: scores, steps, sums."""

_N_EXCESS = 4
"""Columns where the excess alone is added up."""


def claims_ks(claims: Claims) -> float:
    """KS error of claims: the mean over them with the weights v_c."""
    return claims.mean(claim_ks)


def claim_ks(claim: Claim) -> float:
    """KS error of one claim: of rows that count one each from the excess alone, else from the
    path.
    """
    if not is_unit(claim.weight):
        return max(part.error for part in path_parts(claim))
    return _largest_excess(_in_order(claim))


def _largest_excess(rows_of: _Ordered | _Packed) -> float:
    """KS error of rows that count one each."""
    before = worst = 0.0
    for rows in row_blocks(rows_of.n_rows, _N_EXCESS):
        score, outcome, _ = rows_of.take(rows)
        excess = score - outcome
        excess[0] += before
        np.cumsum(excess, out=excess)
        before = excess[-1]
        is_end = np.append(score[1:] != score[:-1], rows_of.ends_at(rows.stop))
        at_ends = excess if is_end.all() else excess[is_end]
        if at_ends.size:
            worst = max(worst, -float(at_ends.min()), float(at_ends.max()))
    return worst / rows_of.total


class KsPath(NamedTuple):
    """Cumulative scores and outcomes of a claim at its distinct scores, each (m,), increasing.

    ``share`` of the rows up to each ``score``; ``excess`` is the cumulative score minus the
    cumulative ``outcome``, both divided by the number of rows.
    """

    share: FloatArray
    score: FloatArray
    outcome: FloatArray
    excess: FloatArray

    @property
    def worst(self) -> int:
        """Where the distance is largest."""
        return int(np.abs(self.excess).argmax())

    @property
    def error(self) -> float:
        """The KS error."""
        return float(np.abs(self.excess[self.worst]))

    def excess_at(self, share: FloatArray) -> FloatArray:
        """The excess at shares of the rows between 0 and 1, linear between distinct scores."""
        return np.interp(share, np.append(0.0, self.share), np.append(0.0, self.excess))


def ks_path(claim: Claim) -> KsPath:
    """The graph whose largest distance from zero is the KS error; a claim without rows has none.

    Rows with the same score are one step: what lies within it would depend on their order. Rows of
    weight zero are no steps. O(n log n).
    """
    return KsPath(*map(np.concatenate, zip(*path_parts(claim), strict=True)))


def path_parts(claim: Claim) -> Iterator[KsPath]:
    """The path of a claim, a block of rows at a time in the order of their scores; sums are added
    up from part to part as over all rows.
    """
    return _path_parts(_in_order(claim))


def packed_ks(key: AnyArray) -> float:
    """KS error of scores and outcomes that were packed (`packed_pairs`), which are put in order;
    nothing else is as large.
    """
    key.sort()
    return _largest_excess(_Packed(key))


def _path_parts(rows_of: _Ordered | _Packed) -> Iterator[KsPath]:
    n_rows, before = rows_of.n_rows, np.zeros(3)
    for rows in row_blocks(n_rows, _N_COLUMNS):
        score, outcome, weight = rows_of.take(rows)
        ends = np.append(score[1:] != score[:-1], rows_of.ends_at(rows.stop))
        steps = np.array([weight, weight * outcome, (score - outcome) * weight])
        steps[:, 0] += before
        sums = np.cumsum(steps, axis=1)
        before = sums[:, -1]
        if ends.any():
            share, hits, excess = sums[:, ends] / rows_of.total
            yield KsPath(share, score[ends], hits, excess)


class _Packed(NamedTuple):
    """Rows of weight one in the order of their scores, packed, and unpacked a block at a time."""

    key: AnyArray

    @property
    def n_rows(self) -> int:
        return len(self.key)

    @property
    def total(self) -> float:
        return float(len(self.key))

    def take(self, rows: slice) -> tuple[FloatArray, AnyArray, FloatArray]:
        score, outcome = unpacked_pairs(self.key[rows].copy())
        return score, outcome, np.broadcast_to(np.float64(1.0), score.shape)

    def ends_at(self, stop: int) -> bool:
        """Whether no tied score follows the block that ends before ``stop``."""
        one, other = self.key[stop - 1 : stop + 1] >> np.uint64(1) if stop < self.n_rows else (0, 1)
        return bool(one != other)


class _Ordered(NamedTuple):
    """Rows of a claim, and the order of their scores, which is followed a block at a time."""

    score: FloatArray
    outcome: AnyArray
    weight: FloatArray
    order: IntArray
    total: float

    @property
    def n_rows(self) -> int:
        return len(self.order)

    def take(self, rows: slice) -> tuple[FloatArray, AnyArray, FloatArray]:
        own = self.order[rows]
        return self.score[own], self.outcome[own], self.weight[own]

    def ends_at(self, stop: int) -> bool:
        """Whether no tied score follows the block that ends before ``stop``."""
        if stop >= self.n_rows:
            return True
        last, following = self.take(slice(stop - 1, stop + 1))[0]
        return bool(last != following)


def _in_order(claim: Claim) -> _Ordered | _Packed:
    """Rows of positive weight; where all weigh one, one sort of scores with their outcomes."""
    if is_unit(claim.weight):
        key = packed_pairs(claim.score, claim.outcome)
        key.sort()
        return _Packed(key)
    order = np.argsort(claim.score)
    if not claim.weight.all():
        order = order[claim.weight[order] > 0]
    return _Ordered(claim.score, claim.outcome, claim.weight, order, claim.weight[order].sum())
