"""Has the class mix, as the model sees it, changed? Without labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import exp
from typing import Any

import numpy as np

from calibrant._simplex import as_proba
from calibrant._typing import FloatArray, ScoresLike
from calibrant._validation import check_count, check_scores
from calibrant.monitoring._wealth import run_factors

_TILTS = np.array([-1.0, -0.5, 0.5, 1.0])
"""Changes of the log-frequency of a class that are bet on."""

_BLOCK_ROWS = 128


@dataclass(frozen=True)
class DriftStep:
    """The state of a `ScoreDrift` after an update: natural logarithms of the evidence and of where
    it is an alarm, and the class whose share changed most, as the model sees it.
    """

    n_seen: int
    nats: float
    threshold: float
    alarm: bool
    worst_class: int

    @property
    def evidence(self) -> float:
        """The evidence itself."""
        return exp(min(self.nats, 690.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "evidence": self.evidence}


class ScoreDrift:
    r"""An alarm for scores that no longer look like those of a reference, without labels.

    For a class c and a tilt :math:`\delta`, :math:`r = 1 + p_c (e^\delta - 1)` has some mean on the
    reference. It is not known, so that bets are placed with r / U, where U is an upper confidence
    bound of that mean (empirical Bernstein): half of the false alarms are spent on the bounds, half
    on the bets, which are those of a detector, as in `CalibrationMonitor`.

    Parameters
    ----------
    reference_proba : probabilities of reference rows, of shape (m, K)
    false_alarm : float
        Probability of an alarm within the horizon, as long as rows are drawn like the reference.
    horizon : int
    inputs : {"proba", "logits"}

    Notes
    -----
    Changes that leave the class mix as the model sees it alone are not seen; neither is whether the
    model is still right: that needs labels. On an alarm, `calibrant.label_shift.adapt` estimates
    the new class frequencies. The fewer reference rows, the larger a change must be.

    References
    ----------
    Maurer & Pontil (2009), Empirical Bernstein bounds, theorem 4, arXiv:0907.3740.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> drift = ScoreDrift(rng.dirichlet([1, 1, 1], 2000), horizon=10_000)
    >>> drift.update(rng.dirichlet([1, 1, 1], 500)).alarm
    False
    >>> drift.update(rng.dirichlet([4, 1, 1], 500)).alarm
    True
    """

    def __init__(
        self,
        reference_proba: ScoresLike,
        *,
        false_alarm: float = 0.05,
        horizon: int = 1_000_000,
        inputs: str = "proba",
    ) -> None:
        if not 0 < false_alarm < 1:
            raise ValueError(f"false_alarm must lie between 0 and 1, got {false_alarm!r}")
        self.inputs = inputs
        proba = as_proba(check_scores(reference_proba, inputs=inputs), inputs)
        check_count(len(proba), "the number of reference rows", minimum=2)
        self.reference_mean = proba.mean(axis=0)
        self.threshold = float(np.log(2 * check_count(horizon, "horizon") / false_alarm))
        self._bound = _upper_means(proba, false_alarm / 2)
        n_members = self._bound.size
        self._weight = np.full(n_members, 1.0 / n_members)
        self._log_m = np.full((1, n_members), -np.inf)
        self._sum, self._n_rows, self._alarm = np.zeros(proba.shape[1]), 0, False

    def update(self, proba: ScoresLike) -> DriftStep:
        """Rows of scores, in order; no labels."""
        rows = as_proba(check_scores(proba, inputs=self.inputs), self.inputs)
        if rows.shape[1] != len(self.reference_mean):
            raise ValueError(
                f"expected the {len(self.reference_mean)} classes of the reference, got "
                f"{rows.shape[1]} columns"
            )
        peak = -np.inf
        for start in range(0, len(rows), _BLOCK_ROWS):
            peak = max(peak, self._advance(rows[start : start + _BLOCK_ROWS]))
        self._sum += rows.sum(axis=0)
        self._n_rows += len(rows)
        self._alarm = self._alarm or peak >= self.threshold
        worst = int(self._log_m.reshape(len(self.reference_mean), -1).max(axis=1).argmax())
        nats = float(np.logaddexp.reduce(self._log_m[0]) + np.log(self._weight[0]))
        return DriftStep(self._n_rows, nats, self.threshold, self._alarm, worst)

    def _advance(self, rows: FloatArray) -> float:
        factors = (_tilted(rows) / self._bound).reshape(len(rows), 1, -1)
        run = run_factors(self._log_m, factors, np.ones((len(rows), 1)), self._weight)
        self._log_m = run.last
        return float(run.path.max())

    @property
    def mean(self) -> FloatArray:
        """Mean probability of each class since the start, to set beside ``reference_mean``."""
        return self._sum / max(1, self._n_rows)


def _tilted(rows: FloatArray) -> FloatArray:
    return 1.0 + rows[:, :, None] * np.expm1(_TILTS)


def _upper_means(proba: FloatArray, alpha: float) -> FloatArray:
    """Upper bounds of the means of all tilted rows, (K, tilts), which hold together with
    probability ``1 - alpha``.
    """
    values = _tilted(proba)
    n_rows, reach = len(proba), np.abs(np.expm1(_TILTS))
    log_term = np.log(2.0 * values[0].size / alpha)
    spread = np.sqrt(2.0 * values.var(axis=0, ddof=1) * log_term / n_rows)
    return values.mean(axis=0) + spread + 7.0 * reach * log_term / (3.0 * (n_rows - 1))
