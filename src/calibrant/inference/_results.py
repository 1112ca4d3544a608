"""What tests and intervals return: frozen results that explain themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._output.results import AsText
from calibrant._typing import FloatArray

GUARANTEES = {
    "exact": "the level holds for every sample size",
    "finite-sample": "an upper bound of the level holds for every sample size",
    "asymptotic": "the level holds in the limit of many rows",
    "heuristic": "no level is guaranteed",
}


@dataclass(frozen=True)
class CalibrationTestResult(AsText):
    """Outcome of a hypothesis test of calibration.

    Attributes
    ----------
    test : str
        What was done.
    statistic : float
        Large values speak against the null hypothesis.
    p_value : float
    null : str
        The null hypothesis, in words.
    guarantee : {"exact", "finite-sample", "asymptotic", "heuristic"}
        In which sense ``P(p_value <= level) <= level`` under the null hypothesis.
    n_samples : int
    n_resamples : int or None
        Draws of the null distribution; None where it is known in closed form.
    expected : float or None
        Mean of the statistic under the null hypothesis: what a calibrated model of this size would
        show.
    """

    test: str
    statistic: float
    p_value: float
    null: str
    guarantee: str
    n_samples: int
    n_resamples: int | None = None
    expected: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        expected = "" if self.expected is None else f" (calibrated: {self.expected:.5g} on average)"
        drawn = "" if self.n_resamples is None else f", {self.n_resamples:,} resamples"
        return "\n".join(
            [
                f"{self.test}: {self.n_samples:,} rows{drawn}",
                f"  statistic  {self.statistic:.5g}{expected}",
                f"  p-value    {self.p_value:.3g}",
                f"  null       {self.null}",
                f"  guarantee  {self.guarantee}: {GUARANTEES[self.guarantee]}",
            ]
        )


@dataclass(frozen=True)
class Interval(AsText):
    """An estimate with its confidence interval.

    Attributes
    ----------
    quantity : str
        What is estimated.
    estimate, low, high : float
    level : float
        Nominal coverage, 0.95 for a 95 % interval.
    standard_error : float
        Of ``estimate``; of its square for `debiased_interval`.
    guarantee : {"exact", "finite-sample", "asymptotic", "heuristic"}
    n_samples : float
        Sum of the weights.
    note : str
        What the interval cannot know, where there is something to say.
    """

    quantity: str
    estimate: float
    low: float
    high: float
    level: float
    standard_error: float
    guarantee: str
    n_samples: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        interval = f"{self.level:.0%} interval [{self.low:.5g}, {self.high:.5g}]"
        said = f"{self.quantity}: {self.estimate:.5g}, {interval} ({self.guarantee})"
        return f"{said}; {self.note}" if self.note else said


def monte_carlo_p_value(statistic: float, resampled: FloatArray) -> float:
    """``(1 + #{T* >= T}) / (1 + B)``; round-off must not break ties."""
    return float((1 + np.count_nonzero(resampled >= statistic - ROUND_OFF)) / (1 + len(resampled)))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number: that some true null hypothesis has one of at most a level
    happens with at most that probability (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    raised = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted.tolist()


def check_level(level: float) -> float:
    """A nominal coverage between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, 0.95 for a 95 % interval; got {level!r}")
    return float(level)
