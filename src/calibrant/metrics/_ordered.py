"""The proper score of ordered classes."""

from __future__ import annotations

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics._scores import brier_score


def ranked_probability_score(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Ranked probability score of ordered classes: a near miss costs less than a far one.

    .. math:: \frac{1}{n (K-1)} \sum_i \sum_{k=0}^{K-2} \big(P_{ik} - 1[y_i \le k]\big)^2, \quad
        P_{ik} = \sum_{l \le k} p_{il} ,

    between 0 and 1; proper. Classes are ordered as the columns are: name them by ``classes``. It is
    ``brier_score(notion="cumulative")``; with two classes the usual Brier score of a binary
    problem. Sums without the division by K - 1 are K - 1 times as large. O(n K).

    References
    ----------
    Epstein (1969), doi:10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2; Murphy (1971), A note on
    the ranked probability score, doi:10.1175/1520-0450(1971)010<0155:ANOTRP>2.0.CO;2.

    Examples
    --------
    >>> ranked_probability_score([0], [[0.0, 1.0, 0.0]]), ranked_probability_score([0], [[0, 0, 1]])
    (0.5, 1.0)
    """
    return brier_score(
        y_true,
        y_prob,
        notion="cumulative",
        sample_weight=sample_weight,
        classes=classes,
        inputs=inputs,
    )
