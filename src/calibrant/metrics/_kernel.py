"""Kernel calibration error, which compares residuals of similar predictions.

A `Residuals` object contains points, residuals and weights of one claim (binary event), or of the
whole vector. The object sums ``kernel(point_i, point_j) <a_i, a_j>`` over all pairs. For scores
(points on a line), the sum takes O(n) time after sorting. For vectors, the sum takes O(n^2) time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy

from calibrant._kernels.blocks import row_blocks
from calibrant._typing import FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import check_count, check_option, check_row_counts
from calibrant.notions import Claims, Notion, as_notion, predictions_for

_ESTIMATORS = ("unbiased", "biased")
_TILE = 512
_MEDIAN_POINTS = 1000
# Length of a segment of sorted points. The largest factor is exp(300), which is far from
# overflow.
_SEGMENT = 300.0


def kernel_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "canonical",
    bandwidth: float | None = None,
    estimator: str = "unbiased",
    block_size: int | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Compute the squared kernel calibration error (SKCE), without bins.

    By default, the error refers to the whole probability vector. The expected error is zero if and
    only if the model is calibrated, and positive otherwise. Lower is better, but the unbiased
    estimate of a calibrated model is negative more than half of the time.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem. For
        class-wise types of calibration, rows need not sum to one.
    notion : str or Notion, default "canonical"
        Type of calibration: "canonical" (the whole vector) or a binary type, see
        `calibrant.notions`.
    bandwidth : float, optional
        Bandwidth :math:`\gamma` in units of total variation. The default is the median distance
        between at most 1,000 distinct predictions, which are evenly spaced in sorted order. The
        default depends only on the predictions, not on the labels.
    estimator : {"unbiased", "biased"}, default "unbiased"
        "unbiased" averages over all pairs of different rows. "biased" divides the sum over all
        pairs, including each row with itself, by n squared. With ``notion="confidence"``, "biased"
        is the square of the maximum mean calibration error (MMCE).
    block_size : int, optional
        Number of consecutive rows per block. If set, the unbiased estimates of all blocks are
        averaged, which takes O(n) pairs instead of all pairs.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. For the unbiased estimate, weights are numbers of copies. With ``block_size``,
        weights are not allowed.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The squared error.

    See Also
    --------
    calibrant.inference.kernel_test : Test whether the error exceeds sampling noise.
    expected_calibration_error : Binned calibration error.

    Notes
    -----
    With residuals :math:`r_i = e_{y_i} - p_i` and the kernel :math:`k(p, p') = \exp(-\|p - p'\|_1 /
    (2\gamma))`, an exponential of the total variation distance, the unbiased estimate is

    .. math:: \frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j) \langle r_i, r_j \rangle .

    For binary claims, the score :math:`f_i` replaces :math:`p_i`, with :math:`k = \exp(-|f - f'| /
    \gamma)` and :math:`r_i = o_i - f_i`. Errors of several claims are averaged with the weights of
    `expected_calibration_error`.

    For binary types of calibration, the computation takes O(n log n) time per claim, because the
    kernel factorizes along sorted scores. "canonical" takes O(n^2 K) time in tiles of constant
    memory, or O(n m K) for blocks of m rows.

    References
    ----------
    Widmann, Lindsten & Zachariah (2019), Calibration tests in multi-class classification,
    arXiv:1910.11385. Kumar, Sarawagi & Jain (2018), Trainable calibration measures for neural
    networks from kernel mean embeddings (MMCE), ICML.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(1000, 3, noise=0.5, rng=0)
    >>> round(kernel_calibration_error(data.labels, data.proba), 3)
    0.003
    """
    check_option(estimator, "estimator", _ESTIMATORS)
    kind = as_notion(notion, vectors=True)
    proba, y, weight, names = predictions_for(
        kind, y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    kind = kind.bound(names)
    if estimator == "unbiased":
        check_row_counts(weight, "the unbiased estimate")
    if block_size is not None:
        _check_blocks(block_size, estimator, weight)
    parts = residual_parts(kind, proba, y, weight, bandwidth)
    if block_size is not None:
        return float(
            sum(share * np.dot(*part.block_estimates(block_size)) for share, part in parts)
        )
    return float(sum(share * part.estimate(estimator) for share, part in parts))


def _check_blocks(block_size: int, estimator: str, weight: FloatArray) -> None:
    check_count(block_size, "block_size", minimum=2)
    if estimator != "unbiased":
        raise ValueError(
            f"block_size needs estimator='unbiased', got {estimator!r}. Pass block_size=None or "
            f"estimator='unbiased'."
        )
    if not (weight == 1).all():
        raise ValueError(
            "block_size needs weights of 1, because block_size is a number of rows. Pass "
            "block_size=None."
        )


def residual_parts(
    notion: Notion,
    proba: FloatArray,
    y: IntArray,
    weight: FloatArray,
    bandwidth: float | None,
) -> Iterator[tuple[float, Residuals]]:
    """Yield the residuals of each claim, or of the whole vector, with their weight v_c.

    Rows with weight zero are excluded.
    """
    _check_bandwidth(bandwidth)
    if notion.is_binary:
        yield from claim_residuals(notion.claims(proba, y, weight), bandwidth)
    else:
        yield 1.0, vector_residuals(proba, y, weight, bandwidth)


def _check_bandwidth(bandwidth: float | None) -> None:
    if bandwidth is not None and not 0 < bandwidth < np.inf:
        raise ValueError(
            f"bandwidth must be a positive number, got {bandwidth!r}. Pass bandwidth=None to "
            f"choose it from the data."
        )


def vector_residuals(
    proba: FloatArray, y: IntArray, weight: FloatArray, bandwidth: float | None
) -> Residuals:
    """Compute the residuals ``e_y - p`` of whole vectors."""
    present = np.flatnonzero(weight)
    points = np.asarray(proba[present], dtype=np.float64)
    residual = np.negative(points)
    residual[np.arange(len(present)), y[present]] += 1.0
    return Residuals(
        points, residual, weight[present], bandwidth or median_distance(points), present
    )


def claim_residuals(claims: Claims, bandwidth: float | None) -> Iterator[tuple[float, Residuals]]:
    """Yield residuals ``outcome - score`` of each claim with rows."""
    for claim in claims:
        present = np.flatnonzero(claim.weight)
        if present.size:
            points = claim.score[present, None]
            residual: FloatArray = claim.outcome[present, None] - points
            rows = np.arange(claims.n_rows)[claim.rows][present]
            width = bandwidth or median_distance(points)
            part = Residuals(points, residual, claim.weight[present], width, rows, claim.index)
            yield claims.share(claim), part


@dataclass(frozen=True, eq=False)
class Residuals:
    """Points, residuals (n, d) and weights (n,) of one claim (d = 1) or of vectors (d = K)."""

    points: FloatArray
    residual: FloatArray
    weight: FloatArray
    bandwidth: float
    rows: IntArray
    """Indices of the rows in the data."""
    claim: int = 0

    def estimate(self, estimator: str = "unbiased") -> float:
        """Return the squared error."""
        total = float(self.weight.sum())
        pairs = float(self.forms(self.weight[:, None] * self.residual).sum())
        if estimator == "biased":
            return pairs / total**2
        return self.without_self(pairs)

    def without_self(self, pairs: FloatArray | float) -> float:
        """Return the unbiased estimate, without the pairs of a row with itself.

        A weight is a number of copies. Two copies of a row form a pair, but a copy does not form a
        pair with itself.
        """
        total = float(self.weight.sum())
        diagonal = self.weight @ np.einsum("ij,ij->i", self.residual, self.residual)
        return float((pairs - diagonal) / (total * (total - 1))) if total > 1 else 0.0

    def forms(self, columns: FloatArray) -> FloatArray:
        """Return ``sum_ij kernel(i, j) c_i c_j`` for every column c of ``columns`` (n, m)."""
        if self.points.shape[1] == 1:
            return sorted_forms(self.points[:, 0] / self.bandwidth, columns)
        return tiled_forms(self.kernel, columns)

    def kernel(self, rows: slice, columns: slice) -> FloatArray:
        """Return the kernel values of two sets of rows."""
        scale = 1.0 if self.points.shape[1] == 1 else 2.0
        distance = scipy.spatial.distance.cdist(
            self.points[rows], self.points[columns], "cityblock"
        )
        return np.exp(distance / (-scale * self.bandwidth), out=distance)

    def block_estimates(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Return unbiased estimates of consecutive blocks, and their shares of all pairs.

        Blocks have ``size`` rows, but the last block may be smaller.
        """
        starts = range(0, max(1, len(self.points) - 1), size)
        estimates = np.array([self._block(slice(start, start + size)) for start in starts])
        sizes = np.array([min(size, len(self.points) - start) for start in starts])
        pairs = np.maximum(sizes * (sizes - 1), 1)
        return estimates, pairs / pairs.sum()

    def _block(self, rows: slice) -> float:
        residual = self.residual[rows]
        if len(residual) < 2:
            return 0.0
        products = self.kernel(rows, rows) * (residual @ residual.T)
        return float((products.sum() - np.trace(products)) / (len(residual) * (len(residual) - 1)))


def sorted_forms(point: FloatArray, columns: FloatArray) -> FloatArray:
    """Return ``sum_ij exp(-|x_i - x_j|) c_i c_j`` for every column c, in O(n log n).

    For sorted points ``exp(x_i - x_j) = exp(x_i) exp(-x_j)``, so the sum over i < j is a running
    sum. The running sum restarts in every segment of length ``_SEGMENT`` to avoid overflow.
    """
    order = np.argsort(point, kind="stable")
    x, c = point[order], columns[order]
    total = np.einsum("ij,ij->j", c, c)  # pairs of a row with itself
    before = np.zeros(c.shape[1])
    segment = ((x - x[0]) // _SEGMENT).astype(np.intp)
    starts = np.append(np.flatnonzero(np.diff(segment, prepend=-1)), len(x))
    for start, stop in pairwise(starts):
        rise = np.exp(x[start:stop] - x[start])[:, None]
        scaled = c[start:stop] * rise
        running = np.cumsum(scaled, axis=0)
        total += 2 * np.einsum("ij,ij->j", c[start:stop] / rise, running - scaled + before)
        if stop < len(x):
            # Rescale the running sum to the start of the next segment.
            before = (before + running[-1]) * np.exp(x[start] - x[stop])
    return total


def tiled_forms(gram: Callable[[slice, slice], FloatArray], columns: FloatArray) -> FloatArray:
    """Return ``sum_ij gram(i, j) c_i c_j`` for every column c of a symmetric ``gram``, in tiles."""
    total = np.zeros(columns.shape[1])
    for rows in row_blocks(len(columns), 1, elements=_TILE):
        for others in row_blocks(rows.stop, 1, elements=_TILE):
            # Tiles below the diagonal also represent their mirror images.
            factor = 1.0 if others.start == rows.start else 2.0
            total += factor * np.einsum(
                "ij,ij->j", columns[rows], gram(rows, others) @ columns[others]
            )
    return total


def median_distance(points: FloatArray) -> float:
    """Return the median total variation distance of distinct points, or 1.0 for a single point.

    Points are compared and sorted by a projection, so the result does not depend on their order or
    on duplicates.
    """
    # Use a fixed direction for which different points almost never have the same projection.
    direction = np.cos(np.arange(1, points.shape[1] + 1))
    _, first = np.unique(np.round(points @ direction, 12), return_index=True)
    subset = points[
        first[np.linspace(0, len(first) - 1, min(len(first), _MEDIAN_POINTS)).astype(np.intp)]
    ]
    if len(subset) == 1:
        return 1.0
    scale = 1.0 if points.shape[1] == 1 else 2.0
    return float(np.median(scipy.spatial.distance.pdist(subset, "cityblock")) / scale) or 1.0
