"""What a user sees of the package as a whole."""

from __future__ import annotations

import subprocess
import sys

import calibrant

OPTIONAL = ("matplotlib", "numba", "dask", "pyarrow", "pandas", "polars", "torch", "rich", "typer")


def test_importing_calibrant_imports_no_optional_package():
    code = f"import sys, calibrant; print([m for m in {OPTIONAL!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_exist_and_are_sorted():
    assert all(hasattr(calibrant, name) for name in calibrant.__all__)
    assert list(calibrant.__all__) == sorted(calibrant.__all__)


def test_the_version_is_that_of_the_installed_package():
    assert calibrant.__version__.count(".") == 2
