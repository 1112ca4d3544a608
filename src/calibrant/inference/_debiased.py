"""Confidence interval of the debiased L2 calibration error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrant._blocks import COLUMN_ELEMENTS, sum_blocks
from calibrant._typing import FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.binning import BinTable, bin_table, cell_index
from calibrant.inference._results import Interval, check_level
from calibrant.notions import Claims, Notion, as_notion, claims_of

# With more quantities (classes, ranks) their covariances are bounded instead of estimated.
_MOST_QUANTITIES = 100
# Up to this many joint cells a table is made of all of them, and not only of those that occur.
_JOINT_CELLS = 2**16


def debiased_interval(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 15,
    strategy: str = "quantile",
    bins: Any = None,
    level: float = 0.95,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> Interval:
    r"""Debiased L2 calibration error with a confidence interval.

    The estimate is ``expected_calibration_error(norm=2, debias=True)``. Its square, before
    flooring, is the mean over claims of

    .. math:: T = \sum_b \frac{n_b}{n} \Big[ (\bar o_b - \bar f_b)^2
        - \frac{\bar o_b (1 - \bar o_b)}{n_b - 1} \Big] ,

    and with residuals :math:`r_i = o_i - f_i` of mean :math:`\mu_b` in bin b its variance is the
    sum of

    .. math:: V_1 = \frac1n \text{Var}(2 \mu_{b(i)} r_i - \mu_{b(i)}^2) \quad\text{and}\quad
        V_2 = \frac{2}{n^2} \sum_b \frac{1}{n_b^2} \sum_{i \ne j \in b} (r_i - \mu_b)^2 (r_j -
        \mu_b)^2 ,

    of which the first leads for a miscalibrated model and the second for a calibrated one. With
    estimated means
    :math:`V_1` comes out too large by about :math:`2 V_2`, so that the variance is estimated by
    :math:`s^2 = \max(V_1 - V_2, V_2)`. The squared error lies between :math:`T - z s` and

    .. math:: T + z s + \min\Big(\frac{z^2 s^2}{4T}, z \sqrt{V_2}\Big) ,

    and the interval holds the roots. The last term is there because :math:`s` grows with the error:
    where T came out small by chance, so did s.

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
    sample_weight : weights of shape (n,), optional
        Numbers of copies.
    classes : labels of the columns, optional

    Returns
    -------
    Interval
        ``standard_error`` is that of the squared error.

    Notes
    -----
    Asymptotic. The interval is one of the binned error: of the error of the model after its scores
    in a bin are averaged, which is at most that of the model itself; with 15 bins of a smooth error
    the difference is below a percent. The percentile bootstrap is no alternative, see
    `bootstrap_interval`. For several classes or ranks covariances over joint bins are taken into
    account, O(n K^2); with more than 100 they are bounded, and the interval is wider.

    References
    ----------
    Kumar, Liang & Ma (2019), Verified uncertainty calibration, arXiv:1909.10155; Lee et al. (2023),
    T-Cal: an optimal test for the calibration of predictive models, arXiv:2203.01850; Sun et al.
    (2024), A confidence interval for the l2 expected calibration error, arXiv:2408.08998.

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
    claims, _ = claims_of(chosen, y_true, y_prob, sample_weight, classes)
    table = bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)
    square = float((table.debiased_square / table.quantity_weight).sum() / table.n_quantities)
    low, high, error = _square_interval(
        square, _mean_variance(claims, table), _pair_variance(claims, table), level
    )
    estimate = table.error(norm=2, debias=True)
    return Interval(
        quantity=f"debiased L2 calibration error, {chosen.name}",
        estimate=estimate,
        low=low**0.5,
        # the estimate floors each claim at 0, the interval only their sum
        high=max(high**0.5, estimate),
        level=level,
        standard_error=error,
        guarantee="asymptotic",
        n_samples=float(claims.weight.sum()),
    )


def _square_interval(
    square: float, mean_variance: float, pair_variance: float, level: float
) -> tuple[float, float, float]:
    """Limits of the squared error, not below 0, and its standard error."""
    quantile = float(ndtri((1 + level) / 2))
    error = max(mean_variance - pair_variance, pair_variance) ** 0.5
    growth = quantile * pair_variance**0.5
    if square > 0:
        growth = min(growth, (quantile * error) ** 2 / (4 * square))
    return max(0.0, square - quantile * error), max(0.0, square + quantile * error + growth), error


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

    first, second = sum_blocks(moments, claims.n_rows, claims.n_columns, elements=COLUMN_ELEMENTS)
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
        spread = _all_pairs(list(_columns(claims, table)), claims.weight)
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
