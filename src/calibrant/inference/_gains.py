"""What calibration gains on rows that the map has not seen, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from calibrant._folds import Fold
from calibrant._typing import FloatArray


@dataclass(frozen=True)
class Gain:
    r"""How much a score falls by calibration, cross-fitted, with a paired interval.

    With :math:`d_i` the score of row i as it is minus the score as calibrated by a map that has not
    seen it, s their standard deviation, n the rows and J folds, the interval is

    .. math:: \bar d \pm t_{n-1} \frac{s}{\sqrt n}
        \sqrt{1 + J \frac{n_\text{judge}}{n_\text{fit}}} .

    The last factor (1.5 for five folds) is for the maps being fitted on data that overlap, and on
    the rows that judge the other maps: without it the interval is too short. It reaches at least
    1/n to both sides: where maps came out as the identity nothing varies, and still a row that did
    not come up could have changed the mean by as much.

    Attributes
    ----------
    score : str
        "log_loss" or "brier_score".
    gain : float
        Mean difference; positive where calibration helps.
    low, high : float
        Interval of the gain to be expected from a map fitted on as many rows as in a fold.
    level : float
    before, after : float
        Mean scores.
    guarantee : str

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error, doi:10.1023/A:1024068626366.
    """

    score: str
    gain: float
    low: float
    high: float
    level: float
    before: float
    after: float
    guarantee: str = "asymptotic"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"{self.score} {self.before:.5g} -> {self.after:.5g}, gain {self.gain:.4g}, "
            f"{self.level:.0%} interval [{self.low:.4g}, {self.high:.4g}]"
        )


def paired_gain(
    before: FloatArray,
    after: FloatArray,
    weight: FloatArray,
    folds: Sequence[Fold],
    *,
    score: str,
    level: float = 0.95,
) -> Gain:
    """The gain of rows that were judged by the maps of ``folds``; weights are numbers of copies."""
    total = float(weight.sum())
    difference = before - after
    gain = float(weight @ difference) / total
    error = 0.0
    if total > 1:
        error = float(np.sqrt(weight @ (difference - gain) ** 2 / (total - 1) / total)) * _overlap(
            folds
        )
    reach = max(float(stdtrit(max(total - 1, 1.0), (1 + level) / 2)) * error, 1.0 / total)
    return Gain(
        score,
        gain,
        gain - reach,
        gain + reach,
        level,
        float(weight @ before) / total,
        float(weight @ after) / total,
    )


def _overlap(folds: Sequence[Fold]) -> float:
    """Factor of Nadeau and Bengio on the standard error."""
    ratio = np.mean([fold.judge_weight.sum() / fold.fit_weight.sum() for fold in folds])
    return float(np.sqrt(1.0 + len(folds) * ratio))
