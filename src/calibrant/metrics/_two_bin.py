"""A calibration error that rewards the truth: the average over all cuts of the scores in two."""

from __future__ import annotations

import numpy as np

from calibrant._typing import Inputs, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics._ks import KsPath, ks_path
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
    r"""Averaged two-bin error: squared, without bins, and smallest in the mean for the truth.

    A cut t in [0, 1] puts each row into one of two bins. With :math:`E(t) = \frac1n \sum_{f_i \le
    t} (f_i - o_i)` the error of a claim is the average over cuts of the squared errors of the two,

    .. math:: \int_0^1 E(t)^2 + (E(1) - E(t))^2 \, dt .

    For a notion of several claims, their mean with the weights of `expected_calibration_error`.

    Notes
    -----
    *Truthful*: who knows the probabilities of the outcomes cannot lower the expected error by
    saying others, because every row is in exactly one of two bins and the variances add up to a
    constant. Binned errors are not: they prefer the forecaster who always says the base rate. The
    mean over classes is truthful as well; claims about the predicted class (``"confidence"``,
    ``"top-label"``) are not, because the forecast chooses what it is judged on.

    O(n log n) time and O(n) memory per claim.

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
    """The integral, exactly: E is constant between distinct scores."""
    width = np.diff(path.score, prepend=0.0, append=1.0)
    below = np.append(0.0, path.excess)
    return float(width @ (below**2 + (below[-1] - below) ** 2))
