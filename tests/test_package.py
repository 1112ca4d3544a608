"""What a user sees of the package as a whole."""

from __future__ import annotations

import subprocess
import sys

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


def test_public_names_exist_are_sorted_and_are_found_by_dir():
    assert list(calibrant.__all__) == sorted(calibrant.__all__)
    assert set(calibrant.__all__) == set(calibrant._HOMES)
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
        assert name in dir(calibrant)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'calibrant' has no attribute 'Calibrator'"):
        _ = calibrant.Calibrator
