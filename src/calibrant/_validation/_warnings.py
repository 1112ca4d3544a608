"""Warnings about suspicious input that was accepted."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from calibrant.exceptions import DataWarning

_LIBRARIES = frozenset({"calibrant", "sklearn", "joblib"})
"""Packages whose frames are skipped, because a warning should point to the line of the user."""

_SEEN: set[str] = set()


def warn_data(message: str) -> None:
    """Issue a `DataWarning` that points to the line of the user."""
    warnings.warn(message, DataWarning, stacklevel=user_level())


def warn_data_once(message: str, key: str) -> None:
    """Issue a `DataWarning` the first time that a key occurs in a process."""
    if key not in _SEEN:
        warnings.warn(message, DataWarning, stacklevel=user_level())
        # This line is not reached if warnings are errors, so the second call also raises an error.
        _SEEN.add(key)


def forget_warnings() -> None:
    """Let `warn_data_once` warn again (used by tests)."""
    _SEEN.clear()


def user_level() -> int:
    """Return the ``stacklevel`` of the first frame outside of Calibrant, scikit-learn and joblib.

    The level is relative to the caller of this function.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_back is not None and _is_in_library(frame):
        frame, level = frame.f_back, level + 1
    return level


def _is_in_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES
