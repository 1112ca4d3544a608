"""What a monitor was told: when it shall ring, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any

from calibrant._typing import Inputs
from calibrant._validation import check_count, check_inputs, check_option
from calibrant.notions import Notion, as_notion


@dataclass(frozen=True)
class Rule:
    """Checked parameters of a `CalibrationMonitor`."""

    false_alarm: float
    horizon: int
    tolerance: float
    notions: tuple[Notion, ...]
    mode: str
    arl: float | None
    lag: int
    inputs: Inputs

    @property
    def is_detector(self) -> bool:
        return self.mode == "detector"

    @property
    def learns(self) -> bool:
        """Whether there are learned members: not with a tolerance, against which likelihoods are
        no evidence, nor where rows overlap, because the labels before a row are not its past.
        """
        return not self.tolerance and self.lag == 1

    @property
    def threshold(self) -> float:
        """Natural logarithm of the evidence that is an alarm.

        Streams of a lag have the rows of the horizon between them, so that their bounds add up to
        that of one; in a test each gets its part of the false alarms. The run length of several
        streams is known by that sum alone, ``P(alarm within n) <= n / A``, which gives a mean of
        at least A / 2: for them an average run length needs twice the threshold.
        """
        if not self.is_detector:
            return log(self.lag / self.false_alarm)
        if self.arl is None:
            return log(self.horizon / self.false_alarm)
        return log(self.arl if self.lag == 1 else 2.0 * self.arl)

    def to_state(self) -> dict[str, Any]:
        """Plain values, which `make_rule` takes."""
        plain = ("false_alarm", "horizon", "tolerance", "mode", "arl", "lag", "inputs")
        values = {name: getattr(self, name) for name in plain}
        return {**values, "notions": [notion.name for notion in self.notions]}


def make_rule(
    *,
    false_alarm: Any,
    horizon: Any,
    tolerance: Any,
    notions: Any,
    mode: Any,
    arl: Any,
    lag: Any,
    inputs: Any,
) -> Rule:
    """The rule, or what is wrong with it."""
    _check_between(false_alarm, "false_alarm", 0.0, 1.0)
    if not (_is_number(tolerance) and 0.0 <= tolerance < 0.5):
        raise ValueError(f"tolerance must be at least 0 and below 0.5, got {tolerance!r}")
    if arl is not None and not (_is_number(arl) and 1.0 < arl <= 1e100):
        raise ValueError(f"arl must be a number of rows above 1, or None; got {arl!r}")
    kinds = (notions,) if isinstance(notions, str | Notion) else tuple(notions)
    claims = tuple(as_notion(notion) for notion in kinds)
    if not claims:
        raise ValueError("notions must name at least one notion")
    return Rule(
        float(false_alarm),
        check_count(horizon, "horizon"),
        float(tolerance),
        claims,
        check_option(mode, "mode", ("detector", "test")),
        None if arl is None else float(arl),
        check_count(lag, "lag"),
        check_inputs(inputs),
    )


def _check_between(value: Any, name: str, low: float, high: float) -> None:
    if not (_is_number(value) and low < value < high):
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
