"""The boundary between what users pass and samples."""

from __future__ import annotations

from typing import Any

from calibrant._data.chunks import ChunkedScores, ChunkSource
from calibrant._data.dask_arrays import DaskScores, is_dask


def as_chunked(scores: Any) -> ChunkedScores | None:
    """Scores that are read chunk by chunk; None if they are in memory."""
    if isinstance(scores, ChunkedScores):
        return scores
    return DaskScores(scores) if is_dask(scores) else None


def is_chunked(scores: Any) -> bool:
    """Whether scores are read chunk by chunk."""
    return is_dask(scores) or isinstance(scores, ChunkedScores)


def as_source(
    scores: Any, y: Any, sample_weight: Any = None, groups: tuple[Any, ...] = ()
) -> ChunkSource:
    """Chunked scores with their labels, weights and columns of groups."""
    chunked = as_chunked(scores)
    assert chunked is not None
    return chunked.source(y, sample_weight, groups)
