"""Types of calibration ("notions"), which select binary problems of a prediction.

A *claim* is a binary event with a predicted probability, such as "the true class is l" with
probability 0.8. Every claim has a score in [0, 1] and an outcome in {0, 1}. A *notion* selects the
claims for metrics, calibrators, tests, guarantees and plots (Gupta & Ramdas 2022, Table 1 and
Algorithm 5). Pass the name of a notion as ``notion=``.

====================== ======================================================= =====================
notion                 claims                                                  source
====================== ======================================================= =====================
``"confidence"``       the predicted class is correct, with the confidence     Guo 2017; Kull, eq. 3
``"top-label"``        as "confidence", with one claim per predicted class     Gupta & Ramdas, eq. 2
``"class-wise"``       the true class is l, with one claim per class           Kull, eq. 2
``"class-3"``          the true class is the class of column 3                 as above
``"class-owl"``        the true class is the class named "owl"                 as above
``"rank-2"``           the class with the second highest score is correct      Gupta, eq. 3, 4
``"rank-2-label"``     as "rank-2", with one claim per class of that rank      as above
``"within-top-2"``     the true class is among the 2 with the highest scores   Gupta, eq. 5
``"top-3-confidence"`` ranks 1 to 3, one claim each                            Gupta & Ramdas, eq. 6
``"top-3-label"``      ranks 1 to 3, each with one claim per predicted class   Gupta & Ramdas, eq. 7
``"cumulative"``       ordered classes: at most class k, for each k < K - 1    Murphy 1971
``"at-most-3"``        ordered classes: at most the class of column 3          as above
``"canonical"``        the whole vector, which is not a binary problem         Kull, eq. 1
====================== ======================================================= =====================

To define your own notion, write a subclass of `Notion`. Functions accept an instance of your class
in place of a name.

References
----------
Gupta & Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR,
arXiv:2107.08353. Gupta et al. (2021), Calibration of neural networks using splines, ICLR,
arXiv:2006.12800. Kull et al. (2019), Beyond temperature scaling, NeurIPS, arXiv:1910.12656. Murphy
(1971), A note on the ranked probability score, doi:10.1175/1520-0450(1971)010<0155:ANOTRP>2.0.CO;2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
from calibrant.notions._sets import PREFIX, ColumnSetNotion, SetNotion
from calibrant.notions._top_scores import select_top

__all__ = [
    "CanonicalNotion",
    "Claim",
    "ClaimBlock",
    "Claims",
    "ClassNotion",
    "ColumnSetNotion",
    "CumulativeNotion",
    "NamedClassNotion",
    "Notion",
    "RankNotion",
    "SetNotion",
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
_CLASS_PREFIX = "class-"
_NAMES: dict[Any, Notion] = {
    "confidence": RankNotion(),
    "top-label": RankNotion(by_label=True),
    "class-wise": ClassNotion(),
    "cumulative": CumulativeNotion(),
    "canonical": CanonicalNotion(),
}


def as_notion(notion: Any, *, vectors: bool = False) -> Notion:
    """Return the notion with the given name.

    A `Notion` is returned unchanged, and a dict of sets of classes is converted to a `SetNotion`.
    "canonical", the calibration of whole vectors, is accepted only if ``vectors`` is true.

    See Also
    --------
    Notion : Base class of all types of calibration.

    Examples
    --------
    >>> as_notion("top-3-label").n_quantities(10)
    3
    """
    kind = notion if isinstance(notion, Notion) else _named(notion)
    if not (kind.is_binary or vectors):
        raise no_claims(kind)
    return kind


def is_named(notion: Notion) -> bool:
    """Return whether `as_notion` restores a notion from its name, so the notion can be saved."""
    try:
        return as_notion(notion.name, vectors=True) == notion
    except ValueError:
        return False


def _named(name: Any) -> Notion:
    if isinstance(name, Mapping):
        return SetNotion(name)
    if not isinstance(name, str):
        raise ValueError(f"Unknown notion {name!r}. Valid notions are {VALID}, or a Notion.")
    if name in _NAMES:
        return _NAMES[name]
    for pattern, make in _PATTERNS:
        match = re.fullmatch(pattern, name)
        if match:
            number = int(match[1])
            if number < 1 and not pattern.startswith(("class", "at-most")):
                raise ValueError(
                    f"notion {name!r} does not exist, because ranks start at 1. Pass "
                    f"{name.replace(match[1], '1')!r}."
                )
            return make(number)
    if name.startswith(PREFIX):
        return SetNotion.parse(name)
    # The patterns were checked first, because "class-3" is a column. Any other string is the name
    # of a class.
    if name.startswith(_CLASS_PREFIX) and name != _CLASS_PREFIX:
        return NamedClassNotion(name.removeprefix(_CLASS_PREFIX))
    matches = get_close_matches(name, _NAMES, n=1)
    hint = f" Did you mean {matches[0]!r}?" if matches else ""
    raise ValueError(f"Unknown notion {name!r}.{hint} Valid notions are {VALID}.")


def __dir__() -> list[str]:
    return __all__
