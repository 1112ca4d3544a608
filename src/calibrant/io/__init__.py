"""Save and load calibrators; read predictions that are larger than memory."""

from calibrant._data.chunks import Chunk
from calibrant.io._loading import LOADED_BYTES as LOADED_BYTES
from calibrant.io._registry import register
from calibrant.io._roles import KINDS as KINDS
from calibrant.io._roles import PREFIXES as PREFIXES
from calibrant.io._roles import FileOptions as FileOptions
from calibrant.io._roles import ModelScores as ModelScores
from calibrant.io._row_blocks import RowBlocks, ScoreChunks
from calibrant.io._saving import load, save
from calibrant.io._score_file import LoadedRows, ScoreFile, open_scores

__all__ = [
    "Chunk",
    "LoadedRows",
    "RowBlocks",
    "ScoreChunks",
    "ScoreFile",
    "load",
    "open_scores",
    "register",
    "save",
]
