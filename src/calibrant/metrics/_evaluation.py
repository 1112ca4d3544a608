"""`evaluate`: everything worth knowing about a set of predictions, in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log
from typing import Any, overload

from calibrant._data.read import as_sample
from calibrant._data.top_scores import TopScores
from calibrant._kernels.simplex import EPS, as_proba
from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import warn_data
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator
from calibrant.metrics._groups import GroupedEvaluation, as_columns, evaluate_groups
from calibrant.metrics._ks import claims_ks
from calibrant.metrics._stated_confidence import remark_pair
from calibrant.metrics._top_scores import TopEvaluation, evaluate_top
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
) -> Evaluation | GroupedEvaluation | TopEvaluation:
    """Accuracy, proper scores and calibration errors of probabilities or logits.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : scores of shape (n, K), or (n,) for class 1 of a binary problem, or TopScores
        Pass confidences of answers that were correct or not to `evaluate_confidence`.
    inputs : {"proba", "logits", "log_proba"}
    n_bins : int
        Bins of equal width of the binned errors.
    sample_weight : weights of shape (n,), optional
        How much each row counts. Intervals of ``by`` use the effective number of rows (Kish).
    classes : labels of the columns, optional
        Without it integer labels are column indices; text labels are matched to the names of the
        columns of a data frame, or to the columns of an array in sorted order.
    renormalize : bool
        Divide rows of probabilities by their sum, however far from one it is. Rows that miss it
        by rounding are always taken, with a remark.
    by : groups of shape (n,), or dict or data frame of such columns, optional
        One evaluation a group, here of every combination of values that occurs, with intervals of
        accuracy and of mean confidence minus accuracy that hold for all groups together; groups
        with too few rows are said to be so. By month: ``by=dates.astype("datetime64[M]")``. Of
        scores that come in parts: dask columns, which are cut like the scores, or arrays; without
        the KS error, for which the scores of each group would have to be put in order.
    level : float
        Of these intervals together.

    Returns
    -------
    Evaluation, or GroupedEvaluation where ``by`` is given, or TopEvaluation of `TopScores`

    Notes
    -----
    A `MetricAccumulator` that is fed once: one pass over row blocks, and a sort of the top scores
    for the KS error: O(n K + n log n) time, O(n) memory beside the input.

    Examples
    --------
    >>> result = evaluate([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> round(result.accuracy, 3), round(result.conf_ece, 3)
    (0.667, 0.3)
    >>> groups = evaluate([0, 1] * 60, [0.2, 0.8] * 60, by=["a", "b"] * 60)
    >>> groups["a"].evaluation.n_samples, groups.too_small
    (60, ())
    """
    _check_level(level)
    if isinstance(y_prob, TopScores):
        _check_top_options(inputs, by, renormalize=renormalize)
        return evaluate_top(y_true, y_prob, n_bins, sample_weight, classes)
    remark_pair(y_true, y_prob)
    columns = {} if by is None else as_columns(by)
    sample, _ = as_sample(
        y_prob,
        y_true,
        sample_weight,
        classes=classes,
        inputs=inputs,
        renormalize=renormalize,
        columns=tuple(columns.values()),
    )
    if inputs != "proba":
        _remark_impossible(sample.known_impossible(inputs), sample.n_rows)
    if by is not None:
        return evaluate_groups(sample, tuple(columns), level, inputs=inputs, n_bins=n_bins)
    accumulator = MetricAccumulator(n_bins, classes, inputs=inputs, keep_top=None)
    result = accumulator._update_checked(sample).compute()
    if result.ks is not None:
        return result
    # The scores of chunked rows are not kept: their KS error is computed from cells of scores.
    proba = sample.transformed(partial(as_proba, inputs=inputs))
    return replace(result, ks=claims_ks(proba.claims(as_notion("confidence"))))


def _remark_impossible(count: int, n_rows: int | None) -> None:
    """Warn about true classes of score -inf, which a few rows can dominate the log-loss with."""
    if count:
        warn_data(
            f"{count:,} of {n_rows:,} rows have a true class of score -inf. The log-loss takes it "
            f"as the probability {EPS:g}, {-log(EPS):.1f} nats per row."
        )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, 0.95 for a 95 % interval; got {level!r}")


def _check_top_options(inputs: str, by: Any, *, renormalize: bool) -> None:
    """Raise on options that top scores cannot honor."""
    if by is not None:
        raise TypeError("by= needs whole rows. Evaluate the TopScores of each group separately.")
    if inputs != "proba" or renormalize:
        raise ValueError(
            "TopScores hold log-probabilities and their tail mass, so inputs= and renormalize= do "
            "not apply. Leave them out."
        )
