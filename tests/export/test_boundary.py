"""Rows that the library rejects, and rows that are off by rounding, on all targets."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant.export._boundary import guarded
from exported import fitted, run_onnx, run_sql, run_torch

NAN, INF = math.nan, math.inf

INVALID = {
    "proba": [
        *([NAN, 0.5, 0.5], [0.5, NAN, 0.5], [0.5, 0.5, NAN], [NAN, NAN, NAN]),
        *([INF, 0.0, 0.0], [0.0, INF, 0.0], [-INF, 1.0, 0.0]),
        *([1.5, -0.5, 0.0], [0.0, 0.0, 0.0], [0.2, 0.2, 0.2], [50.0, 30.0, 20.0]),
    ],
    "logits": [
        *([NAN, 0.0, 0.0], [0.0, NAN, 1.0], [0.0, 1.0, NAN], [NAN, NAN, NAN]),
        *([INF, 0.0, 0.0], [0.0, INF, -INF], [INF, INF, INF], [-INF, -INF, -INF]),
    ],
    "log_proba": [
        *([NAN, -1.0, -1.0], [-1.0, -1.0, NAN], [INF, 0.0, 0.0], [-INF, -INF, -INF]),
        *([0.5, -1.0, -2.0], [-5.0, -5.0, -5.0]),
    ],
}

ROUNDED = [[-1e-17, 1.0, 0.0], [1.0000001, -1e-7, 0.0], [0.33, 0.33, 0.33], [0.2, 0.3, 0.5]]

CALIBRATORS = [
    calibrant.Identity(),
    calibrant.TemperatureScaling(),
    calibrant.AutoCalibration(cv=3),
    calibrant.MulticlassToBinary(calibrant.HistogramBinning(n_bins=3)),
    calibrant.MulticlassToBinary(calibrant.IsotonicCalibration(), notion="class-wise"),
    calibrant.MulticlassToBinary(calibrant.VennAbers(), notion="within-top-2"),
]

CASES = [
    pytest.param(calibrator, inputs, id=f"{calibrator}-{inputs}")
    for calibrator in CALIBRATORS
    for inputs in INVALID
]


def run_rows_in_python(program, rows, folder):
    """Probabilities by row, NaN for rows that raise a ValueError."""
    space = {}
    exec(export.to_python(program), space)

    def row_of(row):
        try:
            return space["calibrate"](row)
        except ValueError:
            return [NAN] * len(row)

    return [row_of(row) for row in rows]


_SCRIPT = """
import {{ calibrate }} from "./calibrator.mjs";
const proba = row => {{
  try {{ return calibrate(row); }} catch (error) {{
    if (!(error instanceof RangeError)) throw error;
    return row.map(() => null);
  }}
}};
console.log(JSON.stringify({rows}.map(proba)));
"""


def run_rows_in_javascript(program, rows, folder):
    """Probabilities by row, NaN for rows that raise a RangeError."""
    text = json.dumps(np.array(rows, dtype=object).tolist())
    (folder / "calibrator.mjs").write_text(export.to_javascript(program), encoding="utf-8")
    (folder / "run.mjs").write_text(_SCRIPT.format(rows=text))
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def targets():
    """How each target that is here runs rows: a function of a program, rows and a folder."""
    runs = {
        "python": run_rows_in_python,
        "sqlite": lambda program, rows, folder: run_sql(program, np.array(rows), "sqlite")[0],
    }
    if shutil.which("node"):
        runs["javascript"] = run_rows_in_javascript
    if importlib.util.find_spec("duckdb"):
        runs["duckdb"] = lambda program, rows, folder: run_sql(program, np.array(rows), "duckdb")[0]
    if importlib.util.find_spec("onnxruntime"):
        runs["onnx"] = lambda program, rows, folder: run_onnx(program, np.array(rows), folder)[0]
    if importlib.util.find_spec("torch"):
        runs["torch"] = lambda program, rows, folder: run_torch(program, np.array(rows))[0]
    return runs


@pytest.mark.parametrize(("calibrator", "inputs"), CASES)
def test_rows_that_the_library_rejects_are_missing_on_every_target(calibrator, inputs, tmp_path):
    model, _ = fitted(calibrator, 3, inputs)
    for row in INVALID[inputs]:
        with pytest.raises(ValueError, match="Row 0"):
            model.predict_proba([row])
    for name, run in targets().items():
        proba = np.array(run(export.program(model), INVALID[inputs], tmp_path), dtype=float)
        assert np.isnan(proba).all(), name


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=repr)
def test_rows_that_are_off_by_rounding_are_accepted_on_every_target(calibrator, tmp_path):
    model, _ = fitted(calibrator, 3)
    expected = np.vstack([model.predict_proba([row]) for row in ROUNDED])
    for name, run in targets().items():
        proba = np.array(run(export.program(model), ROUNDED, tmp_path), dtype=float)
        assert np.abs(proba - expected).max() <= 1e-12, name


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize(("calibrator", "inputs"), CASES)
def test_null_in_a_table_is_null_in_the_result(calibrator, inputs, dialect):
    model, _ = fitted(calibrator, 3, inputs)
    rows = [[None, 0.5, 0.5], [0.5, None, 0.5], [0.5, 0.5, None], [None, None, None]]
    proba, labels = run_sql(export.program(model), np.array(rows, dtype=object), dialect)
    assert {value for row in proba for value in row} == {None}
    assert set(labels) == {None}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("entry", ["null", "undefined", "''", "'0'", "false", "[]"])
def test_javascript_rejects_entries_that_are_not_numbers(entry, tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    (tmp_path / "calibrator.mjs").write_text(export.to_javascript(model), encoding="utf-8")
    (tmp_path / "run.mjs").write_text(_SCRIPT.format(rows=f"[[{entry}, 1, 0]]"))
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) == [[None, None, None]]


@pytest.mark.parametrize(
    ("classes", "missing"), [(["a", "b"], ""), ([0, 1], -1), ([-1, 1], -2), ([0.5, 1.5], -1)]
)
def test_the_label_of_a_missing_row_is_no_class_of_an_onnx_model(classes, missing, tmp_path):
    model = calibrant.Identity(classes=classes).fit(np.eye(2), np.array(classes))
    rows = np.array([[NAN, 0.5], [0.0, 1.0]])
    _, labels = run_onnx(export.program(model), rows, tmp_path)
    assert labels == [missing, 1 if classes == [0.5, 1.5] else classes[1]]


@pytest.mark.parametrize(
    "calibrator",
    [
        calibrant.VectorScaling(),
        calibrant.MatrixScaling(lam=0.01),
        calibrant.DirichletCalibration(),
    ],
    ids=repr,
)
def test_a_result_that_overflows_is_missing_and_has_no_label(calibrator, tmp_path):
    model, _ = fitted(calibrator, 3, "logits")
    program, rows = export.program(model), [[1e308, 1e308, 1e308], [1e308, -1e308, 0.0]]
    for name, run in targets().items():
        proba = np.array(run(program, rows, tmp_path), dtype=float)
        is_missing = np.isnan(proba).all(axis=1)
        assert np.allclose(proba[~is_missing].sum(axis=1), 1.0), name
    for dialect in ("sqlite", "duckdb"):
        proba, labels = run_sql(program, np.array(rows), dialect)
        is_missing = np.isnan(np.array(proba, dtype=float)).any(axis=1).tolist()
        assert [label is None for label in labels] == is_missing


@pytest.mark.parametrize("inputs", INVALID)
def test_valid_rows_pass_the_boundary_unchanged(inputs):
    model, scores = fitted(calibrant.StructuredScaling(), 3, inputs)
    program = export.program(model)
    assert np.array_equal(guarded(program).run(scores), program.run(scores))


def test_a_softmax_has_logits_and_log_probabilities_of_all_digits():
    model, _ = fitted(calibrant.TemperatureScaling(), 3, "logits")
    program, rows = export.program(model), np.array([[0.0, -2000.0, -3000.0]])
    logits = guarded(program, output="logits").run(rows)
    assert np.allclose(logits - logits.max(), rows / model.temperature_)
    assert np.allclose(guarded(program, output="log_proba").run(rows), rows / model.temperature_)
