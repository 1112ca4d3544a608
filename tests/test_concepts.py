"""Every concept of the manual is told in the same way, and its pictures are what code draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clone import only_in_clone

pytestmark = only_in_clone

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    path for path in (DOCS / "concepts").glob("*.md") if path.stem not in {"index", "mathematics"}
)
SECTIONS = ["Formula", "Assumptions", "What can go wrong", "Sources"]

each_concept = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def _sections(path):
    """The parts of a page by their headings."""
    _, *parts = re.split(r"^## (.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _pictures(path):
    return re.findall(r"!\[(.+?)\]\((.+?)\)", path.read_text(encoding="utf-8"), re.DOTALL)


@each_concept
def test_a_concept_has_a_formula_an_assumption_sources_and_what_can_go_wrong(path):
    found = _sections(path)
    assert list(found) == SECTIONS
    assert re.search(r"\$\$.+?\$\$|\$.+\$", found["Formula"], re.DOTALL)
    assert len(found["Assumptions"].split()) >= 3
    assert len(re.findall(r"^- .+", found["What can go wrong"], re.MULTILINE)) >= 2


@each_concept
def test_a_concept_names_its_sources_with_a_year_and_what_implements_it(path):
    sources, _, reference = _sections(path)["Sources"].partition("Reference:")
    assert re.search(r"\((?:1[89]|20)\d\d\)", sources)
    assert re.search(r"doi:10\.|arXiv:\d{4}\.\d|(?:JMLR|PMLR) \d+:", sources)
    assert re.search(r"`[A-Za-z_.]+`", reference)


@each_concept
def test_a_concept_has_a_picture_that_is_described_and_explained(path):
    assert _pictures(path)
    for description, target in _pictures(path):
        assert (path.parent / target).exists()
        assert len(description.split()) >= 3
    assert re.search(r"^!\[.+\)\n\n\*[^*]", path.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_concept_is_in_the_list_of_concepts():
    listed = (DOCS / "concepts" / "index.md").read_text(encoding="utf-8")
    for path in PAGES:
        assert f"({path.name})" in listed
        assert re.search(rf"^{path.stem}$", listed, re.MULTILINE)


def test_every_picture_of_the_manual_is_drawn_by_one_page_or_script():
    drawn = [
        name
        for path in sorted(DOCS.rglob("*.md"))
        for name in re.findall(r'savefig\("([\w.]+)"', path.read_text(encoding="utf-8"))
    ]
    real = (ROOT / "tools" / "draw_real_data.py").read_text(encoding="utf-8")
    drawn += [f"{name}.svg" for name in re.findall(r"^@figure\ndef (\w+)\(\)", real, re.MULTILINE)]
    figures = DOCS.parent / "benchmarks" / "papers" / "reproduction.py"
    drawn += re.findall(r"images/(papers_\w+\.svg)", figures.read_text(encoding="utf-8"))
    drawn += ["layers.svg"]  # tools/draw_layers.py
    evidence = (ROOT / "tools" / "evidence_figures.py").read_text(encoding="utf-8")
    names = re.findall(r"^@figure.*\ndef (\w+)\(ax\)", evidence, re.MULTILINE)
    drawn += [f"evidence_{name}.svg" for name in names]
    assert len(set(drawn)) == len(drawn)
    assert {path.name for path in (DOCS / "images").iterdir()} <= set(drawn)


def test_every_picture_is_shown_somewhere():
    shown = {
        Path(target).name
        for path in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
        for _, target in _pictures(path)
    }
    assert {path.name for path in (DOCS / "images").iterdir()} == shown
