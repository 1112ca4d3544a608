"""Save and load calibrators; read predictions that are larger than memory."""

from calibrant._data.chunks import Chunk
from calibrant.io._registry import register
from calibrant.io._row_blocks import RowBlocks, ScoreChunks
from calibrant.io._saving import load, save
from calibrant.io._score_file import ScoreFile, open_scores

__all__ = [
    "Chunk",
    "RowBlocks",
    "ScoreChunks",
    "ScoreFile",
    "load",
    "open_scores",
    "register",
    "save",
]
