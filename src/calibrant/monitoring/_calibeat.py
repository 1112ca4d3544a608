r"""Calibeating: a claim says how often claims like it came true so far.

Top scores are sorted into bins of equal width. A claim of bin b says :math:`(h_b + m_b) / (n_b +
1)`, with :math:`n_b` earlier claims of the bin, :math:`h_b` of which came true, and :math:`m_b` the
middle of the bin, which counts as one row. Whatever happens, the claims of a bin with n rows lose
at most :math:`\ln n + \ln 2B` nats, and a Brier score of at most :math:`1 + \ln(n + 1)`, to the
best constant that the bin could have had, which is known only afterwards. So all bins together
fall behind the binned forecast, recalibrated with hindsight, by O(log T).

References
----------
Foster & Hart (2023), "Calibeating": beating forecasters at their own game, arXiv:2209.04892.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.monitoring._state import as_numbers, finite_numbers
from calibrant.notions import as_notion

BINS = 20
"""Bins of the top score, of equal width from 0 to 1."""

_TOP = as_notion("confidence")


@dataclass(frozen=True, eq=False)
class TopBins:
    """Top claims so far and those that came true, by bin, each of shape (20,)."""

    count: FloatArray
    hits: FloatArray

    @classmethod
    def start(cls) -> TopBins:
        return cls(np.zeros(BINS), np.zeros(BINS))

    @property
    def rate(self) -> FloatArray:
        """What a claim of each bin says now."""
        middle = (np.arange(BINS) + 0.5) / BINS
        return (self.hits + middle) / (self.count + 1.0)

    def after(self, proba: FloatArray, y: IntArray) -> TopBins:
        """With the claims of rows and what came true of them."""
        claims = _TOP.select(proba, y)
        place = _place(claims.score[:, 0])
        more = (np.bincount(part, minlength=BINS) for part in (place, place[claims.hit]))
        return TopBins(*(old + new for old, new in zip((self.count, self.hits), more, strict=True)))

    def replaced(self, proba: FloatArray) -> FloatArray:
        """Rows whose top claim says what its bin does; the rest of a row is rescaled."""
        claims = _TOP.select(proba)
        return _TOP.fill(proba, claims._replace(score=self.rate[_place(claims.score)]))

    def to_state(self) -> dict[str, Any]:
        """Plain numbers."""
        return {"count": as_numbers(self.count), "hits": as_numbers(self.hits)}

    @classmethod
    def from_state(cls, state: Any) -> TopBins:
        """What `to_state` gave, checked."""
        if not isinstance(state, Mapping):
            raise ValueError("calibeat of the state must hold counts and hits")
        count, hits = (finite_numbers(state, name, (BINS,), low=0.0) for name in ("count", "hits"))
        if (hits > count).any():
            raise ValueError("hits of the state must be at most their counts")
        return cls(count, hits)


def _place(score: FloatArray) -> IntArray:
    return np.minimum((score * BINS).astype(np.intp), BINS - 1)
