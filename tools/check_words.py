"""Find words that the style guide replaces, in docstrings, comments, messages and pages.

    python tools/check_words.py                     all files
    python tools/check_words.py src/calibrant/io    selected files or folders

The script prints one line per word with the file, the line, the word and its replacement. It ends
with exit code 1 if it finds a word. Code and text in backquotes are not checked, because names of
the API may stay.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

WORDS = {
    r"honest(y|ly)?": "calibrated",
    r"(came|comes|come) true": "was correct; the observed frequency",
    r"judg(e|es|ed|ing|ement)": "evaluate",
    r"mend(s|ed|ing)?": "correct",
    r"lift(s|ed|ing)?": "extend, transform",
    r"one against the rest": "one-vs-rest",
    r"equal mass": "quantile bins",
    r"(within|by|includes) chance": "sampling noise, not significant",
    r"what is left": "the remaining miscalibration, the rest",
    r"foresaw|foreseen?": "predicted",
    r"remark(s|ed)?": "warning",
    r"(is|are|was|were|be) (said|told)": "state, report",
    r"sober|timid": "clipped, shrunken",
    r"parted": "chunked",
    r"deal(s|t)? rows": "assign rows to folds",
    r"rows a (class|bin|block)": "rows per class",
    r"refused": "rejected",
    r"house|room|twin": "package, subpackage, counterpart",
    r"beside": "next to, compared with",
    r"stake|rings": "evidence; raises an alarm",
    r"minimis\w*|normalis\w*|summaris\w*|penalis\w*|maximis\w*|recognis\w*": "-ize",
    r"neighbouring|colour\w*|grey": "American spelling",
    r"\d %": "95% without a space",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in WORDS) + r")(?!\w)", re.I)

EXCEPTIONS = {
    "tools/check_words.py": "it lists the words",
    "CHANGELOG.md": "it names earlier behavior",
}
"""Files that are not checked, with the reason."""

_CODE = re.compile(r"``[^`]*``|`[^`]*`|:math:`[^`]*`|\$[^$]*\$|```.*?```", re.DOTALL)


class Text(NamedTuple):
    """A piece of prose and the line that it starts at."""

    line: int
    text: str


def python_texts(source: str) -> Iterator[Text]:
    """Yield comments, docstrings and other strings with at least two words."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(node.lineno, node.value)


def texts_of(path: Path) -> Iterator[Text]:
    source = path.read_text(encoding="utf-8")
    return python_texts(source) if path.suffix == ".py" else iter([Text(1, source)])


def replacement(word: str) -> str:
    """Return the replacement of a word."""
    return next(new for old, new in WORDS.items() if re.fullmatch(old, word, re.IGNORECASE))


def findings(path: Path) -> Iterator[str]:
    name = path.resolve().relative_to(ROOT).as_posix()
    if name in EXCEPTIONS:
        return
    for start, text in texts_of(path):
        # Code keeps its line breaks, so that line numbers stay correct.
        prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in PATTERN.finditer(prose):
            line = start + prose.count("\n", 0, match.start())
            yield f"{name}:{line}: {match[0]!r}: write {replacement(match[0])!r}"


def main() -> int:
    given = [Path(name) for name in sys.argv[1:]] or [
        ROOT / "src",
        ROOT / "docs",
        ROOT / "README.md",
    ]
    files = [
        file
        for path in given
        for file in ([path] if path.is_file() else sorted(path.rglob("*")))
        if file.suffix in {".py", ".md"}
    ]
    lines = sorted({line for file in files for line in findings(file)})
    print(*lines, sep="\n")
    print(f"{len(lines)} words in {len(files)} files")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
