"""Power of the score test of the temperature if tempered probabilities are true."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._kernels.simplex import (
    TINY,
    as_proba,
    effective_weights,
    log_floored,
    row_sum,
    softmax,
)
from calibrant._typing import FloatArray, IntArray, ScoresLike, WeightsLike
from calibrant._validation import check_scores, check_weight

_MOST_ELEMENTS = 500_000
"""Maximum number of probabilities that are used. If there are more, evenly spaced rows are used,
because 500 rows determine means over rows to a few percent."""


class Moments(NamedTuple):
    """Moments per row of the log-loss minus its expected value under the predicted probabilities.

    ``null_variance`` is the variance under the predicted probabilities. ``shift`` and ``variance``
    are mean and variance under the tempered probabilities. ``variance`` includes the variance of
    the shift between rows.
    """

    shift: float
    null_variance: float
    variance: float

    def power(self, n_rows: float, alpha: float) -> float:
        """Return the power of the two-sided score test in the direction of the error."""
        reach = np.sqrt(n_rows) * abs(self.shift) - ndtri(1 - alpha / 2) * np.sqrt(
            self.null_variance
        )
        spread = np.sqrt(self.variance)
        return float(ndtr(reach / spread)) if spread > 0 else float(reach > 0)

    def rows_needed(self, power: float, alpha: float) -> int:
        """Return the number of rows at which the test has this power."""
        z_alpha, z_power = ndtri(1 - alpha / 2), ndtri(power)
        root = z_alpha * np.sqrt(self.null_variance) + z_power * np.sqrt(self.variance)
        if self.shift == 0:
            raise ValueError(
                "All rows of y_prob are uniform, or contain only 0 and 1. A temperature does not "
                "change such rows, so no test can detect a temperature. Pass other probabilities."
            )
        return max(1, int(np.ceil((root / self.shift) ** 2)))


class TemperedRows(NamedTuple):
    """Log-probabilities (m, K), probabilities, predicted classes and weights of some rows.

    The weights sum to one, and ``n_rows`` is the effective number of all rows.
    """

    u: FloatArray
    proba: FloatArray
    predicted: IntArray
    share: FloatArray
    n_rows: float

    def tempered(self, temperature: float) -> FloatArray:
        """Return the true probabilities if this temperature corrects the predictions.

        Classes with probability zero keep probability zero at every temperature.
        """
        return softmax(np.where(self.proba > 0, self.u / temperature, -np.inf))

    def moments(self, temperature: float) -> Moments:
        """Return the moments of the statistic of the score test."""
        null_mean, null_variance = _log_moments(self.proba, self.u)
        mean, variance = _log_moments(self.tempered(temperature), self.u)
        shift = null_mean - mean
        overall = float(self.share @ shift)
        between = float(self.share @ (shift - overall) ** 2)
        return Moments(
            overall, float(self.share @ null_variance), float(self.share @ variance) + between
        )

    def gap(self, temperature: float) -> float:
        """Return mean confidence minus accuracy if the tempered probabilities are true."""
        top = np.arange(len(self.u)), self.predicted
        return float(self.share @ (self.proba[top] - self.tempered(temperature)[top]))

    def log_loss(self, temperature: float) -> float:
        """Return the mean divergence of the predicted from the tempered probabilities, in nats."""
        true = self.tempered(temperature)
        return float(self.share @ row_sum(true * (log_floored(true, TINY) - self.u)))


def _log_moments(proba: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of u under the probabilities of each row."""
    mean = row_sum(proba * u)
    return mean, np.maximum(row_sum(proba * u**2) - mean**2, 0.0)


def tempered_rows(
    y_prob: ScoresLike, inputs: str, sample_weight: WeightsLike | None
) -> TemperedRows:
    """Check the arguments that the user passed. If there are many rows, keep evenly spaced rows."""
    proba = as_proba(check_scores(y_prob, inputs=inputs), inputs)
    weight = effective_weights(check_weight(sample_weight, len(proba)))
    n_rows = float(weight.sum())
    step = -(-proba.size // _MOST_ELEMENTS)
    subset, weights = np.asarray(proba[::step], dtype=np.float64), weight[::step]
    u = log_floored(subset, TINY)
    return TemperedRows(u, subset, subset.argmax(axis=1), weights / weights.sum(), n_rows)
