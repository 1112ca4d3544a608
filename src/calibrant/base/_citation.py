"""Citations of a fitted calibrator: text for a methods section, and the references."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant.base.references import Reference


@dataclass(frozen=True)
class Citation:
    """The name of a method in a sentence, and its references.

    Parameters
    ----------
    method : str
        A noun phrase, such as "temperature scaling". ``{parts}`` is replaced by the names of the
        inner calibrators.
    references : tuple of Reference
        Publications to cite.
    parts : tuple of calibrators
        Inner calibrators of a composite.

    See Also
    --------
    Reference : A publication.
    """

    method: str
    references: tuple[Reference, ...] = ()
    parts: tuple[Any, ...] = ()


def methods_paragraph(calibrator: Any) -> str:
    """Return text about a fitted calibrator, and the list of references."""
    entries = [f"- {text}" for text in references_of(calibrator)]
    return "\n".join([methods_text(calibrator), *(["", "References", *entries] * bool(entries))])


def methods_text(calibrator: Any) -> str:
    """Sentences that describe how probabilities were calibrated."""
    rows, n_classes = float(np.sum(calibrator.class_weights_)), len(calibrator.classes_)
    return (
        f"Probabilities were calibrated with Calibrant {__version__}. The calibrator was fitted on "
        f"{rows:,.0f} rows of {n_classes} classes. The method is {_phrase(calibrator)}."
    )


def references_of(calibrator: Any) -> list[str]:
    """Return the references of a calibrator without duplicates, inner calibrators first."""
    return [reference.full for reference in dict.fromkeys(_references(calibrator))]


def _citation(calibrator: Any) -> Citation:
    """Return the citation of a calibrator, or the class name of a classifier of another package."""
    citation = getattr(calibrator, "citation", None)
    return citation if isinstance(citation, Citation) else Citation(type(calibrator).__name__)


def _phrase(calibrator: Any) -> str:
    citation = _citation(calibrator)
    part_phrases = list(dict.fromkeys(_phrase(part) for part in citation.parts))
    text = citation.method.format(parts=_join_phrases(part_phrases))
    sources = "; ".join(reference.short for reference in citation.references)
    return f"{text} ({sources})" if sources else text


def _join_phrases(phrases: list[str]) -> str:
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _references(calibrator: Any) -> Iterator[Reference]:
    citation = _citation(calibrator)
    for part in citation.parts:
        yield from _references(part)
    yield from citation.references
