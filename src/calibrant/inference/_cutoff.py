"""Confidence interval of the cutoff calibration error."""

from __future__ import annotations

import numpy as np

from calibrant._typing import Inputs, LabelsLike, ScoresLike
from calibrant.inference._results import Interval, check_level
from calibrant.metrics._cutoff import claim_cutoff
from calibrant.notions import Claim, Notion, as_notion, claims_of


def cutoff_interval(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    notion: str | Notion = "confidence",
    level: float = 0.95,
    classes: LabelsLike | None = None,
    inputs: Inputs = "proba",
) -> Interval:
    r"""Compute a confidence interval of the cutoff calibration error.

    The interval is conservative, because it is valid for every number of rows and every
    distribution of scores.

    Parameters
    ----------
    y_true, y_prob, notion, classes, inputs
        As in `calibrant.metrics.cutoff_calibration_error`.
    level : float, default 0.95
        Coverage of the interval.

    Returns
    -------
    Interval
        The interval, with a ``standard_error`` of NaN.

    See Also
    --------
    calibrant.metrics.cutoff_calibration_error : Compute the estimate.
    consistency_test : Test with ``metric="cutoff_calibration_error"``.

    Notes
    -----
    A row with outcome 1 contributes :math:`1 - f`, and a row with outcome 0 contributes :math:`-f`.
    For each outcome, consider the share of all rows that have this outcome and a score up to t.
    With probability :math:`1 - \alpha / 2`, each share differs from its expectation by at most
    :math:`\epsilon = \sqrt{\log(4 / \alpha) / 2n}` at all t simultaneously. This bound is the
    inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant. The residual of an
    interval of scores is a sum over the rows with outcome 1 minus a sum over the rows with outcome
    0. The weights :math:`1 - f` and :math:`f` of these sums are monotone in f and lie between zero
    and one. The error of each sum is therefore at most :math:`2 \epsilon`. So the error of the
    residual is at most :math:`4 \epsilon`, and the interval is the estimate :math:`\pm 4 \epsilon`.
    With several claims, each claim gets an equal part of :math:`\alpha`, and claims have the same
    weights as in the estimate.

    The interval is wide, for example :math:`\pm 0.06` for 10,000 rows. Rows must be independent and
    have unit weights. The cost is O(n log n).

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality,
    doi:10.1214/aop/1176990746; Rossellini et al. (2025), arXiv:2502.19851.

    Examples
    --------
    >>> result = cutoff_interval([0, 1] * 5000, [0.5] * 10_000, notion="class-1")
    >>> result.estimate, round(result.high, 3)
    (0.0, 0.059)
    """
    check_level(level)
    claims, _ = claims_of(as_notion(notion), y_true, y_prob, None, classes, inputs=inputs)
    alpha = (1.0 - level) / claims.n_claims

    def reach(claim: Claim) -> float:
        n_rows = float(claim.weight.sum())
        return min(1.0, 4.0 * float(np.sqrt(np.log(4.0 / alpha) / (2.0 * n_rows))))

    estimate, margin = claims.mean(claim_cutoff), claims.mean(reach)
    return Interval(
        quantity="cutoff calibration error",
        estimate=estimate,
        low=max(0.0, estimate - margin),
        high=min(1.0, estimate + margin),
        level=level,
        standard_error=float("nan"),
        guarantee="finite-sample",
        n_samples=claims.n_rows,
        note="conservative, because it is valid for every distribution of scores",
    )
