"""Risk-coverage curve with simultaneous upper bounds of the error rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import FloatArray, Inputs, IntArray, LabelsLike, ScoresLike
from calibrant._validation import check_count
from calibrant.guarantees import clopper_pearson
from calibrant.inference._results import check_level
from calibrant.inference._rows import check_rows
from calibrant.metrics._risk_path import RiskPath, risk_path
from calibrant.metrics.sureness import ScoreLike, sureness

_FIRST_RANK = 20
"""Smallest rank with a bound. With fewer rows, the bound is above 20% even without errors."""


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverageCurve(ShortRepr, AsText):
    """Risk-coverage curve with simultaneous bounds, returned by `risk_coverage`.

    Each point is a threshold of the score. Rows with a score above the threshold are answered.

    Attributes
    ----------
    threshold : array of shape (m,)
        Thresholds of the score in decreasing order. At the last threshold, -inf, all rows are
        answered.
    coverage : array of shape (m,)
        Share of the rows that are answered.
    rows : array of shape (m,)
        Number of rows that are answered.
    risk : array of shape (m,)
        Error rate among the answered rows.
    high : array of shape (m,)
        Upper bounds of the error rate of new answers. All bounds hold jointly with probability
        ``level``.
    level : float
        Joint confidence level of the bounds.
    n_samples : int
        Number of rows.
    path : RiskPath
        Numbers of rows and errors at every distinct score, for plots of the whole curve.
    guarantee : str
        "finite-sample", because the bounds hold for every number of rows.

    See Also
    --------
    risk_coverage : Compute the curve.
    calibrant.plots.RiskCoverageDisplay : Plot of the curve.
    """

    threshold: FloatArray
    coverage: FloatArray
    rows: FloatArray
    risk: FloatArray
    high: FloatArray
    level: float
    n_samples: int
    path: RiskPath
    guarantee: str = "finite-sample"

    def proved(self, risk: float) -> int | None:
        """Return the index of the last point whose bound is at most ``risk``, or None.

        You may choose ``risk`` after looking at the curve, because all bounds hold jointly.
        """
        points = np.flatnonzero(self.high <= risk)
        return int(points[-1]) if points.size else None

    def proved_coverage(self, risk: float) -> float:
        """Return the largest coverage with a bound of at most ``risk``, or 0 if there is none."""
        point = self.proved(risk)
        return 0.0 if point is None else float(self.coverage[point])

    def to_dict(self) -> dict[str, Any]:
        """Return the points as plain lists."""
        names = ("threshold", "coverage", "rows", "risk", "high")
        points = {name: getattr(self, name).tolist() for name in names}
        return {**points, "level": self.level, "n_samples": self.n_samples}

    def __str__(self) -> str:
        head = (
            f"Risk and coverage of {self.n_samples:,} rows. All bounds hold jointly with "
            f"probability {format_percent(self.level)}."
        )
        lines = ["threshold  answered  error rate  upper bound"]
        points = zip(self.threshold, self.coverage, self.risk, self.high, strict=True)
        lines += [f"{t:9.4f}  {c:8.1%}  {r:10.2%}  {h:11.2%}" for t, c, r, h in points]
        return "\n".join([head, *lines])


def risk_coverage(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    *,
    n_points: int = 16,
    level: float = 0.9,
    score: ScoreLike = "confidence",
    inputs: Inputs = "proba",
    classes: LabelsLike | None = None,
) -> RiskCoverageCurve:
    r"""Compute the risk-coverage curve with simultaneous upper bounds of the error rate.

    The curve shows the error rate (risk) for each share of answered rows (coverage). All bounds
    hold jointly, so you may look at the bounds before you choose an acceptable risk. If you choose
    the risk in advance, `calibrant.decisions` can answer more rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels of rows that neither the model nor its calibrator was fitted on.
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities. A 1D array contains the scores of class 1 of a binary problem.
    n_points : int, default 16
        Number of points with a bound. With more points, the points are closer together, but the
        bounds are higher.
    level : float, default 0.9
        Probability that all bounds hold.
    score : {"confidence", "margin", "log-margin"} or callable, default "confidence"
        Score that orders the rows, as in `calibrant.metrics.aurc`.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    classes : array-like of labels, optional
        Labels of the columns.

    Returns
    -------
    RiskCoverageCurve
        Thresholds with coverage, error rate and its upper bound.

    See Also
    --------
    calibrant.metrics.aurc : Area under the curve.
    calibrant.metrics.coverage_at_risk : Coverage without a bound.
    calibrant.plots.RiskCoverageDisplay : Plot of the curve.

    Notes
    -----
    The m-th point answers the rows with a score above :math:`t = s_{(m+1)}`, the score of rank m +
    1. Given t and the number of rows with a score above t, these rows are independent draws of rows
    with a score above t. The number of errors of these rows is therefore binomial with the error
    rate :math:`R(t)` of new answers. With :math:`\alpha` = 1 - ``level`` and k points, the upper
    limit of Clopper and Pearson at level :math:`1 - \alpha / k` bounds :math:`R(t)`. By the union
    bound, all k bounds hold jointly with probability at least ``level``. The ranks m form a
    geometric sequence from 20 to n. Ties are answered together, so a point may have fewer rows than
    its rank, or coincide with another point.

    Rows must be independent, have the distribution of new rows, and have unit weights. The cost is
    O(n log n).

    References
    ----------
    Clopper & Pearson (1934), The use of confidence or fiducial limits,
    doi:10.1093/biomet/26.4.404; Geifman & El-Yaniv (2017), Selective classification for deep neural
    networks, arXiv:1705.08500.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> curve = risk_coverage(data.test_labels, data.test_proba)
    >>> bool((curve.high > curve.risk).all()), float(curve.coverage[-1])
    (True, 1.0)
    """
    check_level(level)
    check_count(n_points, "n_points")
    proba, y, weight, _ = check_rows(y_true, y_prob, None, classes, inputs)
    path = risk_path(sureness(score, proba), proba.argmax(axis=1) != y, weight)
    points = _points(path, n_points)
    rows, errors = path.rows[points], path.errors[points]
    # `clopper_pearson` assigns half of its alpha to each side, and only the upper side is used.
    _, high = clopper_pearson(errors, rows, 2.0 * (1.0 - level) / n_points)
    return RiskCoverageCurve(
        threshold=np.append(path.score, -np.inf)[points + 1],
        coverage=rows / path.total,
        rows=rows,
        risk=errors / rows,
        high=high,
        level=level,
        n_samples=round(path.total),
        path=path,
    )


def _points(path: RiskPath, n_points: int) -> IntArray:
    """Return the index of the last block of ties of each point.

    A point of rank m ends with the last block that has at most m cumulative rows. The score of rank
    m + 1 alone determines this block, as the proof requires.
    """
    n_rows = path.total
    ranks = np.ceil(np.geomspace(min(_FIRST_RANK, n_rows), n_rows, n_points) - 1e-9)
    ranks[-1] = n_rows
    ends = np.searchsorted(path.rows, ranks, side="right") - 1
    return np.unique(ends[ends >= 0])
