"""Rows that come in parts, for tests."""

from __future__ import annotations

import numpy as np

from calibrant._blocks import added, sum_in_pairs
from calibrant._data.chunks import Chunk


class Slices:
    """Slices of arrays, as the simplest parts there are."""

    classes = None

    def __init__(self, scores, y, weight=None, size=130):
        self.columns, self.size, self.n_columns = (scores, y, weight), size, scores.shape[1]
        self.n_read = 0

    def add_up(self, function, add=added):
        self.n_read += 1
        n_rows = len(self.columns[0])
        starts = range(0, n_rows, self.size)
        return sum_in_pairs((function(self._part(start)) for start in starts), add)

    def _part(self, start):
        rows = slice(start, start + self.size)
        return Chunk(*(None if c is None else c[rows] for c in self.columns), start)

    def distinct_labels(self):
        return None if self.columns[1].dtype.kind in "bui" else np.unique(self.columns[1])
