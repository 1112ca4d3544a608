"""Compare methods over many datasets by Friedman's test and critical differences of ranks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import chdtrc, ndtri

from calibrant._output.results import AsText
from calibrant._typing import AnyArray
from calibrant._validation import as_array, check_count, check_option


@dataclass(frozen=True)
class FriedmanResult(AsText):
    """Result of `friedman_test`.

    Attributes
    ----------
    statistic : float
        Friedman's chi-squared, corrected for ties.
    p_value : float
        P-value of the null hypothesis.
    average_ranks : tuple of float
        Average rank of each method. Rank 1 is best.
    n_datasets, n_methods : int
        Numbers of rows and columns of the table of scores.
    null : str
        The null hypothesis.
    guarantee : str
        "asymptotic", because the level holds only for many datasets.

    See Also
    --------
    friedman_test : Run the test.
    """

    statistic: float
    p_value: float
    average_ranks: tuple[float, ...]
    n_datasets: int
    n_methods: int
    null: str = "all methods have the same distribution of ranks"
    guarantee: str = "asymptotic"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        ranks = ", ".join(f"{rank:.2f}" for rank in self.average_ranks)
        return (
            f"Friedman test of {self.n_methods} methods on {self.n_datasets} datasets: statistic "
            f"{self.statistic:.2f}, p-value {self.p_value:.3g} ({self.guarantee}). Average ranks "
            f"(1 is best): {ranks}."
        )


def friedman_test(scores: Any) -> FriedmanResult:
    r"""Test whether methods differ over several datasets (Friedman's test).

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        Score of each method on each dataset. Lower is better. You can also pass ranks.

    Returns
    -------
    FriedmanResult
        A small p-value is evidence that methods differ.

    See Also
    --------
    critical_difference : Smallest significant difference of average ranks.
    calibrant.plots.CriticalDifferenceDisplay : Plot a diagram of average ranks.

    Notes
    -----
    Methods are ranked within each dataset, with rank 1 for the lowest score. Tied methods share
    their average rank. With average ranks :math:`\bar R_j` of k methods over n datasets and tied
    groups of t methods,

    .. math:: \chi^2 = \frac{\frac{12 n}{k(k+1)} \sum_j \big(\bar R_j - \tfrac{k+1}{2}\big)^2}
        {1 - \frac{\sum (t^3 - t)}{n k (k^2 - 1)}}

    is compared with the chi-squared distribution with k - 1 degrees of freedom. The approximation
    is good for more than about 10 datasets and 5 methods.

    Kull et al. (2019), supplement D.2, use this test followed by `critical_difference`. The ranks
    of their Table 4 (20 datasets, 7 methods) give the average ranks 1.05, 3.40, 3.40, 3.95, 4.40,
    5.53 and 6.28, the statistic 73.82 and the p-value 6.71e-14.

    References
    ----------
    Friedman (1937), doi:10.1080/01621459.1937.10503522; Demšar (2006), Statistical comparisons of
    classifiers over multiple data sets, JMLR 7:1-30; Kull et al. (2019), arXiv:1910.12656.

    Examples
    --------
    >>> result = friedman_test([[0.1, 0.2, 0.3], [0.2, 0.2, 0.4], [0.1, 0.3, 0.2]])
    >>> [round(rank, 3) for rank in result.average_ranks], round(result.statistic, 3)
    ([1.167, 2.167, 2.667], 3.818)
    """
    table = _check_table(scores)
    n, k = table.shape
    ranks = scipy.stats.rankdata(table, axis=1)
    average = ranks.mean(axis=0)
    spread = 12 * n / (k * (k + 1)) * float(np.sum((average - (k + 1) / 2) ** 2))
    untied = 1 - _tied_cubes(ranks) / (n * k * (k**2 - 1))
    statistic = spread / untied if untied > 0 else 0.0
    return FriedmanResult(statistic, float(chdtrc(k - 1, statistic)), tuple(average.tolist()), n, k)


def _tied_cubes(ranks: AnyArray) -> float:
    """Sum ``t^3 - t`` over datasets and groups of t tied methods."""
    counts = [np.unique(row, return_counts=True)[1] for row in ranks]
    return float(sum(np.sum(count**3 - count) for count in counts))


def _check_table(scores: Any) -> AnyArray:
    table = as_array(scores).astype(np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise ValueError(
            f"scores must have one row per dataset and one column per method, with at least two "
            f"methods, got shape {table.shape}. Pass scores of shape (n_datasets, n_methods)."
        )
    bad = np.argwhere(np.isnan(table))
    if len(bad):
        raise ValueError(
            f"The score of dataset {bad[0, 0]}, method {bad[0, 1]} is missing. Remove the row of "
            f"the dataset with np.delete(scores, {bad[0, 0]}, axis=0), or evaluate the method on "
            "this dataset."
        )
    return table


def critical_difference(
    n_methods: int,
    n_datasets: int,
    *,
    alpha: float = 0.05,
    method: str = "bonferroni-dunn",
    tails: int = 1,
) -> float:
    r"""Compute the difference of average ranks above which two methods differ significantly.

    Use the critical difference after `friedman_test` has rejected the null hypothesis.

    Parameters
    ----------
    n_methods, n_datasets : int
        Number of methods k and of datasets n.
    alpha : float, default 0.05
        Joint level of all comparisons.
    method : {"bonferroni-dunn", "nemenyi"}, default "bonferroni-dunn"
        "bonferroni-dunn" compares all methods with one control method, and "nemenyi" compares all
        pairs.
    tails : {1, 2}, default 1
        Number of tails of the Bonferroni-Dunn test (1 or 2). A one-tailed test asks whether the
        control is better, as in Kull 2019.

    Returns
    -------
    float
        The critical difference of average ranks.

    See Also
    --------
    friedman_test : Test whether any methods differ.
    calibrant.plots.CriticalDifferenceDisplay : Diagram of average ranks.

    Notes
    -----
    The critical difference is

    .. math:: q \sqrt{\frac{k(k+1)}{6n}} .

    - ``"bonferroni-dunn"``: q is the normal quantile at :math:`1 - \alpha / (k - 1)` (``tails=1``)
      or :math:`1 - \alpha / (2(k - 1))` (``tails=2``).
    - ``"nemenyi"``: q is the quantile of the studentized range divided by :math:`\sqrt 2`.

    The level is asymptotic in the number of datasets. Use "nemenyi" for all pairs. If you compare
    all pairs of ten equal methods with "bonferroni-dunn", at least one pair differs significantly
    in a quarter of the cases.

    References
    ----------
    Dunn (1961), doi:10.1080/01621459.1961.10482090; Nemenyi (1963), Distribution-free multiple
    comparisons; Demšar (2006), JMLR 7:1-30.

    Examples
    --------
    >>> round(critical_difference(7, 20), 3), round(critical_difference(7, 20, method="nemenyi"), 3)
    (1.635, 2.014)
    """
    check_count(n_methods, "n_methods", minimum=2)
    check_count(n_datasets, "n_datasets")
    check_option(method, "method", ("bonferroni-dunn", "nemenyi"))
    check_option(tails, "tails", (1, 2))
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}. Pass alpha=0.05.")
    if method == "nemenyi":
        quantile = scipy.stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    else:
        quantile = -ndtri(alpha / (tails * (n_methods - 1)))
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))
