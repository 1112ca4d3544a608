"""Public names of the package, its imports, and the consistency of its files."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import calibrant

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(calibrant.__file__).parent

HEAVY = (
    *("matplotlib", "numba", "dask", "pyarrow", "pandas", "polars", "torch", "onnx"),
    *("rich", "typer", "sklearn", "scipy", "numpy", "difflib"),
)


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


# From the lowest layer to the highest.
MODULES = (
    *("exceptions", "datasets", "notions", "guarantees", "binning", "base", "label_shift"),
    *("metrics", "binary", "multiclass", "reductions", "inference", "selection"),
    *("classifier", "monitoring", "testing", "io", "plots", "export", "report"),
)
STEPS = {
    "nothing but the name": "import calibrant",
    "scikit-learn": "import sklearn.base, sklearn.model_selection",
    "all modules": f"names = [getattr(calibrant, name).__name__ for name in {MODULES!r}]",
    "all names": "from calibrant import *",
}


@pytest.fixture(scope="module")
def fresh():
    """Run the `STEPS` in a new process.

    Returns the modules of `HEAVY` that are loaded after each step, and the names of all modules.
    """
    lines = ["import sys, json", "loaded = {}"]
    for name, step in STEPS.items():
        lines += [step, f"loaded[{name!r}] = [m for m in {HEAVY!r} if m in sys.modules]"]
    return json.loads(run("\n".join([*lines, "print(json.dumps([loaded, names]))"])))


def test_importing_calibrant_imports_neither_optional_packages_nor_scikit_learn_nor_numpy(fresh):
    assert fresh[0]["nothing but the name"] == []


@pytest.mark.parametrize("step", ["all modules", "all names"])
def test_using_all_of_it_imports_only_what_scikit_learn_imports_itself(fresh, step):
    assert set(fresh[0][step]) - set(fresh[0]["scikit-learn"]) <= {"difflib"}


def test_public_modules_are_attributes_although_nothing_imported_them(fresh):
    assert fresh[1] == [f"calibrant.{name}" for name in MODULES]


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


MISSING = {
    "pyarrow": 'from calibrant.io import open_scores; open_scores("scores.parquet")',
    "matplotlib": "from calibrant.plots import ReliabilityDisplay; "
    "ReliabilityDisplay.from_predictions([0, 1], [[0.6, 0.4], [0.3, 0.7]])",
    "onnx": "from calibrant.export import to_onnx; to_onnx(calibrant.TemperatureScaling().fit("
    "[[0.6, 0.4], [0.3, 0.7]], [0, 1]), 'model.onnx')",
    "rich": "from calibrant._output.progress import _import_rich; _import_rich()",
    "typer": "from calibrant.cli import run; sys.exit(run(['evaluate', 'scores.csv']))",
}
"""Packages that may be missing, with a call that needs each."""


@pytest.mark.parametrize("package", MISSING)
def test_an_error_for_a_missing_package_names_an_extra_that_installs_it(package, pyproject):
    if package == "typer":
        pytest.importorskip("rich")  # it is looked for first
    code = f"import sys; sys.modules[{package!r}] = None; import calibrant; {MISSING[package]}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode != 0
    message = ended.stderr.splitlines()[-1]
    extra = re.search(r'[Rr]un pip install "calibrant\[(\w+)\]"', message)
    assert extra, message
    assert package in message
    needs = pyproject["project"]["optional-dependencies"][extra[1]]
    assert any(entry.startswith(package) for entry in needs)


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
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest, first = re.findall(r"^## \[(\S+)\](?: - (\S+))?$", changelog, re.MULTILINE)[:2]
    dates = re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [version]
    assert newest == ("Unreleased", "")
    assert first[0] == version
    assert dates == ([] if first[1] == "unreleased" else [first[1]])


def test_pictures_are_drawn_in_ci_by_the_matplotlib_of_their_baseline(pyproject):
    images = (ROOT / "tests" / "plots" / "test_images.py").read_text()
    version = re.search(r'^BASELINE_VERSION = "(.+)"$', images, re.MULTILINE)[1]
    groups = pyproject["dependency-groups"]
    assert groups["pictures"] == [f"matplotlib=={version}"]
    assert {"include-group": "pictures"} in groups["dev"]
    assert "matplotlib>=3.8" in groups["test"]  # other versions can be tested, too


def test_the_lower_bounds_are_those_that_ci_tests(pyproject):
    script = (ROOT / ".ci" / "run").read_text()
    for requirement in pyproject["project"]["dependencies"]:
        name, bound = requirement.split(">=")
        assert re.search(rf" {name}=={re.escape(bound)}\.", script), requirement
