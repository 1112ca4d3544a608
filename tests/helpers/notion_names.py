"""All notions, for tests of properties that all notions have."""

from __future__ import annotations

NAMES = (
    *("confidence", "top-label", "class-wise", "class-1"),
    *("rank-2", "within-top-2", "top-2-label"),
)

WITH_PAIRS = (*NAMES, "top-2-confidence")
"""The names above, and a notion with two claims per row."""
