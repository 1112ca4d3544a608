"""Pieces of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from calibrant._typing import AnyArray


def shortened(
    values: Sequence[Any] | AnyArray, limit: int = 8, show: Callable[[Any], str] = str
) -> str:
    """The first of some values for a message, and how many more there are."""
    first = values[:limit].tolist() if isinstance(values, np.ndarray) else values[:limit]
    rest = len(values) - limit
    return ", ".join(map(show, first)) + (f" and {rest:,} more" if rest > 0 else "")


def unknown_name(kind: str, name: Any, valid: Iterable[str], otherwise: str = "") -> str:
    """The message about a name that does not exist: the nearest one, and all that do."""
    names = list(valid)
    near = get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    rest = f", or {otherwise}" if otherwise else ""
    return f"unknown {kind} {name!r}; {hint}valid are {', '.join(names)}{rest}"
