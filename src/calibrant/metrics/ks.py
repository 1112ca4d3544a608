"""Kolmogorov-Smirnov calibration error, a distance between cumulative scores and outcomes."""

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
    r"""Compute the Kolmogorov-Smirnov calibration error.

    The error is the largest distance between cumulative scores and cumulative outcomes, and needs
    no bins. Lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`. Errors of several claims are averaged with the
        weights of `expected_calibration_error`. "rank-2" and "within-top-2" give the top-2 and
        within-top-2 errors of the paper.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The error, between 0 and 1.

    See Also
    --------
    calibrant.inference.ks_test : Test whether the error exceeds sampling noise.
    cutoff_calibration_error : The largest error over any interval of scores.
    expected_calibration_error : Binned calibration error.

    Notes
    -----
    With scores f and outcomes o, the error is

    .. math:: \max_s \frac1n \Big| \sum_{i:\, f_i \le s} (f_i - o_i) \Big| ,

    evaluated at the end of each group of tied scores. The computation takes O(n log n) time and
    O(n) memory per claim, because scores must be sorted. A memory map is read in blocks, but its
    confidences are kept in memory.

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
"""Number of temporary columns per block of sorted rows: scores, steps and sums."""

_N_EXCESS = 4
"""Number of temporary columns per block if only the excess is summed."""


def claims_ks(claims: Claims) -> float:
    """Return the mean KS error of claims, weighted by v_c (see `Claims.share`)."""
    return claims.mean(claim_ks)


def claim_ks(claim: Claim) -> float:
    """Compute the KS error of one claim.

    With unit weights, only the sums of score minus outcome are computed, which is faster than
    computing the whole path.
    """
    if not is_unit(claim.weight):
        return max(part.error for part in path_parts(claim))
    return _largest_excess(_in_order(claim))


def _largest_excess(rows_of: _Ordered | _Packed) -> float:
    """Compute the KS error of rows with unit weights."""
    before = worst = 0.0
    for rows in row_blocks(rows_of.n_rows, _N_EXCESS):
        score, outcome, _ = rows_of.take(rows)
        excess = score - outcome
        excess[0] += before  # continue the sum of the previous block
        np.cumsum(excess, out=excess)
        before = excess[-1]
        is_end = np.append(score[1:] != score[:-1], rows_of.ends_at(rows.stop))
        at_ends = excess if is_end.all() else excess[is_end]
        if at_ends.size:
            worst = max(worst, -float(at_ends.min()), float(at_ends.max()))
    return worst / rows_of.total


class KsPath(NamedTuple):
    """Cumulative scores and outcomes of a claim at its distinct scores.

    Each array has shape (m,). ``score`` increases, and ``share`` is the share of the rows up to
    each ``score``. ``excess`` is the cumulative score minus the cumulative ``outcome``, both
    divided by the number of rows.
    """

    share: FloatArray
    score: FloatArray
    outcome: FloatArray
    excess: FloatArray

    @property
    def worst(self) -> int:
        """Index of the largest distance of ``excess`` from zero."""
        return int(np.abs(self.excess).argmax())

    @property
    def error(self) -> float:
        """The KS error."""
        return float(np.abs(self.excess[self.worst]))

    def excess_at(self, share: FloatArray) -> FloatArray:
        """Interpolate the excess at the given shares of the rows, between 0 and 1."""
        return np.interp(share, np.append(0.0, self.share), np.append(0.0, self.excess))


def ks_path(claim: Claim) -> KsPath:
    """Return the cumulative sums whose largest distance from zero is the KS error.

    Rows with the same score form one step, because the path within the step would depend on their
    order. Rows with weight zero are excluded. The claim must have at least one row. The computation
    takes O(n log n) time.
    """
    return KsPath(*map(np.concatenate, zip(*path_parts(claim), strict=True)))


def path_parts(claim: Claim) -> Iterator[KsPath]:
    """Yield the path of a claim in blocks of rows, sorted by score.

    Cumulative sums continue from block to block.
    """
    return _path_parts(_in_order(claim))


def packed_ks(key: AnyArray) -> float:
    """Compute the KS error of packed scores and outcomes (`packed_pairs`).

    The array is sorted in place to save memory.
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
    """Rows of weight one, packed and sorted by score. Blocks of rows are unpacked on demand."""

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
        """Return whether a group of tied scores ends before the row ``stop``."""
        if stop >= self.n_rows:
            return True
        # The lowest bit of a key is the outcome, and the other bits are the score.
        last, following = self.key[stop - 1 : stop + 1] >> np.uint64(1)
        return bool(last != following)


class _Ordered(NamedTuple):
    """Rows of a claim with the order of their scores. Blocks of rows are selected on demand."""

    score: FloatArray
    outcome: AnyArray
    weight: FloatArray
    order: IntArray
    total: float

    @property
    def n_rows(self) -> int:
        return len(self.order)

    def take(self, rows: slice) -> tuple[FloatArray, AnyArray, FloatArray]:
        index = self.order[rows]
        return self.score[index], self.outcome[index], self.weight[index]

    def ends_at(self, stop: int) -> bool:
        """Return whether a group of tied scores ends before the row ``stop``."""
        if stop >= self.n_rows:
            return True
        last, following = self.take(slice(stop - 1, stop + 1))[0]
        return bool(last != following)


def _in_order(claim: Claim) -> _Ordered | _Packed:
    """Sort the rows with positive weight.

    With unit weights, scores and outcomes are packed into one array and sorted together.
    """
    if is_unit(claim.weight):
        key = packed_pairs(claim.score, claim.outcome)
        key.sort()
        return _Packed(key)
    # The order of tied scores does not matter, because only the ends of ties are evaluated.
    order = np.argsort(claim.score)
    if not claim.weight.all():
        order = order[claim.weight[order] > 0]
    return _Ordered(claim.score, claim.outcome, claim.weight, order, claim.weight[order].sum())
