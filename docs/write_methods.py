"""Write the table of methods of the manual from the registry: ``python docs/write_methods.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from calibrant.selection._methods import METHODS

PAGE = Path(__file__).resolve().parent / "choose" / "calibrator.md"
MARKS = ("<!-- written by docs/write_methods.py -->", "<!-- end of written -->")


def table() -> str:
    """One line a method: its name, the calibrator that it makes, what that does."""
    lines = ["| name | calibrator | what it does |", "|---|---|---|"]
    for name, method in METHODS.items():
        lines.append(f"| `{name}` | `{type(method.make()).__name__}` | {method.help} |")
    return "\n".join(lines)


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    start, end = (text.index(mark) for mark in MARKS)
    made = f"{text[: start + len(MARKS[0])]}\n\n{table()}\n\n{text[end:]}"
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
