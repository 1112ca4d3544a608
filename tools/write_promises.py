"""Write `promises.md`, the list of what `tests/promises` holds Calibrant to, from the names and
docstrings of the tests: ``python tools/write_promises.py``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "development" / "promises.md"
TESTS = ROOT / "tests" / "promises"

HEAD = """# Tested behavior

Each line is the name of a test in `tests/promises`. Most of them began as a finding of a
reviewer: a wrong result without a warning. Ambiguous input raises an error, unknown
quantities are not reported, and corrected input causes a warning. Tests marked *slow* are
simulations, which `.ci/run slow` runs.
`tools/write_promises.py` writes this page.
"""


class Promise(NamedTuple):
    """A sentence, and whether its test takes long."""

    sentence: str
    is_slow: bool

    def line(self) -> str:
        """The promise as a line of a list."""
        return f"- {self.sentence}{' *slow*' if self.is_slow else ''}"


def promises_of(tree: ast.Module) -> Iterator[Promise]:
    """The promises of a file of tests, in their order."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name = node.name.removeprefix("test_")
            words = name.replace("_", " ")
            sentence = re.sub(r"\bpredict (proba|top)\b", r"predict_\1", words)
            is_slow = any("slow" in ast.unparse(mark) for mark in node.decorator_list)
            yield Promise(f"{sentence[0].upper()}{sentence[1:]}.", is_slow)


def page() -> str:
    """The page as text: one section a file, under the first sentence of its docstring."""
    sections = []
    for path in sorted(TESTS.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title = " ".join((ast.get_docstring(tree) or path.stem).split("\n\n")[0].split())
        lines = [promise.line() for promise in promises_of(tree)]
        sections.append("\n".join([f"## {title.rstrip('.')}", "", f"`{path.name}`", "", *lines]))
    count = sum(section.count("\n- ") for section in sections)
    return f"{HEAD}\n{count} promises.\n\n" + "\n\n".join(sections) + "\n"


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
