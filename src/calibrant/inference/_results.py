"""Results of tests and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._kernels.blocks import ROUND_OFF
from calibrant._output.numbers import format_number
from calibrant._output.results import AsText
from calibrant._typing import FloatArray

GUARANTEES = {
    "exact": "the level holds for every number of rows",
    "finite-sample": "the error rate is at most the level, for every number of rows",
    "asymptotic": "the level holds in the limit of many rows",
    "heuristic": "the level is not guaranteed",
}
"""Meaning of the values of ``guarantee``."""


@dataclass(frozen=True)
class CalibrationTestResult(AsText):
    """Result of a hypothesis test of calibration.

    A small p-value is evidence against calibration. A large p-value does not show calibration.

    Attributes
    ----------
    test : str
        Name of the test.
    statistic : float
        Test statistic. Large values are evidence against the null hypothesis.
    p_value : float
        P-value of the null hypothesis.
    null : str
        Description of the null hypothesis.
    guarantee : {"exact", "finite-sample", "asymptotic", "heuristic"}
        Validity of ``P(p_value <= level) <= level`` under the null hypothesis.
    n_samples : int
        Number of rows.
    n_resamples : int or None
        Number of draws of the null distribution. The value is None if the distribution is known in
        closed form.
    expected : float or None
        Mean of the statistic under the null hypothesis, for the same number of rows.

    See Also
    --------
    consistency_test : Test of a calibration error by resampling.
    mean_test : Exact test of mean predicted probability against observed frequency.
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
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        expected = ""
        if self.expected is not None:
            expected = f" (expected under calibration: {format_number(self.expected)})"
        drawn = "" if self.n_resamples is None else f", {self.n_resamples:,} resamples"
        return "\n".join(
            [
                f"{self.test}: {self.n_samples:,} rows{drawn}",
                f"  statistic  {format_number(self.statistic)}{expected}",
                f"  p-value    {self.p_value:.3g}",
                f"  null       {self.null}",
                f"  guarantee  {self.guarantee}: {GUARANTEES[self.guarantee]}",
            ]
        )


@dataclass(frozen=True)
class Interval(AsText):
    """Estimate with its confidence interval.

    Attributes
    ----------
    quantity : str
        Name of the estimated quantity.
    estimate, low, high : float
        The estimate and the ends of the interval.
    level : float
        Nominal coverage, such as 0.95 for a 95% interval.
    standard_error : float
        Standard error of ``estimate``. For `debiased_interval`, this is the standard error of the
        squared estimate.
    guarantee : {"exact", "finite-sample", "asymptotic", "heuristic"}
        Validity of the level, see `calibrant.inference`.
    n_samples : float
        Sum of the weights.
    note : str
        Limitation of the interval, or an empty string.

    See Also
    --------
    bootstrap_interval : Interval of a metric by resampling rows.
    debiased_interval : Interval of the L2 calibration error.
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
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        interval = f"{self.level:.0%} CI {format_number(self.low)} to {format_number(self.high)}"
        text = f"{self.quantity}: {format_number(self.estimate)} ({interval}, {self.guarantee})"
        return f"{text}; {self.note}" if self.note else text


def monte_carlo_p_value(statistic: float, resampled: FloatArray) -> float:
    """Return ``(1 + #{T* >= T}) / (1 + B)``, with a tolerance for ties."""
    return float((1 + np.count_nonzero(resampled >= statistic - ROUND_OFF)) / (1 + len(resampled)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests by Holm's method (Holm 1979).

    The probability that any true null hypothesis has an adjusted p-value of at most alpha is at
    most alpha.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    scaled = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(scaled, 1.0)
    return adjusted.tolist()


def check_level(level: float) -> float:
    """Check that a nominal coverage lies between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(
            f"level must lie between 0 and 1, got {level!r}. Pass level=0.95 for a 95% interval."
        )
    return float(level)
