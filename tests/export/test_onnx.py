"""ONNX models, run by onnxruntime."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant
from calibrant import export
from exported import CASES, check, fitted, run_onnx, session_of, steps

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_model_is_its_calibrator(calibrator, n_classes, inputs, tmp_path):
    check(lambda p, x: run_onnx(p, x, tmp_path), calibrator, n_classes, inputs)


@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_model_of_float32_scores_is_its_calibrator(calibrator, n_classes, inputs, tmp_path):
    model, scores = fitted(calibrator, n_classes, inputs)
    scores = scores.astype(np.float32)
    proba, labels = run_onnx(export.program(model), scores, tmp_path, "float32")
    assert proba.dtype == np.float32
    assert np.abs(proba - model.predict_proba(scores)).max() <= 1e-6
    assert labels == model._proba_of(scores).argmax(axis=1).tolist()


def test_every_operation_is_written():
    from calibrant.export._onnx import OPERATORS

    assert set(OPERATORS) == set(export.OPS)


def test_a_factor_beside_a_matrix_product_keeps_its_digits(tmp_path):
    build = export.Builder(2)
    turned = build.append("affine", (0,), {"coef": np.array([[0, 1.0], [1, 0]]), "offset": [0, 0]})
    build.append("scale", (turned,), {"factor": [0.1], "offset": [0.0]})
    program = build.program("logits", (0, 1), "")
    rows = np.array([[700.0, -300.0]])
    assert run_onnx(program, rows, tmp_path)[0].tolist() == program(rows).tolist()


def test_labels_are_text_where_classes_are(tmp_path):
    model = calibrant.Identity(classes=["cat", "dög"]).fit(np.eye(2), ["cat", "dög"])
    assert run_onnx(export.program(model), np.eye(2), tmp_path)[1] == ["cat", "dög"]


def test_labels_that_are_fractions_become_columns(tmp_path):
    model = calibrant.Identity(classes=[0.5, 1.5]).fit(np.eye(2), np.array([0.5, 1.5]))
    assert run_onnx(export.program(model), np.eye(2), tmp_path)[1] == [0, 1]


def test_a_model_says_where_it_comes_from(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    export.to_onnx(model, tmp_path / "cal.onnx")
    made = onnx.load(tmp_path / "cal.onnx")
    said = {entry.key: entry.value for entry in made.metadata_props}
    assert said["calibrator"] == "TemperatureScaling"
    assert said["calibrant"] == calibrant.__version__
    assert said["classes"] == "[0, 1, 2]"
    assert len(said["digest"]) == 64


def test_models_are_small(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 10)
    export.to_onnx(model, tmp_path / "small.onnx")
    assert (tmp_path / "small.onnx").stat().st_size < 2000
    model, _ = fitted(calibrant.StructuredScaling(), 100)
    export.to_onnx(model, tmp_path / "large.onnx")
    assert (tmp_path / "large.onnx").stat().st_size < 100_000


def test_an_operator_set_that_is_too_old_is_rejected(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    with pytest.raises(ValueError, match="at least 13"):
        export.to_onnx(model, tmp_path / "cal.onnx", opset=9)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_other_operator_sets_compute_the_same(opset, tmp_path):
    model, scores = fitted(calibrant.AutoCalibration(cv=3), 3)
    export.to_onnx(model, tmp_path / "cal.onnx", opset=opset)
    proba = session_of(tmp_path / "cal.onnx").run(["probabilities"], {"scores": scores})[0]
    assert np.abs(proba - model.predict_proba(scores)).max() <= 1e-15


def test_long_rows_are_added_up_by_halves(tmp_path):
    """One large term and many equal small ones, each of which would lose the same bits."""
    build = export.Builder(1001)
    build.append("softmax", (0,))
    program = build.program("logits", tuple(range(1001)), "")
    rows = np.full((1, 1001), -7.3)
    rows[0, 500] = 0.0
    exact = 1.0 / math.fsum(np.exp(rows[0]))
    for found in (program(rows), run_onnx(program, rows, tmp_path)[0]):
        assert abs(found[0, 500] - exact) <= 2.0 * np.spacing(exact)


@pytest.mark.parametrize("n_edges", [1, 64, 65, 4500])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_step_finds_its_place_among_any_number_of_edges(n_edges, side, tmp_path):
    program, rows = steps(n_edges, side)
    assert np.array_equal(run_onnx(program, rows, tmp_path)[0], program(rows))
