"""Write a report as HTML, Markdown or JSON."""

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
    """Write a report to a file.

    Parameters
    ----------
    report : Report
    path : path
        File to write. The file extension determines the format: .html, .md or .json.

    See Also
    --------
    summarize : Compute a report.
    to_html, to_markdown, to_json : Return the text.
    """
    write_text(path, check_form(path)(report))


def check_form(path: str | os.PathLike[str]) -> Callable[[Report], str]:
    """Return the function that renders a report, or raise if the extension is unknown."""
    forms: dict[str, Callable[[Report], str]] = {
        ".html": to_html,
        ".htm": to_html,
        ".md": to_markdown,
        ".json": to_json,
    }
    ending = Path(path).suffix.lower()
    if ending not in forms:
        raise ValueError(
            f"{os.fspath(path)} must end in .html, .md or .json. Pass a path such as report.html."
        )
    return forms[ending]


def to_json(report: Report) -> str:
    """Return the content of a report as JSON text."""
    return json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"
