"""Tables of a page that a script measures: they stand between marks."""

from __future__ import annotations

import re
from pathlib import Path


def write_part(page: Path, name: str, lines: list[str]) -> None:
    """Put a table between its marks."""
    text = page.read_text(encoding="utf-8")
    mark = f"<!-- measured: {name} -->"
    pattern = re.compile(rf"(?s){re.escape(mark)}.*?<!-- end of measured -->")
    made = "\n".join([mark, "", *lines, "", "<!-- end of measured -->"])
    if not pattern.search(text):
        raise SystemExit(f"{page} has no place for {name}: {mark} and an end are expected")
    page.write_text(pattern.sub(lambda _: made, text), encoding="utf-8")
