"""A report as a file: HTML, Markdown or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from calibrant._output.files import write_text
from calibrant.report._content import Report
from calibrant.report._html import to_html
from calibrant.report._markdown import to_markdown


def render(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report; the ending of ``path`` (.html, .md, .json) says in which form. The file is
    whole or not there.
    """
    write_text(path, check_form(path)(report))


def check_form(path: str | os.PathLike[str]) -> Callable[[Report], str]:
    """How a report is written to such a path; raises where its ending says nothing."""
    forms: dict[str, Callable[[Report], str]] = {
        ".html": to_html,
        ".htm": to_html,
        ".md": to_markdown,
        ".json": to_json,
    }
    ending = Path(path).suffix.lower()
    if ending not in forms:
        raise ValueError(f"{os.fspath(path)}: a report is written as .html, .md or .json")
    return forms[ending]


def to_json(report: Report) -> str:
    """The content as JSON text."""
    return json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"
