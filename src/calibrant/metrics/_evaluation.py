"""Accuracy, proper scores and calibration errors of predictions in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log
from typing import Any, overload

from calibrant._data.group_columns import as_columns
from calibrant._data.multilabel import MultilabelSample
from calibrant._data.read import as_sample
from calibrant._data.top_scores import TopScores
from calibrant._kernels.simplex import EPS, as_proba
from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import warn_data, warn_other_order
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._answers import warn_if_pair
from calibrant.metrics._multilabel import MultilabelEvaluation, evaluate_labels
from calibrant.metrics._top_scores import TopEvaluation, evaluate_top
from calibrant.metrics.groups import GroupedEvaluation, check_level, evaluate_groups
from calibrant.metrics.ks import claims_ks
from calibrant.notions import as_notion

__all__ = ["Evaluation", "MetricAccumulator", "evaluate"]


@overload
def evaluate(
    y_true: LabelsLike,
    y_prob: TopScores,
    *,
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
) -> TopEvaluation: ...


@overload
def evaluate(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: Inputs = "proba",
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    renormalize: bool = False,
    by: None = None,
    level: float = 0.95,
) -> Evaluation: ...


@overload
def evaluate(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: Inputs = "proba",
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    renormalize: bool = False,
    by: Any,
    level: float = 0.95,
    min_rows: float = 0,
) -> GroupedEvaluation: ...


def evaluate(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: Inputs = "proba",
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    renormalize: bool = False,
    by: Any = None,
    level: float = 0.95,
    min_rows: float = 0,
) -> Evaluation | GroupedEvaluation | TopEvaluation | MultilabelEvaluation:
    """Compute accuracy, proper scores and calibration errors of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        True labels. For multilabel problems, pass a table of zeros and ones with one column per
        label. Rows of probabilities then need not sum to one.
    y_prob : array-like of shape (n, K) or (n,), or TopScores
        Predicted scores. A 1D array contains the scores of class 1 of a binary problem. If you only
        have the confidence and the correctness of each answer, use `evaluate_answers`.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    n_bins : int, default 15
        Number of equal-width bins of the binned errors.
    sample_weight : array-like of shape (n,), optional
        Row weights. Intervals of groups use the effective number of rows (Kish).
    classes : array-like of labels, optional
        Labels of the columns. By default, integer labels are column numbers. Text labels are
        matched to the column names of a data frame, or to the columns of an array in sorted order.
    renormalize : bool, default False
        Whether to divide rows of probabilities by their sum, even if the sum is far from one. Rows
        whose sum differs from one by rounding are always accepted, with a warning.
    by : array-like of shape (n,), dict or data frame, optional
        One column or several columns that define groups of rows. Every combination of values is a
        group. Each group is evaluated with intervals of its accuracy and of its mean confidence
        minus accuracy. The intervals hold jointly for all groups. A test compares the calibration
        of all groups. The result lists groups with too few rows. To group by month, pass
        ``by=dates.astype("datetime64[M]")``. For chunked scores, pass arrays, or dask columns with
        the same chunks. The KS error of chunked scores is not computed.
    level : float, default 0.95
        Joint confidence level of the intervals of all groups in ``by``.
    min_rows : float, default 0
        Minimum number of rows per group, or of effective rows (Kish) with weights. Smaller groups
        are not shown, for example because figures of small groups are confidential. If only one
        group is omitted, its figures follow from the figures of all rows and of the other groups.

    Returns
    -------
    Evaluation, GroupedEvaluation, TopEvaluation or MultilabelEvaluation
        The return type is `GroupedEvaluation` if ``by`` is passed, `TopEvaluation` for `TopScores`,
        and `MultilabelEvaluation` for ``y_true`` of shape (n, K).

    See Also
    --------
    evaluate_answers : Evaluate stated confidences of answers.
    MetricAccumulator : Evaluate data in batches.
    calibrant.inference.bootstrap_interval : Confidence interval of a metric.

    Notes
    -----
    The rows are read once in blocks, and the confidences are sorted for the KS error. The
    evaluation takes O(n K + n log n) time and O(n) memory in addition to the input.

    Examples
    --------
    >>> result = evaluate([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> round(result.accuracy, 3), round(result.conf_ece, 3)
    (0.667, 0.3)
    >>> groups = evaluate([0, 1] * 60, [0.2, 0.8] * 60, by=["a", "b"] * 60)
    >>> groups["a"].evaluation.n_samples, groups.too_small
    (60, ())
    """
    check_level(level)
    if isinstance(y_prob, TopScores):
        _check_top_options(inputs, by, renormalize=renormalize)
        return evaluate_top(y_true, y_prob, n_bins, sample_weight, classes)
    warn_if_pair(y_true, y_prob, classes)
    warn_other_order(y_true, by, what="labels and groups")
    columns = {} if by is None else as_columns(by)
    sample, names = as_sample(
        y_prob,
        y_true,
        sample_weight,
        classes=classes,
        inputs=inputs,
        renormalize=renormalize,
        columns=tuple(columns.values()),
        multilabel=True,
    )
    if isinstance(sample, MultilabelSample):
        return evaluate_labels(sample, names, n_bins)
    if inputs != "proba":
        _warn_impossible(sample.known_impossible(inputs), sample.n_rows)
    if by is not None:
        return evaluate_groups(
            sample, tuple(columns), level, inputs=inputs, n_bins=n_bins, min_rows=min_rows
        )
    accumulator = MetricAccumulator(n_bins, classes, inputs=inputs, keep_top=None)
    result = accumulator._update_checked(sample).compute()
    if result.ks is not None:
        return result
    # Confidences of chunked rows are not kept, so the KS error is computed from cells of scores.
    proba = sample.transformed(partial(as_proba, inputs=inputs))
    return replace(result, ks=claims_ks(proba.claims(as_notion("confidence"))))


def _warn_impossible(count: int, n_rows: int | None) -> None:
    """Warn about true classes with score -inf, because a few of them can dominate the log-loss."""
    if count:
        warn_data(
            f"The true class has the score -inf in {count:,} of {n_rows:,} rows. The log-loss "
            f"treats it as the probability {EPS:g}, which costs {-log(EPS):.1f} nats per row."
        )


def _check_top_options(inputs: str, by: Any, *, renormalize: bool) -> None:
    """Raise if options are passed that do not apply to top scores."""
    if by is not None:
        raise TypeError(
            "by= needs scores of all classes, but got TopScores. Call evaluate() for the TopScores "
            "of each group."
        )
    if inputs != "proba" or renormalize:
        raise ValueError(
            "TopScores contain log-probabilities and their tail mass, so inputs= and renormalize= "
            "do not apply. Remove both arguments."
        )
