"""Write the tutorials as Jupyter notebooks: ``python tools/write_notebooks.py``.

A notebook has the text, the code and the outputs of its page. The tests run the code of the pages
and compare its output. They also run the cells of the notebooks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
TUTORIALS = DOCS / "tutorials"
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$\n*", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r'savefig\("([\w.-]+)"')
_DOWNLOAD = re.compile(r"\s*\[Download this page as a notebook\]\([\w.-]+\)\.?")


def notebook(path: Path) -> dict[str, Any]:
    """Return the notebook of a page."""
    text = _DOWNLOAD.sub("", path.read_text(encoding="utf-8"))
    cells: list[dict[str, Any]] = []
    end = 0
    for match in _BLOCK.finditer(text):
        _add_text(cells, text[end : match.start()])
        if match[1] == "python":
            cells.append(_code(match[2], len(cells)))
        else:
            cells[-1]["outputs"] = [_stream(match[2])]
        end = match.end()
    _add_text(cells, text[end:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _add_text(cells: list[dict[str, Any]], text: str) -> None:
    # The figure is an output of its code, so its image link is left out.
    text = re.sub(r"^!\[.*?\]\(.*?\)\n*", "", text, flags=re.MULTILINE).strip()
    if text:
        cells.append(
            {
                "cell_type": "markdown",
                "id": f"cell-{len(cells)}",
                "metadata": {},
                "source": text.splitlines(keepends=True),
            }
        )


def _code(source: str, number: int) -> dict[str, Any]:
    figures = [_figure(DOCS / "images" / name) for name in _SAVED.findall(source)]
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell-{number}",
        "metadata": {},
        "outputs": figures,
        "source": source.strip("\n").splitlines(keepends=True),
    }


def _stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def _figure(path: Path) -> dict[str, Any]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return {"data": {"image/svg+xml": lines}, "metadata": {}, "output_type": "display_data"}


def render(path: Path) -> str:
    """Return the notebook of a page as JSON text."""
    return json.dumps(notebook(path), indent=1, ensure_ascii=False) + "\n"


def pages() -> list[Path]:
    """Return the pages of the tutorials."""
    return sorted(path for path in TUTORIALS.glob("*.md") if path.stem != "index")


def main() -> int:
    for path in pages():
        path.with_suffix(".ipynb").write_text(render(path), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
