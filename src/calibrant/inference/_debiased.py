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

# With more quantities (classes, ranks) their covariances are bounded instead of estimated.
_MOST_QUANTITIES = 100
# Up to this many rows a quantity it is cheaper to go through pairs of rows than of quantities.
_ROWS_PER_QUANTITY = 10
# Up to this many joint cells a table is made of all of them, and not only of those that occur.
_JOINT_CELLS = 2**16
# Rows that a bin of equal mass holds at least; claims of fewer rows get fewer bins.
_ROWS_PER_BIN = 5
# Rows of a claim on average, below which the level is not to be relied on.
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
    r"""Debiased L2 calibration error with a confidence interval.

    The estimate is that of ``expected_calibration_error(norm=2, debias=True)``, but labels of a
    split are floored at 0 together. Its square is the mean over classes or ranks of

    .. math:: T = \sum_b \frac{n_b}{n} \Big[ (\bar o_b - \bar f_b)^2
        - \frac{\bar o_b (1 - \bar o_b)}{n_b - 1} \Big] ,

    and with residuals :math:`r_i = o_i - f_i` of mean :math:`\mu_b` in bin b its variance is the
    sum of

    .. math:: V_1 = \frac1n \text{Var}(2 \mu_{b(i)} r_i - \mu_{b(i)}^2) \quad\text{and}\quad
        V_2 = \frac{2}{n^2} \sum_b \frac{1}{n_b^2} \sum_{i \ne j \in b} (r_i - \mu_b)^2 (r_j -
        \mu_b)^2 ,

    of which the first leads for a miscalibrated model and the second for a calibrated one. Where a
    bin has few rows, outcomes that are all alike say little of their variance: it is at least that
    at the rate :math:`(n_b \bar o_b + z^2/2) / (n_b + z^2)` of Agresti and Coull. With estimated
    means :math:`V_1` comes out too large by about :math:`2 V_2`, so that the variance is estimated
    by :math:`s^2 = \max(V_1 - V_2, V_2)`. The squared error lies between :math:`T - z s` and

    .. math:: T + z s + \min\Big(\frac{z^2 s^2}{4T}, z \sqrt{V_2}\Big) ,

    and the interval holds the roots. The last term is there because :math:`s` grows with the error:
    where T came out small by chance, so did s.

    A bin needs two rows. Claims of fewer than ``5 n_bins`` rows get fewer bins of equal mass, of
    five rows each; what still falls into bins of one row is not counted in the estimate, and may
    have any error up to the largest that its score allows in the upper limit. Where claims are
    split by label, the error is at least that of the same claims without the split (Jensen): so
    are its estimate and its limits, and the interval is one of the larger of both binned errors.
    Claims without the split have more rows, and so finer bins.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
        Class-wise notions accept rows that do not sum to one.
    notion : str
        What is checked, see `calibrant.notions`.
    n_bins : int
    strategy : {"quantile", "uniform", "unique"}
    bins : fitted binning calibrator or `Bins`, optional
    level : float
        Coverage of the interval.
    inputs : {"proba", "logits", "log_proba"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
        How much each row counts. They are scaled to the effective number of rows (Kish).
    classes : labels of the columns, optional

    Returns
    -------
    Interval
        ``standard_error`` is that of the squared error, without the caution of few rows; ``note``
        says how many rows could not be
        counted. Where that is all of them the error cannot be identified, and the estimate is NaN.
        ``guarantee`` is "asymptotic", or "heuristic" where rows are not counted or claims have
        fewer than ten rows on average.

    Notes
    -----
    Asymptotic. The interval is one of the binned error: of the error of the model after its scores
    in a bin are averaged, which is at most that of the model itself; with 15 bins of a smooth error
    the difference is below a percent, with the few bins of few rows it can be large. Simulated
    coverage stands in ``docs/coverage.md``. The percentile bootstrap is no alternative, see
    `bootstrap_interval`. For several classes or ranks covariances over joint bins are taken into
    account, O(n K^2); with more than 100 they are bounded, and the interval is wider.

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
    chosen = as_notion(notion)
    claims, _ = claims_of(chosen, y_true, y_prob, sample_weight, classes, inputs=inputs)
    claims = claims.effective()
    table = bin_table(
        claims, n_bins=n_bins, strategy=strategy, bins=bins, rows_per_bin=_ROWS_PER_BIN
    )
    result = _error_limits(claims, table, level)
    if claims.n_labels > 1:
        whole = replace(claims, n_labels=1)
        merged = bin_table(whole, n_bins=n_bins, strategy="quantile", rows_per_bin=_ROWS_PER_BIN)
        result = result.at_least(_error_limits(whole, merged, level))
    return Interval(
        quantity=f"debiased L2 calibration error, {chosen.name}",
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
    """An error with its limits, and the standard error of its square."""

    estimate: float
    low: float
    high: float
    standard_error: float

    def at_least(self, other: _Limits) -> _Limits:
        """Limits of an error that is known to be no smaller than another."""
        return replace(
            self,
            estimate=float(np.fmax(self.estimate, other.estimate)),
            low=max(self.low, other.low),
            high=max(self.high, other.high),
        )


def _error_limits(claims: Claims, table: BinTable, level: float) -> _Limits:
    rows = float(claims.weight.sum()) * claims.n_quantities
    first, second = _mean_variance(claims, table), _pair_variance(claims, table)
    more, most = _hidden_variances(table, float(ndtri((1 + level) / 2)))
    # The first variance comes out too large by twice the second, also in what is added to it.
    low, high = _square_interval(
        float(table.debiased_square.sum() / rows), first + more + 2 * most, second + most, level
    )
    estimate = _estimate(table)
    return _Limits(
        estimate,
        low**0.5,
        # the estimate floors each quantity at 0, the interval only their sum
        float(np.fmax(min(1.0, high + _largest_uncounted(table) / rows) ** 0.5, estimate)),
        _standard_error(first, second),
    )


def _estimate(table: BinTable) -> float:
    """The root of the mean over quantities that rows are counted of, each at least 0; else NaN."""
    shape = table.n_quantities, table.n_labels
    square = np.maximum(table.debiased_square.reshape(shape).sum(axis=1), 0.0)
    counted = table.counted_weight.reshape(shape).sum(axis=1)
    each = square[counted > 0] / counted[counted > 0]
    return float(each.mean()) ** 0.5 if each.size else float("nan")


def _hidden_variances(table: BinTable, quantile: float) -> tuple[float, float]:
    """What outcomes that are all but alike hide of both variances: that at the rate of Agresti and
    Coull beyond that at the rate found.

    Quantities of a row exclude each other, so that their squared correlations add up to about
    Q / (Q - 1) of one of them.
    """
    counted = table.weight >= 2
    rows, hits = table.weight[counted], table.outcome[counted]
    own, careful = hits / rows, (hits + quantile**2 / 2) / (rows + quantile**2)
    found = own * (1 - own)
    added = np.maximum(0.0, careful * (1 - careful) - found)
    gap = (hits - table.score[counted]) / rows
    n, quantities = float(table.quantity_weight[0]), table.n_quantities
    share = 1.0 / (quantities * max(1, quantities - 1))
    first = 4 * float(np.sum(rows * gap**2 * added)) / n**2
    second = 2 * float(np.sum(((found + added) ** 2 - found**2) * (rows - 1) / rows)) / n**2
    return first * share, second * share


def _largest_uncounted(table: BinTable) -> float:
    """Sum of the squared errors that rows in bins of their own could have at most."""
    alone = (table.weight > 0) & (table.weight < 2)
    score = table.score[alone] / table.weight[alone]
    return float(table.weight[alone] @ np.maximum(score, 1 - score) ** 2)


def _is_sparse(table: BinTable) -> bool:
    """Whether rows are not counted, or claims that have any have few."""
    rows = table.claim_weight
    is_few = rows.sum() < _ROWS_PER_CLAIM * np.count_nonzero(rows)
    return bool(is_few or table.counted_weight.sum() < rows.sum())


def _count_note(table: BinTable) -> str:
    rows, counted = table.claim_weight.sum(), table.counted_weight.sum()
    if counted == rows:
        return ""
    if not counted:
        return "not identifiable: no bin holds two rows"
    share = 1 - counted / rows
    said = "less than 1%" if share < 0.01 else f"{share:.0%}"
    return f"{said} of the rows are alone in their bin and not in the estimate"


def _square_interval(
    square: float, mean_variance: float, pair_variance: float, level: float
) -> tuple[float, float]:
    """Limits of the squared error, not below 0."""
    reach = float(ndtri((1 + level) / 2)) * _standard_error(mean_variance, pair_variance)
    growth = float(ndtri((1 + level) / 2)) * pair_variance**0.5
    if square > 0:
        growth = min(growth, reach**2 / (4 * square))
    return max(0.0, square - reach), max(0.0, square + reach + growth)


def _standard_error(mean_variance: float, pair_variance: float) -> float:
    return float(max(mean_variance - pair_variance, pair_variance)) ** 0.5


def _cell_means(table: BinTable) -> FloatArray:
    """Mean residual of each cell, flat; 0 where less than two rows are, as in the debiased
    error.
    """
    counted = table.weight >= 2
    return np.divide(
        table.outcome - table.score, table.weight, out=np.zeros_like(table.weight), where=counted
    ).ravel()


def _mean_variance(claims: Claims, table: BinTable) -> float:
    """Variance that the mean residuals of the bins bring."""
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
    """Variance that pairs of rows in the same bins bring.

    A covariance of two quantities is the sum over pairs of rows that share the bins of both.
    """
    if claims.n_quantities > _MOST_QUANTITIES:
        own = (_pairs(column, column, claims.weight) for column in _columns(claims, table))
        spread = sum(max(0.0, part) ** 0.5 for part in own) ** 2
    else:
        columns = list(_columns(claims, table))
        is_short = claims.n_rows <= _ROWS_PER_QUANTITY * claims.n_quantities
        spread = (_pairs_of_rows if is_short else _all_pairs)(columns, claims.weight)
    return 2 * max(0.0, spread) / float(claims.n_quantities * claims.weight.sum()) ** 2


def _columns(claims: Claims, table: BinTable) -> Iterator[Column]:
    """Of each quantity the residuals about the mean of their cell, divided by the root of its rows,
    and the cells.
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
    """The sum of `_all_pairs` by rows: of two rows the products of their deviations in the cells
    that they share, over all quantities, squared. O(n^2 Q / B).
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
    for j, one in enumerate(columns):
        total += _pairs(one, one, weight) + 2 * sum(
            _pairs(one, other, weight) for other in columns[:j]
        )
    return total


def _pairs(one: Column, other: Column, weight: FloatArray) -> float:
    """Sum over pairs of different rows in the same joint cell of the products of their
    deviations.
    """
    joint = one[1] if one is other else one[1] * (other[1].max() + 1) + other[1]
    if joint.max() > _JOINT_CELLS:
        joint = np.unique(joint, return_inverse=True)[1]
    product = one[0] * other[0]
    return float(np.sum(np.bincount(joint, weight * product) ** 2) - weight @ product**2)
