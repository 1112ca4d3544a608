"""Run the code of the pages, and compare its output with the pages.

    python tools/run_pages.py [--write] [PAGE ...]

A page runs from top to bottom in one namespace and in an empty folder. The script runs ``python``
blocks, and ``console`` blocks whose lines start with ``$ calibrant`` or ``$ cat``. It also runs
hidden comments ``<!-- run ... -->``, which create the data of a page. A ``text`` block contains the
output of the block before. Words must be equal and numbers must agree within 2%, because other
versions of scikit-learn train slightly different models. ``--write`` updates these blocks, and
copies the figures (.svg, .png) that a page saves to docs/images. A block ``python needs: torch`` is
skipped if that package is not installed.
"""

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")
_PIECE = re.compile(
    r"^```(?P<kind>python|console|text)(?: needs: (?P<needs>[\w. ]+))?\n(?P<body>.*?)^```$"
    r"|^<!-- run\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block of a page, with its position, kind and required packages."""

    line: int
    kind: str
    body: str
    needs: tuple[str, ...] = ()
    span: tuple[int, int] = (0, 0)

    @property
    def is_possible(self):
        return all(importlib.util.find_spec(name) is not None for name in self.needs)


def pages():
    """Return all pages with code: README and the pages of the manual."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in paths if blocks_of(path)]


def blocks_of(path):
    """Return the blocks of a page in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            text[: match.start("hidden" if match["hidden"] else "body")].count("\n"),
            match["kind"] or "python",
            match["hidden"] or match["body"],
            tuple((match["needs"] or "").split()),
            match.span("body"),
        )
        for match in _PIECE.finditer(text)
    ]


def run(path, *, optional=True):
    """Run a page in the current folder. Return pairs of an output block and the actual output.

    Blocks whose packages are not installed are skipped. With ``optional=False``, all blocks that
    need packages are skipped.
    """
    _make_figures_repeatable()
    space, printed, pairs = {"__name__": "__main__"}, "", []
    for block in blocks_of(path):
        if not block.is_possible or (block.needs and not optional):
            printed = None
        elif block.kind == "text":
            if printed is not None:
                pairs.append((block, printed))
        else:
            printed = _run_block(block, path, space)
    return pairs


def _make_figures_repeatable():
    """Draw SVG files without dates and random identifiers, with searchable text."""
    if importlib.util.find_spec("matplotlib") is not None:
        import matplotlib as mpl

        os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
        mpl.rcParams.update({"svg.hashsalt": "calibrant", "svg.fonttype": "none"})


def _run_block(block, path, space):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if block.kind == "console":
            for line in block.body.splitlines():
                _run_line(line)
        else:
            # With the empty lines, errors show the line number of the page.
            source = "\n" * (block.line - 1) + block.body
            exec(compile(source, str(path), "exec"), space)
            if "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close("all")
    return out.getvalue()


def _run_line(line):
    from calibrant.cli import run as run_command

    words = shlex.split(line.removeprefix("$ "), comments=True)
    if words[:1] == ["calibrant"]:
        code = run_command(words[1:])
        if code not in (0, 3):  # 3 means an alarm
            raise RuntimeError(f"exit code {code}: {line}")
    elif words[:1] == ["cat"]:
        print(Path(words[1]).read_text(encoding="utf-8"), end="")
    elif words:
        raise ValueError(f"Pages may run only calibrant and cat, but the line is: {line}")


def agree(expected, printed):
    """Return whether words are equal and numbers agree within 2%."""
    if _NUMBER.sub("#", expected).split() != _NUMBER.sub("#", printed).split():
        return False
    pairs = zip(_numbers(expected), _numbers(printed), strict=True)
    return all(abs(a - b) <= 0.02 * max(abs(a), abs(b)) + 2e-3 for a, b in pairs)


def _numbers(text):
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


def write(path):
    """Update the output blocks of a page."""
    text = path.read_text(encoding="utf-8")
    for block, printed in reversed(run_aside(path, pictures=ROOT / "docs" / "images")):
        start, end = block.span
        lines = (line.rstrip() for line in printed.strip("\n").splitlines())
        text = text[:start] + "\n".join(lines) + "\n" + text[end:]
    path.write_text(text, encoding="utf-8")


def run_aside(path, pictures=None):
    """Run a page in a temporary folder. Copy the pictures that it saves to ``pictures``."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            pairs = run(path)
            for saved in sorted(Path().glob("*.[ps][nv]g")) if pictures else ():
                shutil.copy(saved, pictures)
            return pairs
        finally:
            os.chdir(here)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all pages")
    parser.add_argument("--write", action="store_true", help="update outputs and figures")
    options = parser.parse_args()
    for page in [path.resolve() for path in options.pages] or pages():
        if options.write:
            write(page)
        else:
            for block, printed in run_aside(page):
                if not agree(block.body, printed):
                    print(f"{page}:{block.line} expects\n{block.body}but prints\n{printed}")
