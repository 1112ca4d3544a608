"""`evaluate`: everything worth knowing about a set of predictions, in one call."""

from __future__ import annotations

from calibrant._typing import LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics._accumulator import Evaluation, MetricAccumulator

__all__ = ["Evaluation", "MetricAccumulator", "evaluate"]


def evaluate(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    inputs: str = "proba",
    n_bins: int = 15,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    renormalize: bool = False,
) -> Evaluation:
    """Accuracy, proper scores and calibration errors of probabilities or logits.

    Parameters
    ----------
    y_true : labels of shape (n,)
    y_prob : scores of shape (n, K), or (n,) for class 1 of a binary problem
    inputs : {"proba", "logits", "log_proba"}
    n_bins : int
        Bins of equal width of the binned errors.
    sample_weight : weights of shape (n,), optional
        Numbers of copies of a row. Importance weights that are normalised to one are given as
        ``w * n / w.sum()``.
    classes : labels of the columns, optional
        Without it integer labels are column indices; text labels are matched to the names of the
        columns of a data frame, or to the columns of an array in sorted order.
    renormalize : bool
        Divide rows of probabilities by their sum, however far from one it is. Rows that miss it
        by rounding are always taken, with a remark.

    Returns
    -------
    Evaluation

    Notes
    -----
    A `MetricAccumulator` that is fed once: one pass over row blocks, and a sort of the top scores
    for the KS error: O(n K + n log n) time, O(n) memory beside the input.

    Examples
    --------
    >>> result = evaluate([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> round(result.accuracy, 3), round(result.conf_ece, 3)
    (0.667, 0.3)
    """
    accumulator = MetricAccumulator(
        n_bins, classes, inputs=inputs, keep_top=None, renormalize=renormalize
    )
    return accumulator.update(y_true, y_prob, sample_weight).compute()
