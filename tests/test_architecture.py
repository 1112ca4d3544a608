"""What `docs/architecture.md` says of the package is so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import calibrant

DOCS = Path(__file__).resolve().parent.parent / "docs"
PACKAGE = Path(calibrant.__file__).parent

# Modules without a twin, with the reason.
WITHOUT_TWIN = {
    "_typing.py": "aliases only",
    "exceptions.py": "names only",
}


def script(name):
    """A script of the documentation, as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # named tuples look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def house():
    return script("measure_house")


@pytest.fixture(scope="module")
def modules(house):
    return [house.Module(path, PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]


def test_the_picture_shows_the_layers_of_the_import_contract():
    drawing = script("draw_layers")
    rows = drawing.layers(DOCS.parent / "pyproject.toml")
    assert (DOCS / "images" / "layers.svg").read_text() == drawing.drawn(rows)
    assert set(drawing.WHAT) == {row[0] for row in rows}


def test_there_are_few_units_and_fewer_private_ones(house, modules):
    plan = house.plan(modules)
    assert plan["units"] <= 30
    assert plan["private units"] <= 11


def test_few_files_are_touched_to_add_something(house):
    source = DOCS.parent / "src" / "calibrant"
    tree = [house.Module(path, source) for path in sorted(source.rglob("*.py"))]
    places = house.touched(tree, source)
    assert len(places["calibrator"]) <= 5, places
    assert len(places["metric"]) <= 3, places
    assert len(places["notion"]) <= 3, places


def test_every_concept_has_one_home(house, modules):
    homes = {c.name: house.homes(c, modules, PACKAGE) for c in house.CONCEPTS}
    assert all(len(places) == 1 for places in homes.values()), homes


def test_every_module_has_its_twin_among_the_tests():
    tests = Path(__file__).resolve().parent
    folders = {str(path.relative_to(tests)) for path in tests.rglob("test_*.py")}
    missing = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE)
        if name.stem in ("__init__", "__main__"):
            continue
        if str(name.parent / f"test_{name.stem.lstrip('_')}.py") not in folders:
            missing.append(str(name))
    assert sorted(missing) == sorted(WITHOUT_TWIN)


def test_a_copy_of_a_concept_is_found(house, modules, tmp_path):
    concept = next(c for c in house.CONCEPTS if c.name == "shows progress")
    copy = tmp_path / "copy.py"
    copy.write_text("def show():\n    from rich.progress import track\n")
    before = house.homes(concept, modules, PACKAGE)
    after = house.homes(concept, [*modules, house.Module(copy, tmp_path)], PACKAGE)
    assert after == sorted([*before, "copy"])


def test_prose_is_no_copy_of_a_concept(house, tmp_path):
    prose = tmp_path / "prose.py"
    prose.write_text(
        '"""Not ``from rich.progress import track``."""  # from rich.progress import x\n'
    )
    concept = next(c for c in house.CONCEPTS if c.name == "shows progress")
    assert house.homes(concept, [house.Module(prose, tmp_path)], tmp_path) == []


def test_links_of_the_pages_lead_somewhere():
    pages = [*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_walks_go_through_functions_that_there_are():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    walks = text.partition("## Four walks")[2].partition("## Words")[0]
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
