"""Write the page `promises.md`, which lists the names of the tests in `tests/promises`.

Run ``python tools/write_promises.py``.
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

Each line is the name of a test in `tests/promises`. Most of these tests cover wrong results that
reviewers found and that caused no warning. Three rules follow from the findings: ambiguous input
raises an error, unknown quantities are not reported, and corrected input causes a warning.
`.ci/run slow` also runs the tests that are marked *slow*, such as simulations.
`tools/write_promises.py` writes this page.
"""


CALLS = (
    ("compare", "keeps"),
    ("compare", "accepts"),
    ("compare", "uses"),
    ("compare", "and the"),
    ("explain", "describes"),
    ("predict", "returns"),
    ("apply", "reads"),
    ("monitor start", "stores"),
)
"""Functions and commands, with the words that follow them in test names."""

NAMES = {
    "predict proba": "`predict_proba`",
    "predict top": "`predict_top`",
    "set output": "`set_output`",
    "rng or random state": "`rng` or `random_state`",
    "cifar100": "CIFAR-100",
    "ece": "ECE",
    "html": "HTML",
    "json": "JSON",
    "nemenyi": "Nemenyi",
    "numpy": "NumPy",
    "onnx": "ONNX",
    "arrow": "Arrow",
    "parquet": "Parquet",
    "markdown": "Markdown",
    "pytorch": "PyTorch",
    "xgboost": "XGBoost",
    "venn abers": "Venn-Abers",
    "top label": "top-label",
    "class wise": "class-wise",
    "log loss": "log-loss",
    "log probabilities": "log-probabilities",
    "out of fold": "out-of-fold",
    "held out": "held-out",
    "cross fitted": "cross-fitted",
    "cross fitting": "cross-fitting",
    "power law": "power-law",
    "value error": "`ValueError`",
    "93 percent": "93%",
    "one percent": "1%",
    "cv prefit": '`cv="prefit"`',
    "an integer cv": "an integer `cv`",
    "a float cv": "a float `cv`",
    "the method sigmoid": 'the method "sigmoid"',
    "suggests platt": 'suggests "platt"',
    "read only folder": "read-only folder",
    "p values": "p-values",
    "leave one out": "leave-one-out",
    "single precision": "single-precision",
    "that method returns": "that `method` returns",
    "as evaluate": "as `evaluate`",
    "docstring of evaluation": "docstring of `Evaluation`",
    "inputs and classes": "`inputs` and `classes`",
    "requires classes": "requires `classes`",
    "the option force": "the option `--force`",
    "the option classes": "the option `--classes`",
    "the classes option": "the option `classes`",
    "in compare": "in `compare`",
    "in method": "in `method`",
    "auto calibration": "`AutoCalibration`",
    "of calibrant": "of Calibrant",
    "rows per class the": "rows per class, the",
    "one line message": "one-line message",
    "one vs rest": "one-vs-rest",
    "reset and have": "reset, and have",
    "intervals and small groups": "intervals, and small groups",
    "interval and classical tests": "interval, and classical tests",
    "decompositions and intervals and curves": "decompositions, intervals and curves",
    "separators and decimal commas and percentages": "separators, decimal commas and percentages",
    "bytes or numbers or dates": "bytes, numbers or dates",
    "strings numbers booleans and none": "strings, numbers, booleans and None",
    "is unknown the temperature": "is unknown, the temperature",
    "scorers and compare and tests": "scorers, `compare` and tests",
    "fitted and saved and loaded": "fitted, saved and loaded",
    "date and the method and the data": "date, the method and the data",
    **{f"{name} {verb}": f"`{name}` {verb}" for name, verb in CALLS},
}
"""Words of test names with their spelling in sentences."""

_NAMES = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")


class Promise(NamedTuple):
    """The name of a test as a sentence, and whether the test is slow."""

    sentence: str
    is_slow: bool

    def line(self) -> str:
        """Return the sentence as an item of a list."""
        return f"- {self.sentence}{' *slow*' if self.is_slow else ''}"


def promises_of(tree: ast.Module) -> Iterator[Promise]:
    """Yield the sentences of a test file, in the order of its tests."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            name = node.name.removeprefix("test_")
            words = name.replace("_", " ")
            sentence = _NAMES.sub(lambda match: NAMES[match[0]], words)
            is_slow = any("slow" in ast.unparse(mark) for mark in node.decorator_list)
            yield Promise(f"{sentence[0].upper()}{sentence[1:]}.", is_slow)


def page() -> str:
    """Return the text of the page, with one section per test file.

    The first sentence of the docstring of a file is the title of its section.
    """
    sections = []
    for path in sorted(TESTS.glob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title = " ".join((ast.get_docstring(tree) or path.stem).split("\n\n")[0].split())
        lines = [promise.line() for promise in promises_of(tree)]
        sections.append("\n".join([f"## {title.rstrip('.')}", "", f"`{path.name}`", "", *lines]))
    count = sum(section.count("\n- ") for section in sections)
    return f"{HEAD}\nThe page lists {count} tests.\n\n" + "\n\n".join(sections) + "\n"


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
