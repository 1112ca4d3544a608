"""Binned calibration errors and the numbers of reliability diagrams."""

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
    r"""Compute the binned calibration error (ECE) or a variant of it.

    The error compares mean predicted probability and observed frequency in bins of similar scores.
    Lower is better, and 0 means that probability and frequency agree in every bin. The options also
    give the maximum calibration error (MCE) and class-wise, adaptive and debiased errors.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem. For
        class-wise types of calibration, rows need not sum to one. If ``y_pred`` is passed, pass the
        probabilities of the labels in ``y_pred``.
    notion : str or Notion, default "confidence"
        Type of calibration, see `calibrant.notions`.
    n_bins : int, default 15
        Number of bins per claim (binary event).
    strategy : {"uniform", "quantile", "unique"}, default "uniform"
        Equal-width bins, quantile bins (tied scores stay together), or one bin per distinct score.
    bins : fitted binning calibrator or `Bins`, optional
        Use these bins instead of ``n_bins`` and ``strategy``.
    norm : float >= 1 or inf, default 1
        Power p of the gaps: 1 for the ECE, 2 for the root mean square, ``np.inf`` for the maximum
        calibration error (MCE).
    debias : bool, default False
        With ``norm=2``, subtract from each squared gap the variance of its mean outcome, and floor
        the sum of each claim at 0 (Kumar 2019). Rows that are alone in their bin are excluded. If
        all rows are excluded, the error is NaN. With many claims of few rows, the floor biases the
        error upward. `calibrant.inference.debiased_interval` floors fewer sums, so its estimate has
        a smaller bias.
    aggregate : {"mean", "sum", "bin"}, default "mean"
        "sum" adds the errors of the classes or ranks instead of averaging them (class-wise tables
        of Kull 2019). "bin" first averages the gaps of a bin over its claims, weighted by rows.
        With ``norm=inf``, "bin" is the TL-MCE that Gupta & Ramdas 2022 report, and "mean" is the
        largest gap of any bin and claim (eq. 17 of the same paper).
    y_pred : array-like of shape (n,) or (n, k), optional
        Labels to evaluate, such as the labels from ``predict_top``. If passed, ``y_prob`` contains
        the probabilities of these labels and has the same shape.
    inputs : {"proba", "logits"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    float
        The calibration error, between 0 and 1 unless ``aggregate="sum"``.

    See Also
    --------
    calibration_curve : Mean score and observed frequency per bin.
    calibrant.inference.debiased_interval : Confidence interval of the L2 error.
    calibrant.inference.consistency_test : Test whether the error exceeds sampling noise.
    smooth_calibration_error : Calibration error without bins.

    Notes
    -----
    A cell is a bin b of a claim c. With the share :math:`w_{cb}` of the claim's rows in a cell and
    the gap :math:`g_{cb} = |\text{mean outcome} - \text{mean score}|`, the error is

    .. math:: \Big(\sum_c v_c \sum_b w_{cb}\, g_{cb}^p\Big)^{1/p}

    for ``norm=p``, and the largest gap for ``norm=inf``. Claims about different classes or ranks
    have equal weights :math:`v_c`. Claims that split the same rows by label are weighted by their
    share of the rows. The weights sum to one.

    The plug-in error is biased upward. For a perfectly calibrated model, the error is about ``sum_b
    w_b sqrt(2 p_b (1 - p_b) / (pi n_b))``, with p_b the frequency and n_b the rows of a bin. This
    value is at most ``0.4 sqrt(n_bins / n)``. The error summarizes a reliability diagram. Do not
    use the error to choose a model, because coarse bins hide errors.

    The time is O(n K). Uniform bins need O(block) memory. "quantile" and "unique" sort one claim at
    a time.

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
    if debias:  # the bias depends on the effective number of rows
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
    """Compute mean score and observed frequency per bin, as shown in a reliability diagram.

    Parameters
    ----------
    y_true, y_prob, notion, n_bins, strategy, bins, y_pred, inputs, sample_weight, classes
        As in `expected_calibration_error`.

    Returns
    -------
    BinTable
        Sums per claim and bin, with the properties ``mean_score`` and ``mean_outcome``.

    See Also
    --------
    expected_calibration_error : The error of these bins.
    calibrant.plots.ReliabilityDisplay : Plot a reliability diagram.

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
