"""Python modules that need nothing but math."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.export._python import FUNCTIONS
from exported import CASES, check, fitted, run_python


@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_module_is_its_calibrator(calibrator, n_classes, inputs):
    check(run_python, calibrator, n_classes, inputs)


def test_every_operation_is_written():
    assert set(export.OPS) <= set(FUNCTIONS)


def test_a_module_imports_math_and_nothing_else():
    model, _ = fitted(calibrant.AutoCalibration(cv=3), 3)
    tree = ast.parse(export.to_python(model))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == ["import math"]


def test_a_module_runs_where_the_library_is_not(tmp_path):
    model, scores = fitted(calibrant.StructuredScaling(), 3)
    (tmp_path / "cal.py").write_text(export.to_python(model))
    code = f"import cal; print(cal.calibrate({scores[5].tolist()}))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    expected = model.predict_proba(scores[5:6])[0]
    assert np.abs(np.array(ast.literal_eval(done.stdout.decode())) - expected).max() <= 1e-15


@pytest.mark.parametrize("row", [[0.5, 0.5], [0.5, 0.6, float("nan")], [1.5, -0.5, 0.0]])
def test_a_row_that_is_none_is_rejected(row):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    space = {}
    exec(export.to_python(model), space)
    with pytest.raises(ValueError, match="3 probabilities"):
        space["calibrate"](row)


@pytest.mark.parametrize(
    ("inputs", "row"),
    [
        ("logits", [-np.inf, -np.inf, -np.inf]),
        ("logits", [0.0, np.inf, 1.0]),
        ("log_proba", [-np.inf, -np.inf, -np.inf]),
        ("log_proba", [0.5, -1.0, -2.0]),
    ],
)
def test_a_row_without_a_possible_class_is_rejected(inputs, row):
    model, _ = fitted(calibrant.Identity(), 3, inputs)
    space = {}
    exec(export.to_python(model), space)
    with pytest.raises(ValueError, match="A row must contain 3 log"):
        space["calibrate"](row)


def test_hostile_class_names_are_text():
    hostile = ['"]; import os; os.abort() #', "\n'''\\", '"""']
    model = calibrant.Identity(classes=hostile).fit(np.eye(3), hostile)
    space = {}
    exec(export.to_python(model), space)
    assert space["CLASSES"] == hostile
    assert space["predict"]([0.0, 1.0, 0.0]) == hostile[1]
