"""The evidence of all members: what it is now, and how rows or whole periods move it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import FloatArray
from calibrant.monitoring._state import as_numbers, finite_numbers, numbers
from calibrant.monitoring._wealth import as_streams, mixed, run_factors


class Layout(NamedTuple):
    """Where the members of each family stand, and what they weigh.

    ``ends`` of the families among the members; ``weight`` (J,), which sums to one; ``n_streams``
    run side by side; ``is_detector`` or a test.
    """

    ends: tuple[int, ...]
    weight: FloatArray
    n_streams: int
    is_detector: bool

    @property
    def n_members(self) -> int:
        return len(self.weight)

    def family(self, index: int) -> slice:
        """The members of a family."""
        return slice(self.ends[index - 1] if index else 0, self.ends[index])


def make_layout(weights: list[FloatArray], n_streams: int, is_detector: bool) -> Layout:
    """The layout of families whose members weigh so much beside each other."""
    ends = np.cumsum([len(weight) for weight in weights])
    weight = np.concatenate(weights)
    return Layout(tuple(ends.tolist()), weight / weight.sum(), n_streams, is_detector)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Logarithms, each (S, J): ``wealth`` of bets from the first row on, ``member`` what is
    compared with the threshold (the same in a test); ``low`` the least wealth so far and ``since``
    (S, J) how many rows had been seen then.
    """

    wealth: FloatArray
    member: FloatArray
    low: FloatArray
    since: FloatArray

    @classmethod
    def start(cls, layout: Layout) -> Evidence:
        shape = (layout.n_streams, layout.n_members)
        member = np.full(shape, -np.inf if layout.is_detector else 0.0)
        return cls(np.zeros(shape), member, np.zeros(shape), np.zeros(shape))

    def value(self, layout: Layout) -> float:
        """Logarithm of the largest mixture of a stream."""
        return float(mixed(self.member, layout.weight).max())

    def advance(
        self, factors: FloatArray, n_seen: int, layout: Layout
    ) -> tuple[Evidence, FloatArray]:
        """After rows of factors (n, J), one by one: the evidence, and the path (T, S) of the
        logarithm of the mixture on the way.
        """
        streams = as_streams(factors, n_seen, layout.n_streams, empty=1.0)
        entry = as_streams(
            np.full((len(factors), 1), float(layout.is_detector)), n_seen, layout.n_streams
        )[:, :, 0]
        run = run_factors(self.member, streams, entry, layout.weight)
        return self._moved(run.gained, run.last, n_seen), run.path

    def absorb(self, log_f: FloatArray, n_rows: int, n_seen: int, layout: Layout) -> Evidence:
        """After a period of ``n_rows`` rows with sums ``log_f`` (J,), which is one step of time:
        the bets of its rows are all placed at its beginning.
        """
        entry = np.log(n_rows) if layout.is_detector else -np.inf
        member = np.logaddexp(self.member, entry) + log_f
        return self._moved(log_f[None], member, n_seen)

    def _moved(self, gained: FloatArray, member: FloatArray, n_seen: int) -> Evidence:
        is_lower = self.wealth < self.low
        low = np.where(is_lower, self.wealth, self.low)
        since = np.where(is_lower, float(n_seen), self.since)
        return Evidence(self.wealth + gained, member, low, since)

    def onset(self, layout: Layout) -> int:
        """Rows that had been seen when the bets began to win that now carry most: an estimate."""
        return int(self.since[self._carrier(layout)])

    def _carrier(self, layout: Layout) -> tuple[int, int]:
        """The stream and the member that carry most of the evidence."""
        stream = int(mixed(self.member, layout.weight).argmax())
        return stream, int((self.member[stream] + np.log(layout.weight)).argmax())

    def saved(self, layout: Layout) -> float:
        """Nats that were won: by the mixture in a test, in a detector since the onset by the bets
        that carry most.
        """
        if not layout.is_detector:
            return max(0.0, self.value(layout))
        stream, member = self._carrier(layout)
        return max(0.0, float(self.wealth[stream, member] - self.low[stream, member]))

    def to_state(self) -> dict[str, Any]:
        """Plain numbers."""
        return {name: as_numbers(getattr(self, name)) for name in _FIELDS}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], layout: Layout) -> Evidence:
        """What `to_state` gave, checked."""
        shape = (layout.n_streams, layout.n_members)
        read = {"member": numbers, "since": finite_numbers}
        low = {"since": 0.0}
        return cls(
            *(
                read.get(name, finite_numbers)(state, name, shape, low=low.get(name, -1e15))
                for name in _FIELDS
            )
        )


_FIELDS = ("wealth", "member", "low", "since")
