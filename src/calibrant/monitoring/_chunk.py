"""A period's rows as sums: what shards exchange instead of rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibrant._typing import FloatArray
from calibrant.monitoring._experts import ExpertSums
from calibrant.monitoring._groups import Groups, add_groups
from calibrant.monitoring._sequences import GapSums


@dataclass(frozen=True, eq=False)
class MonitorChunk:
    """Sums of the rows of a shard, of one period of one monitor: they add up to those of all
    shards, and `CalibrationMonitor.absorb` takes them.

    Attributes
    ----------
    n_rows : int
    log_factors : array of shape (J,)
        Sums of the logarithms of what each member won.
    gaps : GapSums
        Of every claim.
    learnt : tuple of ExpertSums
        What the rows say about the learned members.
    start : tuple
        Which monitor, and how many rows it had seen: only chunks of one start add up.
    groups : dict of name to group
        Where rows were given groups.
    """

    n_rows: int
    log_factors: FloatArray
    gaps: GapSums
    learnt: tuple[ExpertSums, ...]
    start: tuple[str, int]
    groups: Groups = field(default_factory=dict)

    def __add__(self, other: MonitorChunk) -> MonitorChunk:
        if self.start != other.start:
            raise ValueError(
                "chunks add up only where they were made by the same monitor in the same state: "
                "make those of a period before any of them is absorbed"
            )
        pairs = zip(self.learnt, other.learnt, strict=True)
        return MonitorChunk(
            self.n_rows + other.n_rows,
            self.log_factors + other.log_factors,
            self.gaps + other.gaps,
            tuple(a.plus(b) for a, b in pairs),
            self.start,
            add_groups(self.groups, other.groups),
        )
