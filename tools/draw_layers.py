"""Draw the layers of the import contract in pyproject.toml: ``python tools/draw_layers.py``.

A unit may import from the rows below its own, and from nothing else; `lint-imports` checks it.
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "images" / "layers.svg"

WHAT = {
    "cli": "command line",
    "llm": "language-model evaluations: logs, tasks, answers",
    "report": "one page: content, then HTML, JSON, Markdown",
    "plots": "displays; files as JSON; programs for other places",
    "decisions": "answers, abstentions, costs, prediction sets",
    "classifier": "around any classifier; its checks; deployed forecasts",
    "selection": "stacks, folds, comparison, names of methods",
    "inference": "tests, intervals, gains",
    "_crossfit": "fit on some folds, evaluate on others",
    "reductions": "one claim at a time, for any notion",
    "binary": "calibrators and metrics",
    "base": "the boundary: checked once",
    "guarantees": "what holds for new data; tables of bins",
    "notions": "which claims are checked",
    "_optim": "maps, penalties, solvers",
    "datasets": "bundled data",
    "_data": "samples: arrays, chunks, top scores; folds",
    "_validation": "what users pass; what they are shown",
    "_kernels": "sums over row blocks; functions of rows; hot loops",
    "exceptions": "names",
}
"""One line about each layer, by its first unit."""

# Pixels.
_WIDTH, _LEFT, _STEP, _BOX, _GAP, _LETTER, _NOTE = 800, 12, 34, 26, 8, 7.4, 400


def layers(path: Path) -> list[list[str]]:
    """Units of each layer, from the top."""
    contracts = tomllib.loads(path.read_text())["tool"]["importlinter"]["contracts"]
    rows = next(entry["layers"] for entry in contracts if entry["type"] == "layers")
    return [[unit.strip() for unit in row.split(":")] for row in rows]


def render(rows: list[list[str]]) -> str:
    """The picture as SVG."""
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
    parts.append(text(_LEFT, height - 8, "a unit imports from rows below its own, never above"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def layer(row: list[str], top: float) -> list[str]:
    parts, left = [], float(_LEFT)
    for unit in row:
        width = _LETTER * len(unit) + 18
        # Private units are paler than those that users import.
        fill = "#eef1f5" if unit.startswith("_") else "#cfe0f3"
        parts.append(
            f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{_BOX}" rx="4" '
            f'fill="{fill}" stroke="#5b6b7c"/>'
        )
        parts.append(text(left + 9, top + 17, unit))
        left += width + _GAP
    return [*parts, text(_NOTE, top + 17, WHAT.get(row[0], ""))]


def text(x: float, y: float, content: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="#1c2733">{escape(content)}</text>'


def main() -> int:
    PICTURE.write_text(render(layers(DOCS.parent / "pyproject.toml")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
