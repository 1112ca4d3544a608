"""HTML with automatic escaping of all values that are not `Markup`.

The package has no template engine among its dependencies. `docs/development/architecture.md` states
why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from calibrant._output import palette
from calibrant._validation import printable


class Markup(str):
    """HTML text that was built by this module and must not be escaped again."""

    __slots__ = ()


def as_markup(value: object) -> Markup:
    """Return markup unchanged, and escape other values.

    The escaped text has no tags, control characters or line breaks.
    """
    return value if isinstance(value, Markup) else Markup(_escaped(str(value)))


def _escaped(text: str) -> str:
    # Most texts are plain numbers and words, and a search is faster than five replacements.
    return escape(printable(text)) if _SPECIAL.search(text) else text


_SPECIAL = re.compile(r"[<>&\"']|[^ -~]")
"""Characters of HTML, and those that may not be printable."""


def joined(parts: Iterable[object]) -> Markup:
    """Concatenate several parts."""
    return Markup("".join(map(as_markup, parts)))


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element with its children.

    Attributes that are None or False are left out. A trailing underscore in the name of an
    attribute is removed, and other underscores become hyphens.

    Examples
    --------
    >>> tag("p", "a<b", tag("b", 1), class_="hint", data_value=2)
    '<p class="hint" data-value="2">a&lt;b<b>1</b></p>'
    """
    start = "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{name}{start}>{joined(children)}</{name}>")


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    key = name.rstrip("_").replace("_", "-")
    return f" {key}" if value is True else f' {key}="{_escaped(str(value))}"'


def fill_page(template: str, **values: object) -> str:
    """Replace the ``$names`` in a template of this package. ``$css`` is the style sheet."""
    # Substitute the names only once, because a second substitution would change a class that is
    # called "$css".
    page = Template(read_page("templates", template))
    return page.substitute({name: as_markup(value) for name, value in values.items()}, css=style())


@cache
def read_page(folder: str, name: str) -> Markup:
    """Read a template, a style sheet or a script of this package."""
    return Markup(files("calibrant.report").joinpath(folder, name).read_text(encoding="utf-8"))


def style() -> str:
    """Return the style sheet of all pages, which begins with the colors of the palette."""
    light, dark = (
        " ".join(f"--{name}: {color};" for name, color in colors.items())
        for colors in (palette.LIGHT, palette.DARK)
    )
    sheet = read_page("static", "report.css")
    return sheet.replace("/* light palette */", light).replace("/* dark palette */", dark)
