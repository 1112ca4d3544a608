"""Write tables that a script measures into a page, between marks."""

from __future__ import annotations

import re
from pathlib import Path


def write_part(page: Path, name: str, lines: list[str]) -> None:
    """Replace the text between the marks of a table."""
    text = page.read_text(encoding="utf-8")
    mark = f"<!-- measured: {name} -->"
    pattern = re.compile(rf"(?s){re.escape(mark)}.*?<!-- end of measured -->")
    block = "\n".join([mark, "", *lines, "", "<!-- end of measured -->"])
    if not pattern.search(text):
        raise SystemExit(
            f"{page} has no marks for the table {name!r}. "
            f"Add the lines {mark!r} and '<!-- end of measured -->'."
        )
    page.write_text(pattern.sub(lambda _: block, text), encoding="utf-8")
