"""Confidence interval of the debiased L2 calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from calibrant._kernels.blocks import CALL_BLOCK, sum_blocks
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.binning import BinTable, bin_table, cell_index
from calibrant.inference._results import Interval, check_level
from calibrant.notions import Claims, Notion, as_notion, claims_of

# With more quantities (classes, ranks), their covariances are bounded instead of estimated.
_MOST_QUANTITIES = 100
# Up to this many rows per quantity, looping over pairs of rows is cheaper than over pairs of
# quantities.
_ROWS_PER_QUANTITY = 10
# Up to this many joint cells, counts are stored for all cells. Above this number, counts are
# stored only for occupied cells.
_JOINT_CELLS = 2**16
# Minimum number of rows per quantile bin. Claims with fewer rows get fewer bins.
_ROWS_PER_BIN = 5
# With fewer rows per claim on average, the level is not reliable.
_ROWS_PER_CLAIM = 10


def debiased_interval(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 15,
    strategy: str = "quantile",
    bins: Any = None,
    level: float = 0.95,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> Interval:
    r"""Estimate the debiased L2 calibration error with a confidence interval.

    The estimate equals ``expected_calibration_error(norm=2, debias=True)``, except that the floor
    at 0 applies to classes or ranks instead of claims (binary events). Lower is better, and the
    true error of a calibrated model is 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem. For
        class-wise types of calibration, rows need not sum to one.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`.
    n_bins : int, default 15
        Number of bins per claim.
    strategy : {"quantile", "uniform", "unique"}, default "quantile"
        Quantile bins, equal-width bins, or one bin per distinct score.
    bins : fitted binning calibrator or `Bins`, optional
        Use these bins instead of ``n_bins`` and ``strategy``.
    level : float, default 0.95
        Coverage of the interval.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights. Weights are scaled to the effective number of rows (Kish).
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    Interval
        ``standard_error`` is the standard error of the squared error, without the corrections for
        few rows. Rows that are alone in their bin are not in the estimate, and ``note`` states the
        share of these rows. If no row is in the estimate, the estimate is NaN. ``guarantee`` is
        "asymptotic", or "heuristic" if some rows are not in the estimate or claims have fewer than
        ten rows on average.

    See Also
    --------
    calibrant.metrics.expected_calibration_error : Compute the estimate.
    consistency_test : Test whether a calibration error exceeds sampling noise.
    calibration_gain : Confidence interval of the calibration error in a proper score.

    Notes
    -----
    The squared estimate is the mean over classes or ranks of

    .. math:: T = \sum_b \frac{n_b}{n} \Big[ (\bar o_b - \bar f_b)^2
        - \frac{\bar o_b (1 - \bar o_b)}{n_b - 1} \Big] .

    With residuals :math:`r_i = o_i - f_i` of mean :math:`\mu_b` in bin b, the variance of T is the
    sum of

    .. math:: V_1 = \frac1n \text{Var}(2 \mu_{b(i)} r_i - \mu_{b(i)}^2) \quad\text{and}\quad
        V_2 = \frac{2}{n^2} \sum_b \frac{1}{n_b^2} \sum_{i \ne j \in b} (r_i - \mu_b)^2 (r_j -
        \mu_b)^2 .

    :math:`V_1` dominates for miscalibrated models, and :math:`V_2` for calibrated models. With
    estimated means :math:`V_1` is too large by about :math:`2 V_2`, so the variance is estimated by
    :math:`s^2 = \max(V_1 - V_2, V_2)`. In bins with few rows, equal outcomes underestimate the
    variance. The estimated variance is therefore at least the variance at the rate :math:`(n_b \bar
    o_b + z^2/2) / (n_b + z^2)` of Agresti and Coull. The squared error lies between :math:`T - z s`
    and

    .. math:: T + z s + \min\Big(\frac{z^2 s^2}{4T}, z \sqrt{V_2}\Big) ,

    and the interval consists of the square roots. The last term is needed because :math:`s` grows
    with the error. If sampling noise makes T too small, s is also too small.

    A bin needs two rows. Claims with fewer than ``5 n_bins`` rows get fewer quantile bins, of five
    rows each. Rows that are still alone in their bin are not in the estimate. The upper limit
    assumes the largest possible error for these rows. If claims are split by label, the error is at
    least the error without the split (Jensen). Estimate and limits are raised accordingly, so the
    interval estimates the larger of the two binned errors. Claims without the split have more rows
    and therefore finer bins.

    The interval is asymptotic and refers to the binned error, which is the error after averaging
    scores within bins. The binned error is at most the error of the model itself. With 15 bins and
    a smooth error, the difference is below 1%. With few rows and therefore few bins, the difference
    can be large. :doc:`/evidence/coverage` shows simulated coverages. The percentile bootstrap is
    not valid here, see `bootstrap_interval`. With several classes or ranks, covariances over joint
    bins are estimated in O(n K^2). With more than 100 classes or ranks, the covariances are bounded
    instead, and the interval is wider.

    References
    ----------
    Kumar, Liang & Ma (2019), Verified uncertainty calibration, arXiv:1909.10155; Lee et al. (2023),
    T-Cal: an optimal test for the calibration of predictive models, arXiv:2203.01850; Sun et al.
    (2024), A confidence interval for the l2 expected calibration error, arXiv:2408.08998; Agresti &
    Coull (1998), Approximate is better than "exact" for interval estimation of binomial
    proportions, doi:10.1080/00031305.1998.10480550.

    Examples
    --------
    >>> from calibrant.datasets import linear_family
    >>> data = linear_family(5000, 0.3, rng=0)
    >>> result = debiased_interval(data.labels, data.proba, notion="class-1")
    >>> result.low < data.errors["class-1-l2"] < result.high
    True
    """
    check_level(level)
    kind = as_notion(notion)
    claims, _ = claims_of(kind, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claims = claims.effective()
    table = bin_table(
        claims, n_bins=n_bins, strategy=strategy, bins=bins, rows_per_bin=_ROWS_PER_BIN
    )
    result = _error_limits(claims, table, level)
    if claims.n_labels > 1:
        unsplit_claims = replace(claims, n_labels=1)
        unsplit_table = bin_table(
            unsplit_claims, n_bins=n_bins, strategy="quantile", rows_per_bin=_ROWS_PER_BIN
        )
        result = result.at_least(_error_limits(unsplit_claims, unsplit_table, level))
    return Interval(
        quantity=f"debiased L2 calibration error, {kind.name}",
        estimate=result.estimate,
        low=result.low,
        high=result.high,
        level=level,
        standard_error=result.standard_error,
        guarantee="heuristic" if _is_sparse(table) else "asymptotic",
        n_samples=float(claims.weight.sum()),
        note=_count_note(table),
    )


@dataclass(frozen=True)
class _Limits:
    """An error, its confidence limits, and the standard error of its square."""

    estimate: float
    low: float
    high: float
    standard_error: float

    def at_least(self, other: _Limits) -> _Limits:
        """Raise estimate and limits to at least the values of an error that is never larger."""
        return replace(
            self,
            estimate=float(np.fmax(self.estimate, other.estimate)),
            low=max(self.low, other.low),
            high=max(self.high, other.high),
        )


def _error_limits(claims: Claims, table: BinTable, level: float) -> _Limits:
    rows = float(claims.weight.sum()) * claims.n_quantities
    square = float(table.debiased_square.sum() / rows)
    first, second = _mean_variance(claims, table), _pair_variance(claims, table)
    more_first, more_second = _hidden_variances(table, float(ndtri((1 + level) / 2)))
    # ``first`` is too large by about 2 * ``second``, and `_standard_error` subtracts this excess.
    # The correction of ``first`` must therefore include the excess, 2 * ``more_second``.
    corrected = first + more_first + 2 * more_second, second + more_second
    low, high = _square_interval(square, *corrected, level)
    estimate = _estimate(table)
    largest = min(1.0, high + _largest_uncounted(table) / rows) ** 0.5
    # The estimate floors each quantity at 0. The interval floors only the sum of the quantities.
    largest = float(np.fmax(largest, estimate))
    return _Limits(estimate, low**0.5, largest, _standard_error(first, second))


def _estimate(table: BinTable) -> float:
    """Return the root mean over quantities with counted rows, or NaN if there are none."""
    shape = table.n_quantities, table.n_labels
    square = np.maximum(table.debiased_square.reshape(shape).sum(axis=1), 0.0)
    counted = table.counted_weight.reshape(shape).sum(axis=1)
    means = square[counted > 0] / counted[counted > 0]
    return float(means.mean()) ** 0.5 if means.size else float("nan")


def _hidden_variances(table: BinTable, quantile: float) -> tuple[float, float]:
    """Correct both variances for bins in which nearly all outcomes are equal.

    The correction is the variance at the rate of Agresti and Coull minus the variance at the
    observed rate. The Q quantities of a row are mutually exclusive. The squared correlations of a
    quantity with all quantities therefore add up to about Q / (Q - 1).
    """
    counted = table.weight >= 2
    rows, hits = table.weight[counted], table.outcome[counted]
    rate, shrunken = hits / rows, (hits + quantile**2 / 2) / (rows + quantile**2)
    observed = rate * (1 - rate)
    added = np.maximum(0.0, shrunken * (1 - shrunken) - observed)
    gap = (hits - table.score[counted]) / rows
    n, quantities = float(table.quantity_weight[0]), table.n_quantities
    share = 1.0 / (quantities * max(1, quantities - 1))
    first = 4 * float(np.sum(rows * gap**2 * added)) / n**2
    second = 2 * float(np.sum(((observed + added) ** 2 - observed**2) * (rows - 1) / rows)) / n**2
    return first * share, second * share


def _largest_uncounted(table: BinTable) -> float:
    """Largest possible sum of squared errors of rows that are alone in their bin."""
    is_alone = (table.weight > 0) & (table.weight < 2)
    score = table.score[is_alone] / table.weight[is_alone]
    return float(table.weight[is_alone] @ np.maximum(score, 1 - score) ** 2)


def _is_sparse(table: BinTable) -> bool:
    """Return whether rows are missing from the estimate or claims have few rows on average."""
    rows = table.claim_weight
    is_few = rows.sum() < _ROWS_PER_CLAIM * np.count_nonzero(rows)
    return bool(is_few or table.counted_weight.sum() < rows.sum())


def _count_note(table: BinTable) -> str:
    """State the share of rows that are not in the estimate."""
    rows, counted = table.claim_weight.sum(), table.counted_weight.sum()
    if counted == rows:
        return ""
    if not counted:
        return "not identifiable, because no bin contains two rows"
    share = 1 - counted / rows
    percentage = "less than 1%" if share < 0.01 else f"{share:.0%}"
    return f"{percentage} of the rows are alone in their bin and not in the estimate"


def _square_interval(
    square: float, mean_variance: float, pair_variance: float, level: float
) -> tuple[float, float]:
    """Compute the confidence limits of the squared error, which are at least 0."""
    reach = float(ndtri((1 + level) / 2)) * _standard_error(mean_variance, pair_variance)
    # The standard error grows with the error, see the Notes of `debiased_interval`.
    growth = float(ndtri((1 + level) / 2)) * pair_variance**0.5
    if square > 0:
        growth = min(growth, reach**2 / (4 * square))
    return max(0.0, square - reach), max(0.0, square + reach + growth)


def _standard_error(mean_variance: float, pair_variance: float) -> float:
    return float(max(mean_variance - pair_variance, pair_variance)) ** 0.5


def _cell_means(table: BinTable) -> FloatArray:
    """Return the mean residual of each cell, or 0 if the cell has fewer than two rows."""
    counted = table.weight >= 2
    return np.divide(
        table.outcome - table.score, table.weight, out=np.zeros_like(table.weight), where=counted
    ).ravel()


def _mean_variance(claims: Claims, table: BinTable) -> float:
    """Compute the variance due to the mean residuals of the bins (V_1 of the Notes)."""
    means, n = _cell_means(table), float(claims.weight.sum())

    def moments(rows: slice) -> Any:
        block = claims.select(rows)
        mean = means[cell_index(claims, block, table.bins)]
        influence = (2 * mean * block.residual() - mean**2).sum(axis=1) / claims.n_quantities
        return claims.weight[rows] @ influence, claims.weight[rows] @ influence**2

    first, second = sum_blocks(moments, claims.n_rows, claims.n_columns, elements=CALL_BLOCK)
    return max(0.0, float(second / n - (first / n) ** 2)) / n


Column = tuple[FloatArray, IntArray]


def _pair_variance(claims: Claims, table: BinTable) -> float:
    """Compute the variance due to pairs of rows in the same bins (V_2 of the Notes).

    The covariance of two quantities is a sum over pairs of rows that share a bin in both
    quantities.
    """
    if claims.n_quantities > _MOST_QUANTITIES:
        # By Cauchy-Schwarz, the variance of a sum is at most the squared sum of standard
        # deviations.
        sums = (_pairs(column, column, claims.weight) for column in _columns(claims, table))
        spread = sum(max(0.0, part) ** 0.5 for part in sums) ** 2
    else:
        columns = list(_columns(claims, table))
        is_short = claims.n_rows <= _ROWS_PER_QUANTITY * claims.n_quantities
        spread = (_pairs_of_rows if is_short else _all_pairs)(columns, claims.weight)
    return 2 * max(0.0, spread) / float(claims.n_quantities * claims.weight.sum()) ** 2


def _columns(claims: Claims, table: BinTable) -> Iterator[Column]:
    """Yield scaled residuals and cells per quantity.

    Residuals are centered at the mean of their cell, and divided by the square root of its number
    of rows.
    """
    means, counts = _cell_means(table).reshape(table.weight.shape), table.weight
    scale = np.divide(1.0, np.sqrt(counts), out=np.zeros_like(counts), where=counts >= 2)
    deviation, cell = np.empty(claims.n_rows), np.empty(claims.n_rows, dtype=np.intp)
    for claim in claims:
        label, place = claim.index % claims.n_labels, table.bins.assign(claim.score, claim.index)
        cell[claim.rows] = label * table.n_bins + place
        deviation[claim.rows] = (claim.outcome - claim.score - means[claim.index, place]) * scale[
            claim.index, place
        ]
        if label == claims.n_labels - 1:
            yield deviation.copy(), cell.copy()


def _pairs_of_rows(columns: list[Column], weight: FloatArray) -> float:
    """Compute the sum of `_all_pairs` by looping over pairs of rows, in O(n^2 Q / B) time.

    For two rows, the products of their deviations in shared cells are summed over quantities and
    squared.
    """
    size = 1 + max(int(cell.max()) for _, cell in columns)
    cells = np.concatenate([cell + size * q for q, (_, cell) in enumerate(columns)])
    rows = np.tile(np.arange(len(weight)), len(columns))
    values = np.concatenate([deviation for deviation, _ in columns])
    shape = len(weight), size * len(columns)
    table = sparse.csr_array((values, (rows, cells)), shape=shape)
    product = (table @ table.T).toarray()
    return float(weight @ product**2 @ weight - weight @ np.diag(product) ** 2)


def _all_pairs(columns: list[Column], weight: FloatArray) -> float:
    total = 0.0
    for j, column in enumerate(columns):
        total += _pairs(column, column, weight) + 2 * sum(
            _pairs(column, other, weight) for other in columns[:j]
        )
    return total


def _pairs(column: Column, other: Column, weight: FloatArray) -> float:
    """Sum the products of deviations over pairs of different rows in the same joint cell."""
    joint = column[1] if column is other else column[1] * (other[1].max() + 1) + other[1]
    if joint.max() > _JOINT_CELLS:
        joint = np.unique(joint, return_inverse=True)[1]
    product = column[0] * other[0]
    return float(np.sum(np.bincount(joint, weight * product) ** 2) - weight @ product**2)
