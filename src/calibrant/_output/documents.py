"""Parse JSON of unknown origin: strictly, and in memory that the size of the text accounts for."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

_MOST_VALUES = 2**22
"""Values in a document. Arrays are encoded as text, so calibrators and states hold far fewer; an
empty list is two characters of text and takes 56 bytes of memory."""


def parse_json(text: str) -> Any:
    """The value of a JSON document; raises ``ValueError`` for NaN, infinity, a key that is given
    twice, and too many values.
    """
    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise ValueError(f"it holds more than the {_MOST_VALUES:,} values that are read")
    try:
        return json.loads(
            text, parse_constant=_reject_constant, object_pairs_hook=_reject_repeated_keys
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not allowed in it")


def _reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some pairs; a person and a program may read different ones of two values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(f"it has the key {times.most_common(1)[0][0]!r:.60} more than once")
    return values
