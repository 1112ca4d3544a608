"""Draw random sentences of the text that users and contributors read, to review their language.

    python tools/sample_sentences.py                       # 150 sentences, 25 from each source
    python tools/sample_sentences.py --seed 7 --each 10
    python tools/sample_sentences.py --sources docs readme --each 40

Sources are the HTML report, the page of a monitor, the help of the command line, messages of
exceptions and warnings, docstrings and comments; ``readme`` and ``docs`` are the README and the
manual. The same seed and the same files give the same sentences.
"""

from __future__ import annotations

import argparse
import ast
import html
import io
import random
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MIN_WORDS = 4
_CALLS = {"remark", "warn", "_warn", "abort", "UsageError", "BadParameter", "append", "join"}
"""Functions other than exceptions whose text arguments are messages."""

_REFERENCES = re.compile(r"(?ms)^(References|Examples)\n-+\n.*?(?=^\w[^\n]*\n-+\n|\Z)")
_NO_PROSE = re.compile(r"(?m)^.*\n-{3,}$|^[\w, *]+ : .*$|^\s*(>>>|\.\.\.).*$")
"""Headings of docstrings, lines with types, and code."""

_BLOCKS = re.compile(
    r"</?(?:p|li|td|th|h\d|div|span|text|title|summary|figcaption|dt|dd|label|tr|br)\b"
)


# ---------------------------------------------------------------- sources


def report_text() -> Iterator[str]:
    """Return paragraphs, cells and labels of a report on bundled data."""
    from calibrant import report
    from calibrant.datasets import digits_predictions

    data = digits_predictions("forest")
    page = report.to_html(report.summarize(data.val_labels, data.val_proba))
    yield from _html_text(page)


def monitor_text() -> Iterator[str]:
    """Return the page of a monitor with an alarm."""
    from calibrant.monitoring import CalibrationMonitor
    from calibrant.report import monitor_page

    rng = np.random.default_rng(0)
    monitor = CalibrationMonitor(horizon=20_000, classes=["cat", "dog", "fox"])
    for week in range(20):
        proba = rng.dirichlet([0.6, 0.6, 0.6], size=400)
        truth = proba if week < 8 else 0.5 * proba + 1 / 6
        labels = (rng.random((400, 1)) > truth.cumsum(axis=1)).sum(axis=1)
        names = np.array(["cat", "dog", "fox"])[np.minimum(labels, 2)]
        monitor.update(names, proba, when=f"week {week + 1}")
    yield from _html_text(monitor_page(monitor))


def command_text() -> Iterator[str]:
    """Return the help of the program, its commands and their options."""
    import typer

    from calibrant.cli._app import app

    yield from _help_of(typer.main.get_command(app))


def _help_of(command: Any) -> Iterator[str]:
    for text in (command.help, command.epilog):
        # \b keeps the lines of examples separate, because they are code.
        yield from (part for part in re.split(r"\n\s*\n", text or "") if "\b" not in part)
    for option in command.params:
        yield getattr(option, "help", None) or ""
    for child in getattr(command, "commands", {}).values():
        yield from _help_of(child)


def message_text() -> Iterator[str]:
    """Yield strings in ``raise`` statements and in calls that warn."""
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_raise = isinstance(node, ast.Raise) and node.exc is not None
            if is_raise or (isinstance(node, ast.Call) and _name_of(node.func) in _CALLS):
                yield from _strings(node)


def _name_of(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _strings(node: ast.AST) -> Iterator[str]:
    """Yield string literals, with a placeholder for each value of an f-string."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{...}" for part in node.values
        )
        yield "" if text.startswith("<") else text  # this is markup and not a message
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


def docstring_text() -> Iterator[str]:
    """Yield docstrings without examples, headings, types and references."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in _modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                text = re.sub(
                    r"(?ms)^(References|Examples)\n-+\n.*?(?=^\w[^\n]*\n-+\n|\Z)", "", text
                )
                text = re.sub(r"(?m)^.*\n-{3,}$|^[\w, *]+ : .*$|^\s*(>>>|\.\.\.).*$", "\n", text)
                yield from re.split(r"\n\s*\n|::\n", text)


def comment_text() -> Iterator[str]:
    """Yield comments. Comments on consecutive lines are joined, unless they follow code."""
    for path in _modules():
        block: list[str] = []
        last = -1
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
            if token.type != tokenize.COMMENT or "noqa" in token.string or "type:" in token.string:
                continue
            follows_code = not token.line.lstrip().startswith("#")
            if block and (follows_code or token.start[0] != last + 1):
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("#! ").strip("- "))
            last = -1 if follows_code else token.start[0]
        yield " ".join(block)


def readme_text() -> Iterator[str]:
    yield from _markdown_text(ROOT / "README.md")


def docs_text() -> Iterator[str]:
    for path in sorted((ROOT / "docs").rglob("*.md")):
        yield from _markdown_text(path)


def _markdown_text(path: Path) -> Iterator[str]:
    text = re.sub(r"(?ms)^```.*?^```|^:::.*?$|<!--.*?-->", "", path.read_text(encoding="utf-8"))
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith("|"):
            for row in paragraph.splitlines():
                yield from row.strip("| ").split("|")
        else:
            yield from re.split(r"\n(?=\s*[-*\d]+[. ])", paragraph)


def _html_text(page: str) -> Iterator[str]:
    page = re.sub(r"(?s)<(style|script|pre|code)\b.*?</\1>", " ", page)
    for block in [*_BLOCKS.split(page), *re.findall(r'title="([^"]*)"', page)]:
        yield html.unescape(re.sub(r"(?s)^[^<>]*>|<[^>]*>", " ", block))


def _modules() -> list[Path]:
    return sorted((ROOT / "src").rglob("*.py"))


SOURCES: dict[str, Callable[[], Iterable[str]]] = {
    "report": report_text,
    "monitor": monitor_text,
    "command": command_text,
    "message": message_text,
    "docstring": docstring_text,
    "comment": comment_text,
    "readme": readme_text,
    "docs": docs_text,
}


# ---------------------------------------------------------------- the sample


def sentences(texts: Iterable[str]) -> list[str]:
    """Return sentences of at least four words. Sentences that differ only in their numbers count
    once.
    """
    distinct: dict[str, str] = {}
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'`(])", " ".join(text.split())):
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= MIN_WORDS:
                distinct.setdefault(re.sub(r"[\d.,]+", "0", sentence), sentence)
    return list(distinct.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=25, help="number of sentences per source")
    parser.add_argument("--sources", nargs="*", choices=SOURCES, default=list(SOURCES)[:6])
    options = parser.parse_args()
    for name in options.sources:
        pool = sentences(SOURCES[name]())
        chosen = random.Random(options.seed).sample(pool, min(options.each, len(pool)))
        print(f"\n{name}: {len(chosen)} of {len(pool):,} sentences")
        for number, sentence in enumerate(chosen, start=1):
            print(f"{number:4}. {sentence}")


if __name__ == "__main__":
    main()
