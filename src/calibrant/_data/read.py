"""The boundary between what users pass and samples."""

from __future__ import annotations

from typing import Any

from calibrant._data.chunks import ChunkedScores, ChunkSource
from calibrant._data.dask_arrays import DaskSource, is_dask


def is_chunked(scores: Any) -> bool:
    """Whether scores come in chunks, each of which is summed where it is stored."""
    return is_dask(scores) or isinstance(scores, ChunkedScores)


def as_source(
    scores: Any, y: Any, sample_weight: Any = None, groups: tuple[Any, ...] = ()
) -> ChunkSource:
    """Chunked scores with their labels, weights and columns of groups."""
    if not isinstance(scores, ChunkedScores):
        return DaskSource(scores, y, sample_weight, groups)
    if groups:
        return scores.grouped_parts(y, sample_weight, groups)
    return scores.parts(y, sample_weight)
