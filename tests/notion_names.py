"""The one list of notions that properties of all of them are tested over."""

from __future__ import annotations

NAMES = (
    *("confidence", "top-label", "class-wise", "class-1"),
    *("rank-2", "within-top-2", "top-2-label"),
)

WITH_PAIRS = (*NAMES, "top-2-confidence")
"""Also of claims that share their label."""
