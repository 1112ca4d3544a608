"""Notions of calibration: which claims of a forecast are checked; see
`calibrant.notions._notion`.
"""

from calibrant.notions._notion import (
    Claim,
    ClaimBlock,
    Claims,
    ClassNotion,
    Notion,
    RankNotion,
    WithinTopNotion,
    as_notion,
)

__all__ = [
    "Claim",
    "ClaimBlock",
    "Claims",
    "ClassNotion",
    "Notion",
    "RankNotion",
    "WithinTopNotion",
    "as_notion",
]
