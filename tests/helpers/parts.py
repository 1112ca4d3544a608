"""Chunked rows for tests."""

from __future__ import annotations

import numpy as np

from calibrant.io import Chunk, ScoreChunks


class Slices(ScoreChunks):
    """Slices of arrays, the simplest chunks there are; pass None for the labels."""

    n_columns = 0

    def __init__(self, scores, y, weight=None, size=130):
        self.arrays, self.size, self.n_columns = (scores, y, weight), size, scores.shape[1]
        self.n_read, self.n_rows = 0, len(scores)

    def map_chunks(self, function):
        self.n_read += 1
        starts = range(0, len(self.arrays[0]), self.size)
        return (function(self._chunk(start)) for start in starts)

    def _chunk(self, start):
        rows = slice(start, start + self.size)
        return Chunk(*(None if c is None else c[rows] for c in self.arrays), start)

    def distinct_labels(self):
        return None if self.arrays[1].dtype.kind in "bui" else np.unique(self.arrays[1])
