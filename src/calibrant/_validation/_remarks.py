"""What is said, once, about data that were taken although something about them is odd."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from calibrant.exceptions import DataWarning

_INSIDE = frozenset({"calibrant", "sklearn", "joblib"})
"""Packages whose lines are not the user's."""

_SEEN: set[str] = set()


def remark(message: str) -> None:
    """A `DataWarning` at the line of the user."""
    warnings.warn(message, DataWarning, stacklevel=user_level())


def remark_once(message: str, key: str) -> None:
    """A `DataWarning` the first time that a key is met in a process."""
    if key not in _SEEN:
        warnings.warn(message, DataWarning, stacklevel=user_level())
        _SEEN.add(key)  # not reached if warnings are errors, which must not be raised only once


def forget_remarks() -> None:
    """Let `remark_once` repeat itself, for tests."""
    _SEEN.clear()


def user_level() -> int:
    """The ``stacklevel`` that points from the caller of this function to the first line outside
    of the packages that are not the user's.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_back is not None and _is_inside(frame):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE
