"""Notions of calibration: which claims of a forecast are checked.

A multiclass forecast makes claims ("class l with 0.8"); every claim is a binary problem, a score in
[0, 1] and an outcome in {0, 1}. A notion says which claims are checked (Gupta & Ramdas 2022, Table
1 and Algorithm 5), and selects the data for metrics, calibrators, tests, guarantees and plots
alike.

====================== ======================================================= =====================
notion                 claims                                                  source
====================== ======================================================= =====================
``"confidence"``       one: the top score, is the top class right?             Guo 2017; Kull, eq. 3
``"top-label"``        one per predicted class: the top score, among its rows  Gupta & Ramdas, eq. 2
``"class-wise"``       one per class: the score of class l, is it l?           Kull, eq. 2
``"class-3"``          the one claim of column 3                               as above
``"class-owl"``        the one claim of the class of that name                 as above
``"rank-2"``           the second highest score, is that class right?          Gupta, eq. 3, 4
``"rank-2-label"``     the same, split by the class of that rank               as above
``"within-top-2"``     the sum of the 2 highest, is the truth among them?      Gupta, eq. 5
``"top-3-confidence"`` ranks 1 to 3, one claim each                            Gupta & Ramdas, eq. 6
``"top-3-label"``      ranks 1 to 3, each split by predicted class             Gupta & Ramdas, eq. 7
``"cumulative"``       of ordered classes, one per k < K - 1: is it at most k? Murphy 1971
``"at-most-3"``        the one claim of column 3 of these                      as above
``"canonical"``        the whole vector: no binary notion                      Kull, eq. 1
====================== ======================================================= =====================

A notion of one's own is a subclass of `Notion`, accepted wherever a string is.

References
----------
Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR,
arXiv:2107.08353. Gupta et al. (2021), Calibration of neural networks using splines, ICLR,
arXiv:2006.12800. Kull et al. (2019), Beyond temperature scaling, NeurIPS, arXiv:1910.12656. Murphy
(1971), A note on the ranked probability score, doi:10.1175/1520-0450(1971)010<0155:ANOTRP>2.0.CO;2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from calibrant.notions._cells import claim_of_cells, note_on_cells
from calibrant.notions._claims import (
    Claim,
    ClaimBlock,
    Claims,
    claims_of,
    predictions_for,
    sample_for,
    share_rows,
    stack_claims,
)
from calibrant.notions._kinds import (
    VALID,
    CanonicalNotion,
    ClassNotion,
    NamedClassNotion,
    RankNotion,
    WithinTopNotion,
    no_claims,
)
from calibrant.notions._notion import Notion, class_text
from calibrant.notions._ordered import CumulativeNotion
from calibrant.notions._rows import complete_rows
from calibrant.notions._top_scores import select_top

__all__ = [
    "CanonicalNotion",
    "Claim",
    "ClaimBlock",
    "Claims",
    "ClassNotion",
    "CumulativeNotion",
    "NamedClassNotion",
    "Notion",
    "RankNotion",
    "WithinTopNotion",
    "as_notion",
    "claim_of_cells",
    "claims_of",
    "class_text",
    "complete_rows",
    "is_named",
    "note_on_cells",
    "predictions_for",
    "sample_for",
    "select_top",
    "share_rows",
    "stack_claims",
]


def _ranks(k: int) -> tuple[int, ...]:
    return tuple(range(1, k + 1))


_PATTERNS: tuple[tuple[str, Callable[[int], Notion]], ...] = (
    (r"class-(\d+)", lambda k: ClassNotion(k)),
    (r"at-most-(\d+)", lambda k: CumulativeNotion(k)),
    (r"rank-(\d+)", lambda r: RankNotion((r,))),
    (r"rank-(\d+)-label", lambda r: RankNotion((r,), by_label=True)),
    (r"within-top-(\d+)", lambda r: WithinTopNotion(r)),
    (r"top-(\d+)-confidence", lambda k: RankNotion(_ranks(k))),
    (r"top-(\d+)-label", lambda k: RankNotion(_ranks(k), by_label=True)),
)
_BY_NAME = "class-"
_NAMES: dict[Any, Notion] = {
    "confidence": RankNotion(),
    "top-label": RankNotion(by_label=True),
    "class-wise": ClassNotion(),
    "cumulative": CumulativeNotion(),
    "canonical": CanonicalNotion(),
}


def as_notion(notion: Any, *, vectors: bool = False) -> Notion:
    """The notion that a string names; a `Notion` is returned as it is.

    "canonical", the calibration of whole vectors, is accepted where ``vectors`` says so.

    >>> as_notion("top-3-label").n_quantities(10)
    3
    """
    chosen = notion if isinstance(notion, Notion) else _named(notion)
    if not (chosen.is_binary or vectors):
        raise no_claims(chosen)
    return chosen


def is_named(notion: Notion) -> bool:
    """Whether the name of a notion makes it again, so that it can be written to a file."""
    try:
        return as_notion(notion.name, vectors=True) == notion
    except ValueError:
        return False


def _named(name: Any) -> Notion:
    if not isinstance(name, str):
        raise ValueError(f"unknown notion {name!r}; valid are {VALID}, or a Notion")
    if name in _NAMES:
        return _NAMES[name]
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, name)
        if match:
            number = int(match[1])
            if number < 1 and not pattern.startswith(("class", "at-most")):
                raise ValueError(f"notion {name!r}: ranks are counted from 1")
            return make(number)
    if name.startswith(_BY_NAME) and name != _BY_NAME:
        return NamedClassNotion(name.removeprefix(_BY_NAME))
    near = get_close_matches(name, _NAMES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"unknown notion {name!r}; {hint}valid are {VALID}")


def __dir__() -> list[str]:
    return __all__
