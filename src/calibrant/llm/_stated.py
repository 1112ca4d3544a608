"""Confidences that are stated in words or numbers."""

from __future__ import annotations

import re

_WORDS = {
    "virtually certain": 0.995,
    "extremely likely": 0.975,
    "very likely": 0.95,
    "likely": 0.83,
    "about as likely as not": 0.5,
    "unlikely": 0.165,
    "very unlikely": 0.05,
    "extremely unlikely": 0.025,
    "exceptionally unlikely": 0.005,
}
"""Midpoints of the ranges of the IPCC guidance note on uncertainties (Mastrandrea et al. 2010)."""

_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_PERCENT = re.compile(_NUMBER + r"\s*(?:%|percent)")
_RATIO = re.compile(_NUMBER + r"\s*(?:/|out of)\s*" + _NUMBER)
_PLAIN = re.compile(_NUMBER + r"(?:e[+-]?\d{1,3})?")
_PREFIX = re.compile(r"(?:confidence|probability)\s*[:=]?\s*")


def parse_confidence(text: str | float | None, *, percent: bool = False) -> float | None:
    """Convert a stated confidence to a number between 0 and 1, or None if it cannot be parsed.

    Parameters
    ----------
    text : str, float or None
        The statement.
    percent : bool, default False
        Whether a number without % is a percentage. The scale is never guessed, so ``85`` is not
        parsed without this option.

    Returns
    -------
    float or None
        None for text that is not in the table below, and for numbers out of range.

    See Also
    --------
    AnswerCalibration : Calibrate stated confidences.

    Notes
    -----
    These forms are accepted, with or without "confidence:" or "probability:" in front:

    ==========================  =========================================
    statement                   value
    ==========================  =========================================
    "90%", "90 percent"         0.9
    "0.9", ".9", "1"            0.9, 0.9, 1 (0.009, 0.009, 0.01 with ``percent``)
    "9/10", "9 out of 10"       0.9
    "virtually certain"         0.995
    "extremely likely"          0.975
    "very likely"               0.95
    "likely"                    0.83
    "about as likely as not"    0.5
    "unlikely"                  0.165
    "very unlikely"             0.05
    "extremely unlikely"        0.025
    "exceptionally unlikely"    0.005
    ==========================  =========================================

    The values of words are the midpoints of the ranges of the IPCC. Fit `AnswerCalibration` to
    replace these values by observed frequencies.

    References
    ----------
    Mastrandrea et al. (2010), Guidance note for lead authors of the IPCC fifth assessment report on
    consistent treatment of uncertainties.

    Examples
    --------
    >>> [parse_confidence(text) for text in ("90%", "Confidence: 9/10", "very likely", "85")]
    [0.9, 0.9, 0.95, None]
    """
    if text is None:
        return None
    words = _PREFIX.sub("", str(text).strip().lower(), count=1).rstrip(".! ")
    if words in _WORDS:
        return _WORDS[words]
    value: float | None = None
    if match := _PERCENT.fullmatch(words):
        value = float(match[1]) / 100
    elif match := _RATIO.fullmatch(words):
        value = float(match[1]) / float(match[2]) if float(match[2]) else None
    elif _PLAIN.fullmatch(words):
        value = float(words) / (100 if percent else 1)
    return value if value is not None and 0 <= value <= 1 else None
