"""Save and load calibrators, and read predictions that are larger than memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant._data.chunks import Chunk
from calibrant.io._loading import LOADED_BYTES as LOADED_BYTES
from calibrant.io._roles import KINDS as KINDS
from calibrant.io._roles import PREFIXES as PREFIXES
from calibrant.io._roles import FileOptions as FileOptions
from calibrant.io._roles import ModelScores as ModelScores
from calibrant.io._row_blocks import RowBlocks, ScoreChunks
from calibrant.io._score_file import LoadedRows, ScoreFile, open_scores

if TYPE_CHECKING:
    from calibrant.io._registry import register
    from calibrant.io._saving import load, read_metadata, save

__all__ = [
    "Chunk",
    "LoadedRows",
    "RowBlocks",
    "ScoreChunks",
    "ScoreFile",
    "load",
    "open_scores",
    "read_metadata",
    "register",
    "save",
]

_HOMES = {"load": "_saving", "read_metadata": "_saving", "register": "_registry", "save": "_saving"}
"""Functions that import every calibrator. They are imported late, because reading prediction
files does not need them."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant.io' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.io.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
