"""Save and load calibrators; read predictions that are larger than memory."""

from calibrant._validation import Part
from calibrant.io._registry import register
from calibrant.io._row_blocks import RowBlocks, ScoreParts
from calibrant.io._saving import load, save
from calibrant.io._score_file import ScoreFile, open_scores

__all__ = [
    "Part",
    "RowBlocks",
    "ScoreFile",
    "ScoreParts",
    "load",
    "open_scores",
    "register",
    "save",
]
