"""What a user sees of the package as a whole."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

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


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_are_attributes_whatever_was_imported_before(name):
    assert run(f"import calibrant; print(calibrant.{name}.__name__)") == f"calibrant.{name}"


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
