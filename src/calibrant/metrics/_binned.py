"""Binned calibration errors: one definition, with the notion, the bins and the norm as
arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant._typing import FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import (
    as_array,
    check_option,
    check_predictions,
    check_same_length,
    check_weight,
    encode_labels,
)
from calibrant.binning import BinTable, bin_table
from calibrant.notions import Claims, ClassNotion, Notion, as_notion

AGGREGATES = ("mean", "sum", "bin")


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
        With ``norm=2``: subtract from each squared gap the variance of its mean outcome, bins of
        fewer than two rows count 0, and floor the sum of each claim at 0 (Kumar 2019).
    aggregate : {"mean", "sum", "bin"}
        "sum" adds the errors of the classes or ranks instead of averaging them (the class-wise
        tables of Kull 2019). "bin" first averages the gaps of a bin over its claims, weighted by
        rows: with ``norm=inf`` the TL-MCE that Gupta & Ramdas 2022 print (which is not their eq.
        17, the largest cell, ``aggregate="mean"``).
    y_pred : reported labels, shape (n,) or (n, k), optional
        Judge the output of ``predict_top``: ``y_prob`` then has the shape of ``y_pred``.
    sample_weight : weights of shape (n,), optional
    classes : labels of the columns, optional

    Returns
    -------
    float

    Notes
    -----
    O(n K) time. Uniform bins need O(block) memory; "quantile" and "unique" sort one claim at a
    time. The plug-in error is biased upwards: about ``sqrt(n_bins / n)`` for a perfectly calibrated
    model. It is a summary of a picture, not a criterion for choosing a model: coarse bins hide
    errors.

    References
    ----------
    Guo et al. (2017), arXiv:1706.04599; Kull et al. (2019), arXiv:1910.12656; Kumar et al. (2019),
    arXiv:1909.10155; Gupta & Ramdas (2022), arXiv:2107.08353.

    Examples
    --------
    >>> expected_calibration_error([1, 1, 0, 1], [0.8, 0.8, 0.8, 0.8], notion="class-1")
    0.05...
    """
    table = calibration_curve(
        y_true,
        y_prob,
        notion=notion,
        n_bins=n_bins,
        strategy=strategy,
        bins=bins,
        y_pred=y_pred,
        sample_weight=sample_weight,
        classes=classes,
    )
    return table_error(table, norm=norm, debias=debias, aggregate=aggregate)


def calibration_curve(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    n_bins: int = 15,
    strategy: str = "uniform",
    bins: Any = None,
    y_pred: LabelsLike | None = None,
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
    claims = _claims(as_notion(notion), y_true, y_prob, y_pred, sample_weight, classes)
    return bin_table(claims, n_bins=n_bins, strategy=strategy, bins=bins)


def _claims(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    y_pred: LabelsLike | None,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
) -> Claims:
    if y_pred is None:
        sum_to_one = not isinstance(notion, ClassNotion)
        proba, y, weight, _ = check_predictions(
            y_true, y_prob, sample_weight, classes, sum_to_one=sum_to_one
        )
        return notion.claims(proba, y, weight)
    return _reported(notion, y_true, y_prob, y_pred, sample_weight, classes)


def _reported(
    notion: Notion,
    y_true: LabelsLike,
    y_prob: ScoresLike,
    y_pred: LabelsLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
) -> Claims:
    """Claims of reported labels; without ``classes`` the labels that occur are the classes."""
    truth, reported, score = as_array(y_true), as_array(y_pred), as_array(y_prob).astype(np.float64)
    if score.shape != reported.shape or score.ndim not in (1, 2):
        raise ValueError(
            f"with y_pred, y_prob holds the probability of each reported label and has its shape; "
            f"got y_prob {score.shape} and y_pred {reported.shape}"
        )
    check_same_length(y_true=truth, y_pred=reported)
    if not ((score >= 0) & (score <= 1)).all():
        raise ValueError("with y_pred, y_prob must hold probabilities in [0, 1]")
    names = (
        np.unique(np.concatenate([truth, reported.ravel()]))
        if classes is None
        else as_array(classes)
    )
    y, _ = encode_labels(truth, len(names), names)
    label, _ = encode_labels(reported.ravel(), len(names), names)
    shape = (len(y), -1)
    return notion.reported(
        score.reshape(shape),
        label.reshape(shape),
        y,
        check_weight(sample_weight, len(y)),
        len(names),
    )


def table_error(
    table: BinTable, *, norm: float = 1, debias: bool = False, aggregate: str = "mean"
) -> float:
    """The error of a table of sums; see `expected_calibration_error`."""
    check_option(aggregate, "aggregate", AGGREGATES)
    if not norm >= 1:
        raise ValueError(f"norm must be a number of at least 1, or inf; got {norm!r}")
    if debias and (norm != 2 or aggregate == "bin"):
        raise ValueError(
            f"debias=True is defined for norm=2 with aggregate='mean' or 'sum'; got norm={norm}, "
            f"aggregate={aggregate!r}"
        )
    if aggregate == "bin":
        return _norm_over_bins(table, norm)
    if np.isinf(norm):
        return float(table.gap.max())
    power = debiased_square(table) if debias else (table.weight * table.gap**norm).sum(axis=1)
    if debias:
        power = np.maximum(power, 0.0)
    # v_c times 1 / (rows of the claim) is 1 / (rows of the quantity), whether or not the quantity
    # is split by label.
    total = float((power / quantity_weight(table)).sum())
    return float((total if aggregate == "sum" else total / table.n_quantities) ** (1 / norm))


def quantity_weight(table: BinTable) -> FloatArray:
    """Rows behind each claim's quantity, (n_claims,)."""
    per_quantity = table.weight.sum(axis=1).reshape(table.n_quantities, table.n_labels).sum(axis=1)
    return np.repeat(per_quantity, table.n_labels)


def debiased_square(table: BinTable) -> FloatArray:
    """Per claim: sum over bins of rows times (squared gap - variance of the mean outcome)."""
    enough = table.weight >= 2
    rate = np.where(enough, table.mean_outcome, 0.0)
    variance = rate * (1 - rate) / np.where(enough, table.weight - 1, 1.0)
    return np.asarray(np.where(enough, table.weight * (table.gap**2 - variance), 0.0).sum(axis=1))


def _norm_over_bins(table: BinTable, norm: float) -> float:
    rows = table.weight.sum(axis=0)
    gap = np.divide(
        (table.weight * table.gap).sum(axis=0), rows, out=np.zeros_like(rows), where=rows > 0
    )
    if np.isinf(norm):
        return float(gap.max())
    return float((rows / rows.sum() @ gap**norm) ** (1 / norm))
