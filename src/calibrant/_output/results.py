"""Representations of results: in one line, and as text and tables in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

_BRIEF, _LINE = 40, 240
"""Maximum number of characters of a value in a repr, and of all values together."""


class ShortRepr:
    """Base of dataclasses with a one-line repr, which shows only the size of large values."""

    def __repr__(self) -> str:
        names = [entry.name for entry in fields(self) if entry.init]  # type: ignore[arg-type]
        parts = [f"{name}={_brief(getattr(self, name))}" for name in names]
        text = ", ".join(part for part in parts if not part.endswith("=None"))
        return f"{type(self).__name__}({text if len(text) <= _LINE else f'{text[:_LINE]} ...'})"


class AsText:
    """Base of results that a notebook shows as ``str()``."""

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{escape(str(self))}</pre>'


def as_frame(*records: dict[str, Any]) -> Any:
    """Return a pandas DataFrame with one row per record."""
    import pandas

    return pandas.DataFrame(records)


def html_table(
    rows: Iterable[Sequence[Any]], *, header: Sequence[str] = (), title: str = "", note: str = ""
) -> str:
    """Return an HTML table for a notebook.

    All text is escaped. The first column contains the row headers.

    >>> html_table([["a", 1]], title="x<y")
    '<table><caption>x&lt;y</caption><tbody><tr><th>a</th><td>1</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{escape(str(title))}</th>" for title in header)
    head = f"<thead><tr>{titles}</tr></thead>" if titles else ""
    body = "".join(
        f"<tr><th>{escape(str(first))}</th>"
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    after = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{after}"


def _brief(value: Any) -> str:
    """Describe a value briefly, such as by the shape of an array or the length of a collection."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<array {' x '.join(map(str, shape))}>"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list | dict | set | frozenset) and len(repr(value)) > _BRIEF:
        return f"<{type(value).__name__} of {len(value)}>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    text = repr(value)
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 4]}..."
