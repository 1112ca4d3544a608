"""Draw the layers of the import contract in pyproject.toml: ``python tools/draw_layers.py``.

A module may import from the rows below its own and from nothing else; `lint-imports` checks it.
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "images" / "layers.svg"

DESCRIPTIONS = {
    "cli": "command line",
    "llm": "evaluation logs of language models",
    "report": "reports in HTML, JSON and Markdown",
    "plots": "figures; saved files; export to other runtimes",
    "decisions": "abstention, costs, guaranteed error rates, sets",
    "classifier": "calibrated classifier; test helpers; monitoring",
    "selection": "stacking and comparison of calibrators",
    "inference": "tests and confidence intervals",
    "_crossfit": "cross-fitting: held-out predictions from folds",
    "reductions": "binary methods for any type of calibration",
    "binary": "calibrators; metrics; label shift",
    "base": "base classes of all calibrators",
    "guarantees": "bounds for new data; tables of bins",
    "notions": "types of calibration and their binary problems",
    "_optim": "score functions, penalties, Newton's method",
    "datasets": "bundled data sets",
    "_data": "samples, chunks, top scores and folds",
    "_validation": "checks of arguments; formatted output",
    "_kernels": "row blocks; functions of probabilities; fast loops",
    "exceptions": "errors and warnings; type aliases",
}
"""Description of each layer by its first module."""

# Sizes in pixels.
_WIDTH, _LEFT, _STEP, _BOX, _GAP, _LETTER, _NOTE = 800, 12, 34, 26, 8, 7.4, 400


def layers(path: Path) -> list[list[str]]:
    """Return the modules of each layer, from the top."""
    contracts = tomllib.loads(path.read_text())["tool"]["importlinter"]["contracts"]
    rows = next(entry["layers"] for entry in contracts if entry["type"] == "layers")
    return [[unit.strip() for unit in row.split(":")] for row in rows]


def render(rows: list[list[str]]) -> str:
    """Return the picture as SVG."""
    height = _STEP * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" font-family="ui-monospace, monospace" '
        f'font-size="12">',
        "<title>Layers of calibrant: imports go down only</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for number, row in enumerate(rows):
        parts += layer(row, 10 + number * _STEP)
    parts.append(text(_LEFT, height - 8, "a module may import from the rows below its own"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def layer(row: list[str], top: float) -> list[str]:
    parts, left = [], float(_LEFT)
    for unit in row:
        width = _LETTER * len(unit) + 18
        # Private modules have a paler color than public ones.
        fill = "#eef1f5" if unit.startswith("_") else "#cfe0f3"
        parts.append(
            f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{_BOX}" rx="4" '
            f'fill="{fill}" stroke="#5b6b7c"/>'
        )
        parts.append(text(left + 9, top + 17, unit))
        left += width + _GAP
    return [*parts, text(_NOTE, top + 17, DESCRIPTIONS.get(row[0], ""))]


def text(x: float, y: float, content: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="#1c2733">{escape(content)}</text>'


def main() -> int:
    PICTURE.write_text(render(layers(DOCS.parent / "pyproject.toml")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
