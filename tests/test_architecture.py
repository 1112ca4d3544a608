"""What `docs/development/architecture.md` says of the package is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import calibrant
from clone import only_in_clone

DOCS = Path(__file__).resolve().parent.parent / "docs"
PACKAGE = Path(calibrant.__file__).parent

# Modules without a test file of their own, with the reason.
WITHOUT_TESTS = {
    "_typing.py": "aliases only",
}


def script(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS.parent / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # named tuples look their module up
    spec.loader.exec_module(module)
    return module


def test_the_picture_shows_the_layers_of_the_import_contract():
    drawing = script("draw_layers")
    rows = drawing.layers(DOCS.parent / "pyproject.toml")
    assert (DOCS / "images" / "layers.svg").read_text() == drawing.render(rows)
    assert set(drawing.DESCRIPTIONS) == {row[0] for row in rows}


def test_every_module_has_a_test_file_of_its_name():
    tests = Path(__file__).resolve().parent
    folders = {str(path.relative_to(tests)) for path in tests.rglob("test_*.py")}
    missing = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE)
        if name.stem in ("__init__", "__main__"):
            continue
        if str(name.parent / f"test_{name.stem.lstrip('_')}.py") not in folders:
            missing.append(str(name))
    assert sorted(missing) == sorted(WITHOUT_TESTS)


@only_in_clone
def test_links_of_the_pages_lead_somewhere():
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_walks_go_through_functions_that_there_are():
    text = (DOCS / "development" / "architecture.md").read_text(encoding="utf-8")
    walks = text.partition("## Six call sequences")[2].partition("## Terms")[0]
    steps = re.findall(
        r"(?<![\w.])(\w+(?:\.\w+)*):(\w+(?:\.\w+)*)", " ".join(walks.split("```")[1::2])
    )
    assert len(steps) >= 20
    for module, name in steps:
        place = PACKAGE.joinpath(*module.split("."))
        files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
        source = "\n".join(file.read_text(encoding="utf-8") for file in files)
        for part in name.split("."):
            assert re.search(rf"(?:def|class) {part}\b", source), f"{module}:{name}"
