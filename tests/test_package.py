"""What a user sees of the package as a whole, and what its files say of each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import calibrant

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(calibrant.__file__).parent

"""Of the Chart.js 4.6.1 in every report: another file is taken in on purpose or not at all."""

OPTIONAL = ("matplotlib", "numba", "dask", "pyarrow", "pandas", "polars", "torch", "rich", "typer")


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_calibrant_imports_no_optional_package():
    assert (
        run(f"import sys, calibrant; print([m for m in {OPTIONAL!r} if m in sys.modules])") == "[]"
    )


def test_using_every_public_name_imports_no_optional_package_but_what_scikit_learn_imports_itself():
    show = f"print([m for m in {OPTIONAL!r} if m in sys.modules])"
    assert run(f"import sys; from calibrant import *; {show}") == run(
        f"import sys, sklearn.base, sklearn.model_selection; {show}"
    )


def test_importing_calibrant_imports_neither_scikit_learn_nor_numpy():
    heavy = ("sklearn", "scipy", "numpy", "difflib")
    assert run(f"import sys, calibrant; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_public_names_exist_are_sorted_and_are_found_by_dir():
    assert list(calibrant.__all__) == sorted(calibrant.__all__)
    assert set(calibrant.__all__) == set(calibrant._HOMES)
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
        assert name in dir(calibrant)


def test_type_checkers_see_the_names_that_exist_where_they_live():
    tree = ast.parse(Path(calibrant.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module.removeprefix("calibrant").removeprefix(".")
        for node in block.body
        for alias in node.names
    }
    assert seen == calibrant._HOMES


MODULES = [
    *("base", "binary", "binning", "classifier", "datasets", "evaluation", "exceptions"),
    *("guarantees", "inference", "io", "label_shift", "metrics", "multiclass", "notions", "plots"),
    *("reductions", "report", "selection", "testing"),
]


def test_public_modules_are_attributes_whatever_was_imported_before():
    code = f"""
    import sys
    for name in {MODULES}:
        for loaded in [m for m in sys.modules if m.partition(".")[0] == "calibrant"]:
            del sys.modules[loaded]
        import calibrant
        print(getattr(calibrant, name).__name__)
    """
    names = run(textwrap.dedent(code)).split()
    assert names == [f"calibrant.{name}" for name in MODULES]


def test_an_unknown_name_is_an_attribute_error_that_suggests_the_nearest():
    with pytest.raises(AttributeError, match="module 'calibrant' has no attribute 'Calibrator'"):
        _ = calibrant.Calibrator
    with pytest.raises(AttributeError, match=r"'PlatScaling'; did you mean 'PlattScaling'\?"):
        _ = calibrant.PlatScaling
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy'$"):
        _ = calibrant.xyzzy


def test_it_runs_as_a_module():
    pytest.importorskip("typer")
    made = subprocess.run(
        [sys.executable, "-m", "calibrant", "--version"], capture_output=True, text=True, check=True
    )
    assert made.stdout == f"calibrant {calibrant.__version__}\n"


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_licence_is_one_and_its_text_is_there(pyproject):
    assert pyproject["project"]["license"] == "BSD-3-Clause"
    assert pyproject["project"]["license-files"] == ["LICENSE"]
    assert "BSD 3-Clause" in (ROOT / "LICENSE").read_text()
    assert list(PACKAGE.rglob("*.LICENSE.md")) == []


def test_every_extra_is_imported_somewhere(pyproject):
    extras = pyproject["project"]["optional-dependencies"]
    assert extras.pop("all") == [f"calibrant[{','.join(extras)}]"]
    wanted = {re.match(r"[\w-]+", entry)[0] for entries in extras.values() for entry in entries}
    assert wanted <= imported_packages()


def imported_packages() -> set[str]:
    """First names of all modules that the package imports anywhere."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).partition(".")[0])
    return names


def test_the_version_is_the_same_everywhere():
    version = calibrant.__version__
    citation = (ROOT / "CITATION.cff").read_text()
    first = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    dates = re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [version]
    assert first[1] == version
    assert dates == ([] if first[2] == "unreleased" else [first[2]])


def test_pictures_are_drawn_in_ci_by_the_matplotlib_of_their_baseline(pyproject):
    images = (ROOT / "tests" / "plots" / "test_images.py").read_text()
    version = re.search(r'^BASELINE_VERSION = "(.+)"$', images, re.MULTILINE)[1]
    groups = pyproject["dependency-groups"]
    assert groups["pictures"] == [f"matplotlib=={version}"]
    assert {"include-group": "pictures"} in groups["dev"]
    assert "matplotlib>=3.8" in groups["test"]  # so that others can be tested too


def test_the_lower_bounds_are_those_that_ci_tests(pyproject):
    script = (ROOT / ".ci" / "run").read_text()
    for requirement in pyproject["project"]["dependencies"]:
        name, bound = requirement.split(">=")
        assert re.search(rf" {name}=={re.escape(bound)}\.", script), requirement
