"""Averaged two-bin calibration error."""

from __future__ import annotations

import numpy as np

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics.ks import KsPath, ks_path
from calibrant.notions import Notion, as_notion, claims_of


def averaged_two_bin_error(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "class-wise",
    sample_weight: WeightsLike | None = None,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> float:
    r"""Compute the averaged two-bin calibration error, a truthful error that needs no bin edges.

    A cut divides the scores into two bins. The result is the squared calibration error of the two
    bins, averaged over all cuts. Lower is better. In expectation, the true probabilities have the
    lowest error.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    notion : str or Notion, default "class-wise"
        Type of calibration, see `calibrant.notions`. Errors of several claims are averaged with the
        weights of `expected_calibration_error`.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    classes : array-like of labels, optional
        Labels of the columns.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.

    Returns
    -------
    float
        Squared calibration error of the two bins, averaged over all cuts.

    See Also
    --------
    expected_calibration_error : Binned calibration error, which is not truthful.
    brier_score : Proper score.

    Notes
    -----
    With :math:`E(t) = \frac1n \sum_{f_i \le t} (f_i - o_i)`, the error of a claim is

    .. math:: \int_0^1 E(t)^2 + (E(1) - E(t))^2 \, dt .

    *Truthful* means that predicting the true probabilities minimizes the expected error. The error
    is truthful because every row is in exactly one of two bins, so the variances add up to a
    constant. Binned errors are not truthful, because a model that always predicts the base rate has
    a lower expected error than the true probabilities. The mean over classes is also truthful. The
    errors of ``"confidence"`` and ``"top-label"`` are not truthful, because the prediction
    determines the claim that is evaluated.

    The computation takes O(n log n) time and O(n) memory per claim.

    References
    ----------
    Hartline, Hu & Wu (2026), arXiv:2508.13100; for several classes arXiv:2510.06388.

    Examples
    --------
    >>> round(averaged_two_bin_error([0, 1], [0.25, 0.75]), 6)
    0.015625
    """
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, sample_weight, classes, inputs=inputs)
    return claims.mean(lambda claim: _two_bin(ks_path(claim)))


def _two_bin(path: KsPath) -> float:
    """Compute the integral exactly, because E is constant between distinct scores."""
    width = np.diff(path.score, prepend=0.0, append=1.0)
    below = np.append(0.0, path.excess)
    return float(width @ (below**2 + (below[-1] - below) ** 2))
