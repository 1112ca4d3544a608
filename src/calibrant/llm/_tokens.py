"""Option scores and mean log-probabilities from the token log-probabilities of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any, NamedTuple

from calibrant.llm._files import as_float

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_SMALLEST_REST = 1e-12
"""Smallest mass of tokens outside of the list, because listed probabilities are rounded."""


class LetterScores(NamedTuple):
    """Log-probabilities of the option letters, and whether some letters were not listed."""

    scores: list[float]
    has_unlisted: bool


def token_entries(logprobs: Any) -> list[Mapping[str, Any]]:
    """Return the tokens of an answer with log-probabilities, or [] if they were not stored."""
    return _objects(logprobs.get("content")) if isinstance(logprobs, Mapping) else []


def _objects(values: Any) -> list[Mapping[str, Any]]:
    """Return the JSON objects of a list, or [] if the value is not a list."""
    entries = values if isinstance(values, list) else []
    return [entry for entry in entries if isinstance(entry, Mapping)]


def answer_text(choice: Mapping[str, Any]) -> str:
    """Return the text of an answer, or "" if the answer has no text."""
    message = choice.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    return content if isinstance(content, str) else ""


def mean_logprob(entries: Sequence[Mapping[str, Any]], place: str) -> float:
    """Return the mean log-probability of the tokens of an answer."""
    values = [as_float(entry.get("logprob"), place, "a log-probability") for entry in entries]
    return sum(values) / len(values)


def letter_scores(
    entries: Sequence[Mapping[str, Any]], n_options: int, place: str
) -> LetterScores | None:
    """Return log-probabilities of the option letters, at the last token that is such a letter.

    Tokens that are equal to a letter up to spaces are added up. Letters that are not among the top
    tokens share the remaining probability equally, but each gets at most the smallest listed
    probability. The result is None if the answer contains no such token or if alternatives were not
    stored.
    """
    letters = LETTERS[:n_options]
    for entry in reversed(entries):
        if str(entry.get("token", "")).strip() in letters and str(entry["token"]).strip():
            top = _objects(entry.get("top_logprobs"))
            if not top:
                return None
            return _add_up(top, letters, place)
    return None


def _add_up(top: Sequence[Mapping[str, Any]], letters: str, place: str) -> LetterScores:
    masses = dict.fromkeys(letters, 0.0)
    listed, lowest = 0.0, 0.0
    for entry in top:
        value = as_float(entry.get("logprob"), place, "a log-probability")
        mass = exp(min(value, 0.0))
        listed, lowest = listed + mass, min(lowest, value)
        token = str(entry.get("token", "")).strip()
        if token in masses:
            masses[token] += mass
    unlisted = [letter for letter, mass in masses.items() if mass == 0]
    rest = log(max(1.0 - listed, _SMALLEST_REST))
    floor = min(rest - log(max(len(unlisted), 1)), lowest)
    scores = [log(masses[letter]) if masses[letter] else floor for letter in letters]
    return LetterScores(scores, bool(unlisted))
