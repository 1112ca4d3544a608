"""Binned calibration errors: one definition, with the notion, the bins and the norm as
arguments.
"""

from __future__ import annotations

from typing import Any

from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant.binning import BinTable, bin_table
from calibrant.notions import Notion, as_notion, claims_of


def expected_calibration_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    norm: float = 1,
    debias: bool = False,
    aggregate: str = "mean",
    y_pred: LabelsLike | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> float:
    r"""Binned calibration error of any notion: ECE, MCE, class-wise, top-label, adaptive, debiased.

    Over cells (claim c, bin b) with share :math:`w_{cb}` of the claim's rows and gap
    :math:`g_{cb} = |\text{mean outcome} - \text{mean score}|`,

    .. math:: \Big(\sum_c v_c \sum_b w_{cb}\, g_{cb}^p\Big)^{1/p}

    for ``norm=p``, and the largest gap for ``norm=inf``. Claims over different classes or ranks
    weigh the same, claims that split the same rows by label weigh their share of the rows, and the
    :math:`v_c` sum to one.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : probabilities of shape (n, K), or (n,) for class 1 of a binary problem
        Class-wise notions accept rows that do not sum to one. With ``y_pred`` the probability of
        the reported label.
    notion : str
        What is checked, see `calibrant.notions`.
    n_bins : int
    strategy : {"uniform", "quantile", "unique"}
        Bins of equal width, of equal mass (ties never split), or one bin per distinct score.
    bins : fitted binning calibrator or `Bins`, optional
        Judge on these bins instead.
    norm : float >= 1, or inf
    debias : bool
        With ``norm=2``: subtract from each squared gap the variance of its mean outcome, and floor
        the sum of each claim at 0 (Kumar 2019). Rows that are alone in their bin are not counted;
        where all are, the error cannot be identified and is NaN. With many claims of few rows the
        floor leaves a bias upwards; `calibrant.inference.debiased_interval` floors the total only.
    aggregate : {"mean", "sum", "bin"}
        "sum" adds the errors of the classes or ranks instead of averaging them (the class-wise
        tables of Kull 2019). "bin" first averages the gaps of a bin over its claims, weighted by
        rows: with ``norm=inf`` the TL-MCE that Gupta & Ramdas 2022 print (which is not their eq.
        17, the largest cell, ``aggregate="mean"``).
    y_pred : reported labels, shape (n,) or (n, k), optional
        Judge the output of ``predict_top``: ``y_prob`` then has the shape of ``y_pred``.
    inputs : {"proba", "logits"}
        What ``y_prob`` holds.
    sample_weight : weights of shape (n,), optional
    classes : labels of the columns, optional

    Returns
    -------
    float

    Notes
    -----
    O(n K) time. Uniform bins need O(block) memory; "quantile" and "unique" sort one claim at a
    time. The plug-in error is biased upwards: for a perfectly calibrated model it is about ``sum_b
    w_b sqrt(2 p_b (1 - p_b) / (pi n_b))``, at most ``0.4 sqrt(n_bins / n)``, p_b the frequency and
    n_b the rows of a bin. It is a summary of a picture, not a criterion for choosing a model:
    coarse bins hide errors.

    References
    ----------
    Guo et al. (2017), arXiv:1706.04599; Kull et al. (2019), arXiv:1910.12656; Kumar et al. (2019),
    arXiv:1909.10155; Gupta & Ramdas (2022), arXiv:2107.08353.

    Examples
    --------
    >>> expected_calibration_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], notion="class-1")
    0.05...
    """
    claims, _ = claims_of(
        as_notion(notion), y_true, y_prob, sample_weight, classes, y_pred=y_pred, inputs=inputs
    )
    if debias:  # the bias depends on the number of rows
        claims = claims.effective()
    table = bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)
    return table.error(norm=norm, debias=debias, aggregate=aggregate)


def calibration_curve(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    y_pred: LabelsLike | None = None,
    inputs: str = "proba",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> BinTable:
    """Mean score and frequency of the outcome per claim and bin: the numbers behind a reliability
    diagram.

    Parameters as in `expected_calibration_error`.

    Examples
    --------
    >>> table = calibration_curve([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], notion="class-1", n_bins=5)
    >>> table.weight.tolist(), float(table.mean_outcome[0, 4])
    ([[0.0, 0.0, 0.0, 0.0, 4.0]], 0.75)
    """
    claims, _ = claims_of(
        as_notion(notion), y_true, y_prob, sample_weight, classes, y_pred=y_pred, inputs=inputs
    )
    return bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)
