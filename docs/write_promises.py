"""Write `promises.md`, the list of what `tests/promises` holds Calibrant to, from the names and
docstrings of the tests: ``python docs/write_promises.py``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = HERE / "promises.md"
TESTS = HERE.parent / "tests" / "promises"

HEAD = """# Promises

What Calibrant is held to, beside what every function says of itself. Most of these began as a
wrong answer without a word that somebody met; in brackets is what the finding was called. The rule
behind them: what is ambiguous is asked for, what cannot be known is not reported as known, what is
repaired is said.

Each line is a test of that name in `tests/promises`; *slow* ones are simulations, and run with
`.ci/run slow`. Written by `docs/write_promises.py`.
"""

_FINDINGS = re.compile(r"^((?:[wsatcq]_?\d+|b_d\d+|b\d+|d\d+(?:_\d+)?|section_9)_)+")


class Promise(NamedTuple):
    """A sentence, what the findings were called that it answers, and whether it takes long."""

    sentence: str
    findings: str
    is_slow: bool

    def line(self) -> str:
        """The promise as a line of a list."""
        called = f" [{self.findings}]" if self.findings else ""
        return f"- {self.sentence}{called}{' *slow*' if self.is_slow else ''}"


def promises_of(tree: ast.Module) -> Iterator[Promise]:
    """The promises of a file of tests, in their order."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name = node.name.removeprefix("test_")
            match = _FINDINGS.match(name)
            called = match.group() if match else ""
            words = name.removeprefix(called).replace("_", " ")
            sentence = re.sub(r"\bpredict (proba|top)\b", r"predict_\1", words)
            is_slow = any("slow" in ast.unparse(mark) for mark in node.decorator_list)
            yield Promise(f"{sentence[0].upper()}{sentence[1:]}.", _spell(called), is_slow)


def _spell(called: str) -> str:
    """``d1_18_`` as D1.18, ``w1_s_1_`` as W1, S-1."""
    words = re.findall(r"section_9|b_d\d+|d\d+_\d+|[a-z]_?\d+", called)
    spelt = {"section_9": "section 9"}
    return ", ".join(
        spelt.get(word)
        or re.sub(r"(\d)_(\d)", r"\1.\2", word).replace("b_", "B ").replace("_", "-").upper()
        for word in words
    )


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
