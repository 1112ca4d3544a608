"""Cumulative rows and errors in the order of decreasing confidence, for risk-coverage curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._kernels.simplex import effective_weights
from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike, WeightsLike
from calibrant.metrics.sureness import ScoreLike, sureness
from calibrant.notions import as_notion, claims_of, predictions_for


class RiskPath(NamedTuple):
    """Cumulative rows and errors in the order of decreasing scores.

    Each array has shape (m,), with one entry per distinct score. ``rows`` and ``errors`` are
    cumulative weights.
    """

    score: FloatArray
    rows: FloatArray
    errors: FloatArray

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.rows[-1])

    @property
    def n_errors(self) -> float:
        """Weight of all errors."""
        return float(self.errors[-1])

    def errors_at(self, rows: FloatArray | float) -> FloatArray:
        """Return the errors among the most confident ``rows``. Ties are averaged over all orders.

        >>> path = RiskPath(np.array([0.9]), np.array([4.0]), np.array([2.0]))
        >>> float(path.errors_at(3.0))
        1.5
        """
        return np.interp(rows, np.append(0.0, self.rows), np.append(0.0, self.errors))

    def best(self) -> RiskPath:
        """Return the path of a perfect score, which puts all errors last."""
        correct = self.total - self.n_errors
        ends = np.array([[1.0, correct, 0.0], [0.0, self.total, self.n_errors]])
        return RiskPath(*ends[ends[:, 1] > np.append(0.0, ends[:-1, 1])].T)


def risk_path(score: FloatArray, is_wrong: AnyArray, weight: FloatArray) -> RiskPath:
    """Return the path of rows with these scores, without rows of weight 0, in O(n log n) time."""
    order = np.argsort(-score, kind="stable")
    if not weight.all():
        order = order[weight[order] > 0]
    ordered = score[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(order) - 1)
    rows = np.cumsum(weight[order])
    errors = np.cumsum(weight[order] * is_wrong[order])
    return RiskPath(ordered[ends], rows[ends], errors[ends])


def path_of(
    y_true: LabelsLike,
    y_prob: ScoresLike,
    score: ScoreLike,
    sample_weight: WeightsLike | None,
    classes: LabelsLike | None,
    inputs: str,
) -> RiskPath:
    """Check the arguments that the user passed, and return the path of the rows.

    The areas depend on the number of rows, so weights are scaled to the effective number of rows.
    """
    notion = as_notion("confidence")
    if score == "confidence":
        # Chunked rows are counted in cells of confidences. The rows of a cell count as ties.
        claims, _ = claims_of(notion, y_true, y_prob, sample_weight, classes, inputs=inputs)
        claim = next(iter(claims.effective()))
        return risk_path(claim.score, ~claim.outcome.astype(bool), claim.weight)
    proba, y, weight, _ = predictions_for(
        notion, y_true, y_prob, sample_weight, classes, inputs=inputs
    )
    weights = effective_weights(weight)
    return risk_path(sureness(score, proba), proba.argmax(axis=1) != y, weights)
