"""Kernel test, which compares the kernel calibration error with its null distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import stdtr

from calibrant._kernels.blocks import ROUND_OFF, WORK_MEMORY, row_blocks
from calibrant._output.progress import tracked
from calibrant._typing import FloatArray, IntArray, LabelsLike, Rng, ScoresLike, WeightsLike
from calibrant._validation import check_count, check_option
from calibrant.inference._draws import LabelDraws, label_hypothesis, with_rest
from calibrant.inference._results import CalibrationTestResult, monte_carlo_p_value
from calibrant.inference._rows import check_rows
from calibrant.metrics._kernel import Residuals, residual_parts, tiled_forms
from calibrant.notions import Notion, as_notion

_METHODS = ("resampling", "wild", "block")
_BLOCKS = 10
"""Default minimum number of blocks. Fewer and larger blocks have more power."""
_BLOCK_ROWS = 1000
"""Default maximum number of rows per block. Time and memory grow with its square."""

Parts = list[tuple[float, Residuals]]
Estimates = Callable[[Residuals], FloatArray]


def kernel_test(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "canonical",
    method: str = "resampling",
    bandwidth: float | None = None,
    block_size: int | None = None,
    n_resamples: int = 1000,
    rng: Rng = None,
    progress: bool = False,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> CalibrationTestResult:
    r"""Test calibration with the kernel calibration error.

    The test needs no bins and, by default, tests the whole probability vector.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "canonical"
        Type of calibration: "canonical" (the whole vector) or a binary type, see
        `calibrant.notions`.
    method : {"resampling", "wild", "block"}, default "resampling"
        Method for the null distribution, see Notes. Use "block" for many rows.
    bandwidth : float, optional
        Bandwidth of the kernel. By default, the bandwidth is the median distance between distinct
        predictions. This distance does not depend on the labels, so the level of the test holds.
    block_size : int, optional
        Rows per block for ``method="block"``. By default, there are at least 10 blocks of 2 to
        1,000 rows. The power grows with the block size. For 2,000 rows, five classes and a
        temperature of 1.5, the power is 0.3 with 50 blocks and 0.9 with 10 blocks.
    n_resamples : int, default 1000
        Number of resamples.
    rng : int, Generator or None
        Seed or generator of the resamples.
    progress : bool, default False
        Whether to show a progress bar if standard error is a terminal.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. All positive weights must be equal. Rows with weight 0 are excluded.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    CalibrationTestResult
        A small p-value is evidence against calibration. A large p-value does not show calibration.

    See Also
    --------
    calibrant.metrics.kernel_calibration_error : Compute the statistic.
    consistency_test : Test of binned and other calibration errors.

    Notes
    -----
    The statistic T is the unbiased squared kernel calibration error. The mean of T is zero under
    calibration and positive otherwise.

    - ``"resampling"`` draws labels from the predictions. The p-value is :math:`p = (1 + \#\{T^* \ge
      T\}) / (1 + B)`.
    - ``"wild"`` multiplies every residual :math:`r_i` by a random sign :math:`s_i`, which gives
      :math:`T^* = \frac{1}{n(n-1)} \sum_{i \ne j} s_i s_j k(p_i, p_j) \langle r_i, r_j \rangle`.
    - ``"block"`` is a one-sided t-test of the independent estimates of blocks of rows.

    "resampling" is exact for every n. The null hypothesis of "resampling" is that labels are drawn
    from the predictions. For types of calibration with one claim per row (confidence, top-label,
    ...), the hypothesis is only that outcomes are drawn from the scores of these claims. "wild" and
    "block" only assume that residuals have mean zero given the claims. Both methods are asymptotic
    in the number of rows or blocks.

    After sorting, a resample costs O(n) per claim for binary types. For "canonical", a resample
    costs O(n^2 K), or O(n^2) with "wild". The computation uses tiles, without an n x n matrix.
    "block" costs O(n m K) in total for blocks of m rows. "block" has the lowest power, because it
    only compares rows of the same block.

    References
    ----------
    Widmann, Lindsten & Zachariah (2019), arXiv:1910.11385; Leucht & Neumann (2013), Dependent wild
    bootstrap for degenerate U- and V-statistics, doi:10.1016/j.jmva.2013.03.003.

    Examples
    --------
    >>> from calibrant.datasets import noisy_simplex
    >>> data = noisy_simplex(300, 3, noise=0.6, rng=0)
    >>> kernel_test(data.labels, data.proba, n_resamples=199, rng=0).p_value
    0.005
    """
    check_option(method, "method", _METHODS)
    check_count(n_resamples, "n_resamples")
    proba, y, weight, names = check_rows(
        y_true, y_prob, sample_weight, classes, inputs, only_equal="The kernel test"
    )
    kind = as_notion(notion, vectors=True).bound(names)
    if len(y) < 2:
        raise ValueError(
            "The kernel test compares pairs of rows, so it needs at least 2 rows, got 1. Pass more "
            "rows."
        )
    parts = list(residual_parts(kind, proba, y, weight, bandwidth))
    if method == "block":
        return _block_test(parts, kind, len(y), block_size)
    null = _WildNull() if method == "wild" else _LabelNull.of(kind, proba, y, weight)
    statistic = sum(share * part.estimate() for share, part in parts)
    resampled = _resample(parts, null, np.random.default_rng(rng), len(y), n_resamples, progress)
    return CalibrationTestResult(
        test=f"kernel test, {kind.name}, {method}",
        statistic=float(statistic),
        p_value=monte_carlo_p_value(statistic, resampled),
        null=null.hypothesis,
        guarantee=null.guarantee,
        n_samples=len(y),
        n_resamples=n_resamples,
        expected=float(resampled.mean()),
    )


class _Null(Protocol):
    """Method that draws the statistic under the null hypothesis."""

    @property
    def hypothesis(self) -> str: ...

    @property
    def guarantee(self) -> str: ...

    def columns(self, n_classes: int) -> int:
        """Return how many numbers per row a draw needs if points have ``n_classes`` coordinates."""

    def draw(self, generator: np.random.Generator, n_rows: int, size: int) -> Estimates:
        """Draw ``size`` values of the statistic from all rows.

        The method returns a function that computes the estimates of a claim, (size,).
        """


@dataclass(frozen=True, eq=False)
class _LabelNull:
    """Draw labels from the predictions."""

    draws: LabelDraws
    n_labels: int
    hypothesis: str
    guarantee: str = "exact"

    @classmethod
    def of(cls, notion: Notion, proba: FloatArray, y: IntArray, weight: FloatArray) -> _LabelNull:
        if not notion.is_binary:
            return cls(LabelDraws(proba), 1, label_hypothesis(None))
        claims = notion.claims(proba, y, weight)
        score = claims.select(slice(0, len(y))).score
        return cls(
            LabelDraws(with_rest(score, claims.n_columns)),
            claims.n_labels,
            label_hypothesis(claims),
        )

    def columns(self, n_classes: int) -> int:
        return n_classes

    def draw(self, generator: np.random.Generator, n_rows: int, size: int) -> Estimates:
        labels = self.draws.labels(generator, size)

        def estimates(part: Residuals) -> FloatArray:
            drawn = labels[:, part.rows].T
            if part.points.shape[1] == 1:
                residual = (drawn == part.claim // self.n_labels) - part.points
            else:
                residual = _vector_residuals(part.points, drawn)
            diagonal = np.einsum("ij,ij->j", residual, residual)
            return _per_pair(part, (part.forms(residual) - diagonal).reshape(-1, size).sum(axis=0))

        return estimates


@dataclass(frozen=True)
class _WildNull:
    """Multiply residuals by random signs."""

    hypothesis: str = "residuals have mean zero given the predictions"
    guarantee: str = "asymptotic"

    def columns(self, n_classes: int) -> int:
        return 1  # one sign per row

    def draw(self, generator: np.random.Generator, n_rows: int, size: int) -> Estimates:
        signs = 2.0 * generator.integers(0, 2, (n_rows, size), dtype=np.int8) - 1

        def estimates(part: Residuals) -> FloatArray:
            return _per_pair(part, _signed_forms(part, signs[part.rows]) - np.sum(part.residual**2))

        return estimates


def _signed_forms(part: Residuals, signs: FloatArray) -> FloatArray:
    """Return the kernel forms of the residuals with a sign per row, for each column of signs."""
    residual = part.residual
    if part.points.shape[1] == 1:
        return part.forms(signs * residual)
    # All coordinates of a row share one sign, so the matrix can include the products of residuals.
    # The quadratic form then needs one column per draw instead of K.
    return tiled_forms(lambda a, b: part.kernel(a, b) * (residual[a] @ residual[b].T), signs)


def _vector_residuals(proba: FloatArray, labels: IntArray) -> FloatArray:
    """Compute ``e_y - p`` for the labels (n, m) of m draws, (n, K m)."""
    n_rows, size = labels.shape
    residual = np.repeat(-proba[:, :, None], size, axis=2)
    residual[np.arange(n_rows)[:, None], labels, np.arange(size)] += 1.0
    return residual.reshape(n_rows, -1)


def _per_pair(part: Residuals, pairs: FloatArray) -> FloatArray:
    n_rows = len(part.points)
    return pairs / max(1, n_rows * (n_rows - 1))


def _resample(
    parts: Parts,
    null: _Null,
    generator: np.random.Generator,
    n_rows: int,
    n_resamples: int,
    progress: bool,
) -> FloatArray:
    # Each block of draws computes the kernel matrix again, so blocks are as large as memory allows.
    width = max(null.columns(part.points.shape[1]) for _, part in parts)
    # Two arrays of this size are in memory at the same time.
    blocks = list(row_blocks(n_resamples, n_rows * width, elements=WORK_MEMORY // 2))

    def errors() -> Iterator[FloatArray]:
        for block in blocks:
            estimates = null.draw(generator, n_rows, block.stop - block.start)
            yield np.sum([share * estimates(part) for share, part in parts], axis=0)

    portions = tracked(errors(), total=len(blocks), description="Resampling", progress=progress)
    return np.concatenate(list(portions))


def _block_test(
    parts: Parts, notion: Notion, n_rows: int, block_size: int | None
) -> CalibrationTestResult:
    if notion.splits_by_label:
        raise ValueError(
            f"method='block' needs claims about all rows, but {notion.name!r} splits the rows by "
            f"label. Pass method='resampling'."
        )
    size = check_count(
        int(np.clip(n_rows // _BLOCKS, 2, _BLOCK_ROWS)) if block_size is None else block_size,
        "block_size",
        minimum=2,
    )
    if n_rows < 2 * size:
        raise ValueError(
            f"method='block' needs at least two blocks, but {n_rows} rows are fewer than twice "
            f"block_size={size}. Pass block_size={n_rows // 2} or method='resampling'."
        )
    n_blocks = n_rows // size  # an incomplete last block has a different variance
    estimates = np.sum(
        [share * part.block_estimates(size)[0][:n_blocks] for share, part in parts], axis=0
    )
    return CalibrationTestResult(
        test=f"kernel test, {notion.name}, blocks of {size} rows",
        statistic=float(estimates.mean()),
        p_value=_one_sided_t(estimates),
        null=_WildNull.hypothesis,
        guarantee="asymptotic",
        n_samples=n_rows,
    )


def _one_sided_t(values: FloatArray) -> float:
    """Return the p-value of the hypothesis that the mean is at most zero."""
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    if abs(mean) <= ROUND_OFF:
        return 1.0
    return float(stdtr(len(values) - 1, -mean / error)) if error > 0 else float(mean < 0)
