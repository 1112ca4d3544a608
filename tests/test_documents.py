"""The manual and the README: their code runs, prints what they say, and names what exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import calibrant

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def _script(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


run_pages = _script("run_pages")

# Pages that take more than half a second: run with the slow tests.
SLOW = {
    *("choose/calibrator.md", "choose/measure.md", "concepts/stack.md", "gallery.md"),
    *("howto-export.md", "howto-notion.md", "howto/drift.md", "howto/few-rows.md"),
    *("howto/groups.md", "howto/many-classes.md", "howto/pipelines.md", "howto/report.md"),
    *("monitoring.md", "start/files.md", "start/language-model.md", "start/pytorch.md"),
    "start/scikit-learn.md",
}
# Code that is not ours to run, with the reason.
NOT_RUN = {
    "README.md": "make, and pip",
    "index.md": "pip",
    "start/index.md": "pip",
    "architecture.md": "walks through the code, in words",
    "monitoring.md": "a crontab",
    "howto-top-scores.md": "commands about a file of the reader",
    "howto-export.md": "a page of HTML, run by the tests of exports",
    "citation.md": "CITATION.cff itself",
}


def _title(path):
    return path.relative_to(ROOT).as_posix().removeprefix("docs/")


PAGES = [
    pytest.param(path, id=_title(path), marks=pytest.mark.slow if _title(path) in SLOW else ())
    for path in run_pages.pages()
]
NEEDING = [
    pytest.param(path, needs, id=f"{_title(path)}-{'-'.join(needs)}", marks=pytest.mark.slow)
    for path in run_pages.pages()
    for needs in sorted({block.needs for block in run_pages.blocks_of(path) if block.needs})
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run in, and no window for pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _check(path, **how):
    try:
        said = run_pages.run(path, **how)
    except ImportError as error:
        if error.name is not None and error.name.startswith("calibrant"):
            raise
        pytest.skip(f"needs an optional package: {error}")
    for block, printed in said:
        assert run_pages.agree(block.body, printed), (
            f"line {block.line} of {_title(path)} says\n{block.body}\nbut there is\n{printed}"
        )


def _lacks_the_command_line(path):
    kinds = {block.kind for block in run_pages.blocks_of(path)}
    return "console" in kinds and any(
        importlib.util.find_spec(name) is None for name in ("typer", "rich", "pyarrow")
    )


@pytest.mark.parametrize("path", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(path, folder):
    if _lacks_the_command_line(path):
        pytest.skip('the page uses the command line: pip install "calibrant[cli]"')
    _check(path, optional=False)


@pytest.mark.parametrize(("path", "needs"), NEEDING)
def test_code_that_needs_other_packages_runs_where_they_are(path, needs, folder):
    for name in needs:
        pytest.importorskip(name)
    _check(path)


def test_code_that_is_not_run_is_declared():
    found = set()
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        fences = re.findall(r"^```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[::2]
        kinds = {re.split(r"[ :]", fence)[0] for fence in fences} - {"python", "console", "text"}
        if kinds - {"{toctree}", "{eval-rst}", "{include}"}:
            found.add(_title(path))
    assert found == set(NOT_RUN)


def test_numbers_of_a_page_are_held_against_those_printed():
    assert run_pages.agree("ECE 0.0543 of 1,000 rows", "ECE  0.0540 of 1,000 rows")
    assert not run_pages.agree("ECE 0.0543", "ECE 0.0643")
    assert not run_pages.agree("ECE 0.0543", "MCE 0.0543")


# -- names


ROOMS = [name for name, home in calibrant._HOMES.items() if not home]
_DOTTED = re.compile(r"\bcalibrant\.([A-Za-z_][\w.]*\w)")
_IN_A_ROOM = re.compile(rf"`((?:{'|'.join(ROOMS)})\.[A-Za-z_]\w*)")
_FILES = {"json", "html", "prom"}
_OF_RESULTS = {"report.how", "report.html"}  # of a variable, and a file


def _is_there(dotted):
    """Whether a name below `calibrant` exists: a module, or an attribute of one."""
    value = calibrant
    for part in dotted.split("."):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = importlib.import_module(f"{value.__name__}.{part}")
        except (ImportError, AttributeError):
            return False
    return True


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda path: _title(path)
)
def test_every_name_of_ours_on_a_page_exists(path):
    text = path.read_text(encoding="utf-8")
    named = {name for name in _DOTTED.findall(text) if name.split(".")[0] not in _FILES}
    named |= set(_IN_A_ROOM.findall(text)) - _OF_RESULTS
    assert sorted(name for name in named if not _is_there(name)) == []


def test_every_public_name_has_one_place_in_the_reference():
    seen = []
    for page in sorted((DOCS / "reference").glob("*.md")):
        for room, options in re.findall(
            r"automodule:: calibrant\.(\w+)\n((?:   :.*\n)*)", page.read_text()
        ):
            module = importlib.import_module(f"calibrant.{room}")
            left_out = set(
                re.findall(r"\w+", "".join(re.findall(r"exclude-members:(.*)", options)))
            )
            seen += [getattr(module, name) for name in module.__all__ if name not in left_out]
    assert len({id(value) for value in seen}) == len(seen)
    public = {id(getattr(getattr(calibrant, room), name)) for room in ROOMS for name in _all(room)}
    assert {id(value) for value in seen} == public
    assert {
        id(getattr(calibrant, name)) for name, home in calibrant._HOMES.items() if home
    } <= public


def _all(room):
    return getattr(calibrant, room).__all__
