"""What a monitor says: gaps of claims, and the state after each update."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import exp
from typing import Any

_LARGEST_LOG = 690.0
"""The largest logarithm of an evidence that is written as a number."""


@dataclass(frozen=True)
class Gap:
    """The mean gap of a claim over all rows so far: how much more often it came true than was said.

    ``low`` and ``high`` hold at all times and for all claims together; ``nats`` is the logarithm of
    the evidence of the claim alone; ``is_listed`` by the false-discovery procedure.
    """

    claim: str
    n_rows: int
    mean: float
    low: float
    high: float
    nats: float
    is_listed: bool

    @property
    def largest(self) -> float:
        """The largest gap that these rows do not rule out."""
        return max(abs(self.low), abs(self.high))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class MonitorStep:
    """The state of a monitor after an update.

    Attributes
    ----------
    when : str
        What the update was called.
    n_rows, n_seen : int
        Rows of the update, and of all updates.
    nats, threshold : float
        Natural logarithms of the evidence now and of where it is an alarm.
    peak : float
        The largest logarithm of the evidence at any row of the update.
    alarm : bool
        Whether the threshold has been reached, now or in an earlier update since the last reset.
    gaps : tuple of Gap
        Of the first notion's claims and of those that are listed.
    """

    when: str
    n_rows: int
    n_seen: int
    nats: float
    peak: float
    threshold: float
    alarm: bool
    gaps: tuple[Gap, ...]

    @property
    def evidence(self) -> float:
        """The evidence itself; an alarm is where it reaches ``exp(threshold)``."""
        return exp(min(self.nats, _LARGEST_LOG))

    @property
    def listed(self) -> tuple[str, ...]:
        """Names of the claims and groups that are worth a look."""
        return tuple(gap.claim for gap in self.gaps if gap.is_listed)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "evidence": self.evidence, "listed": list(self.listed)}
