"""Plan the number of rows of an evaluation, or compute the smallest detectable error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy

from calibrant._output.numbers import format_number, format_percent
from calibrant._output.results import AsText
from calibrant._typing import Inputs, ScoresLike, WeightsLike
from calibrant._validation import check_count, check_number, check_share
from calibrant.inference._tempered import TemperedRows, tempered_rows

_HIGHEST = 100.0
"""Highest temperature of a search. At this temperature, probabilities are nearly uniform, so higher
temperatures change almost nothing."""

_DEFAULT_TEMPERATURE = 1.25
"""Default temperature to detect, a typical error of a network after a shift of its data."""


@dataclass(frozen=True)
class DetectableError(AsText):
    """A calibration error and the number of rows that are needed to detect the error.

    Attributes
    ----------
    n_rows : int
        Number of labeled rows.
    temperature : float
        Temperature that would correct the probabilities, above 1 for overconfidence. The
        temperature is infinite if the rows are too few to detect any overconfidence.
    gap : float
        Mean confidence minus accuracy of a model with this error.
    log_loss : float
        Reduction in log-loss by correcting this error, in nats per row.
    power : float
        Probability that the test rejects.
    alpha : float
        Level of the test.
    guarantee : str
        "asymptotic", because the power is accurate only for many rows.

    See Also
    --------
    rows_needed : Number of rows needed to detect a given error.
    detectable_error : Smallest error that a given number of rows can detect.
    """

    n_rows: int
    temperature: float
    gap: float
    log_loss: float
    power: float
    alpha: float
    guarantee: str = "asymptotic"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for example for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        kind = "overconfidence" if self.gap >= 0 else "underconfidence"
        if np.isinf(self.temperature):
            return (
                f"With {self.n_rows:,} rows, no test at level {format_percent(self.alpha)} detects "
                f"any overconfidence with probability {format_percent(self.power)}."
            )
        return (
            f"With {self.n_rows:,} rows, a test at level {format_percent(self.alpha)} detects an "
            f"{kind} of {format_percent(abs(self.gap))} (temperature "
            f"{format_number(self.temperature)}) with probability {format_percent(self.power)}."
        )


def rows_needed(
    y_prob: ScoresLike,
    *,
    temperature: float | None = None,
    gap: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
) -> DetectableError:
    r"""Compute how many labeled rows a test needs to detect a given miscalibration.

    The function only needs predicted probabilities, so you can plan before you label any rows.

    Parameters
    ----------
    y_prob : array-like of shape (n, K) or (n,)
        Predicted probabilities of rows that are similar to the rows that you will label.
    temperature : float, optional
        Error to detect, as the temperature that would correct the probabilities. The temperature is
        above 1 for overconfidence and below 1 for underconfidence. The default is 1.25.
    gap : float, optional
        Error to detect as mean confidence minus accuracy, instead of ``temperature``.
    power : float, default 0.8
        Probability of detection.
    alpha : float, default 0.05
        Level of the two-sided test.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in ``y_prob``.
    sample_weight : array-like of shape (n,), optional
        Row weights.

    Returns
    -------
    DetectableError
        The error, with the number of rows in ``n_rows``.

    See Also
    --------
    detectable_error : Smallest error that a given number of rows can detect.
    consistency_test : Exact test of overconfidence with ``metric="log_loss"``.

    Notes
    -----
    Assume that the true probabilities are :math:`q \propto p^{1/T}`. The score test of T = 1
    compares the log-loss with its expected value under p. With :math:`v_0 = E\,
    \text{Var}_p(\log p)`, the variance :math:`v_1` of the difference under q, and its mean
    :math:`\mu = E \sum_k (p_k - q_k) \log p_k`, the number of rows is

    .. math:: n = \Big( \frac{z_{1-\alpha/2} \sqrt{v_0} + z_{\text{power}} \sqrt{v_1}}{\mu}
        \Big)^2 .

    For small errors, the score test is the most powerful test, so no test needs fewer rows. Tests
    of binned errors need more rows. If the error has another form, for example if only some classes
    are miscalibrated, the number is a lower bound. The formula is asymptotic. In simulations on
    five data sets, the power was 0.77 to 0.83 for a planned power of 0.8.

    References
    ----------
    Cox & Hinkley (1974), Theoretical Statistics, section 9.3 (score tests).

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> plan = rows_needed(digits_predictions("forest").test_proba, temperature=1.25)
    >>> 20 < plan.n_rows < 200
    True
    """
    check_share(power, "power")
    check_share(alpha, "alpha")
    rows = tempered_rows(y_prob, inputs, sample_weight)
    target = _temperature_of(rows, temperature, gap)
    return _result(rows, target, rows.moments(target).rows_needed(power, alpha), power, alpha)


def detectable_error(
    y_prob: ScoresLike,
    *,
    n_rows: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    inputs: Inputs = "proba",
    sample_weight: WeightsLike | None = None,
) -> DetectableError:
    """Compute the smallest overconfidence that a given number of rows can detect.

    Report this error together with a test that did not reject, because the test would often miss a
    smaller error.

    Parameters
    ----------
    y_prob, power, alpha, inputs, sample_weight
        As in `rows_needed`.
    n_rows : int, optional
        Number of labeled rows. The default is the number of rows in ``y_prob``, or with weights the
        effective number.

    Returns
    -------
    DetectableError
        The smallest detectable error. The temperature is infinite if a test would miss even uniform
        true probabilities.

    See Also
    --------
    rows_needed : Number of rows needed to detect a given error.

    Notes
    -----
    For this temperature, `rows_needed` returns ``n_rows``. Even the most powerful test detects
    smaller errors of this form with a lower probability than ``power``.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> proba = digits_predictions("forest").test_proba
    >>> few, many = (detectable_error(proba, n_rows=n).gap for n in (50, 5000))
    >>> few > 5 * many
    True
    """
    check_share(power, "power")
    check_share(alpha, "alpha")
    rows = tempered_rows(y_prob, inputs, sample_weight)
    count = rows.n_rows if n_rows is None else float(check_count(n_rows, "n_rows"))
    temperature = _detectable_temperature(rows, count, power, alpha)
    return _result(rows, temperature, max(1, round(count)), power, alpha)


def _detectable_temperature(rows: TemperedRows, n_rows: float, power: float, alpha: float) -> float:
    """Return the smallest temperature that a test detects, or infinity if there is none."""

    def missing_power(log_temperature: float) -> float:
        return power - rows.moments(float(np.exp(log_temperature))).power(n_rows, alpha)

    root = _root(missing_power, float(np.log(_HIGHEST)))
    return np.inf if root is None else float(np.exp(root))


def _temperature_of(rows: TemperedRows, temperature: float | None, gap: float | None) -> float:
    """Return the temperature to detect, from a temperature or a gap."""
    if temperature is not None and gap is not None:
        raise TypeError(
            "temperature and gap both define the error, so pass only one argument, such as "
            "temperature=1.25."
        )
    for value, name in ((temperature, "temperature"), (gap, "gap")):
        if value is not None:
            check_number(value, name)
    if gap is not None:
        return _temperature_of_gap(rows, gap)
    target = _DEFAULT_TEMPERATURE if temperature is None else temperature
    if not (0 < target < np.inf and target != 1):
        raise ValueError(
            f"temperature must be positive, finite and different from 1, got {target!r}. For "
            "example, pass temperature=1.25 to detect overconfidence."
        )
    return target


def _temperature_of_gap(rows: TemperedRows, gap: float) -> float:
    sign = 1.0 if gap > 0 else -1.0
    end = float(np.log(_HIGHEST))
    root = None
    if gap != 0:
        root = _root(lambda size: abs(gap) - sign * rows.gap(float(np.exp(sign * size))), end)
    if root is None:
        low, high = rows.gap(1 / _HIGHEST), rows.gap(_HIGHEST)
        raise ValueError(
            f"gap must be nonzero and between {low:.3g} and {high:.3g} for these probabilities, "
            f"got {gap!r}. For example, pass gap={high / 10:.2g}."
        )
    return float(np.exp(sign * root))


def _root(lacking: Callable[[float], float], end: float) -> float | None:
    """Find the zero of a decreasing function between 0 and ``end``, or None if there is none."""
    if not lacking(end) <= 0:
        return None
    return (
        float(scipy.optimize.brentq(lacking, 1e-9, end, xtol=1e-6)) if lacking(1e-9) > 0 else 1e-9
    )


def _result(
    rows: TemperedRows, temperature: float, n_rows: int, power: float, alpha: float
) -> DetectableError:
    return DetectableError(
        n_rows,
        temperature,
        rows.gap(temperature),
        rows.log_loss(temperature),
        power,
        alpha,
    )
