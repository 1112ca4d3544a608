"""Commands import what they need and no more: imports take most of the time of a small file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

SCRIPT = """
import sys
from calibrant.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert end.code == 0, end.code
print(*sorted(sys.modules), file=open("modules.txt", "w"))
"""

NEEDLESS = {
    "pandas",
    "psutil",
    "narwhals",
    "matplotlib",
    "onnx",
    "torch",
    "numpy.f2py.rules",
    "pyarrow.parquet",
    "scipy.stats",
    "scipy.optimize",
    "scipy.signal",
    "scipy.interpolate",
    "sklearn.model_selection",
    "sklearn.metrics",
    "calibrant.export",
    "calibrant.report",
    "calibrant.classifier",
}


@pytest.mark.parametrize("command", ["evaluate", "apply", "fit", "help"])
def test_a_command_imports_only_what_it_needs(command, tmp_path):
    rows = "0.7,0.3,a\n0.2,0.8,b\n0.6,0.4,b\n0.4,0.6,a\n" * 5
    (tmp_path / "x.csv").write_text("p_a,p_b,y\n" + rows)
    fit = ["fit", "x.csv", "--label", "y", "-m", "temperature", "-o", "m.json"]
    arguments = {
        "evaluate": ["evaluate", "x.csv", "--label", "y"],
        "apply": ["apply", "m.json", "x.csv", "-o", "out.csv"],
        "fit": fit,
        "help": ["monitor", "update", "--help"],
    }[command]
    if command == "apply":
        imported(fit, tmp_path)
    modules = imported(arguments, tmp_path)
    assert sorted(NEEDLESS & modules) == [], "import these inside the functions that use them"
    if command == "help":
        assert not {"numpy", "sklearn", "pyarrow"} & modules


def imported(arguments, folder):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(arguments=arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(Path(folder, "modules.txt").read_text().split())
