"""Parse JSON of unknown origin strictly, and with bounded memory."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

_MOST_VALUES = 2**22
"""Maximum number of values in a document. Calibrators and states have far fewer values, because
arrays are encoded as text. Without a limit, a text of empty lists would take 28 times its size in
memory."""


def parse_json(text: str) -> Any:
    """Parse a JSON document.

    NaN, infinity, duplicate keys, too many values and deep nesting raise ``ValueError``.
    """
    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise ValueError(f"it contains more than {_MOST_VALUES:,} values")
    try:
        return json.loads(
            text, parse_constant=_reject_constant, object_pairs_hook=_reject_repeated_keys
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not allowed")


def _reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, and raise for duplicate keys, because parsers choose different values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(f"it contains the key {times.most_common(1)[0][0]!r:.60} more than once")
    return values
