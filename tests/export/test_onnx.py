"""ONNX models, run by onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from exported import CASES, check, fitted, run_onnx, session_of

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


def classifier_file(path, n_classes=3, output="probabilities", kind=1, opset=17):
    """A classifier that has its scores as features."""
    from onnx import helper

    info = helper.make_tensor_value_info
    node = helper.make_node("Softmax", ["scores"], [output], axis=1)
    graph = helper.make_graph(
        [node],
        "net",
        [info("scores", kind, ["n", n_classes])],
        [info(output, kind, ["n", n_classes])],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.save(made, path)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_classifier_and_its_calibrator_run_in_one_session(kind, tmp_path):
    model, scores = fitted(calibrant.StructuredScaling(), 3)
    classifier_file(tmp_path / "net.onnx", kind={"float32": 1, "float64": 11}[kind])
    export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "net.onnx", dtype=kind)
    session = session_of(tmp_path / "full.onnx")
    logits = np.log(np.maximum(scores, 1e-9)).astype(kind)
    proba, labels = session.run(None, {"scores": logits})
    powers = np.exp(logits.astype(np.float64))
    expected = model.predict_proba(powers / powers.sum(axis=1, keepdims=True))
    assert np.abs(proba - expected).max() <= (1e-6 if kind == "float32" else 1e-14)
    assert labels.tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("written", "options", "said"),
    [
        ({}, {"output": "scores"}, "no output 'scores'"),
        ({"n_classes": 4}, {}, "4 columns"),
        ({"opset": 11}, {}, "convert_version"),
        ({}, {"dtype": "float16"}, "dtype must be"),
    ],
)
def test_a_classifier_that_does_not_fit_is_refused(written, options, said, tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    classifier_file(tmp_path / "net.onnx", **written)
    with pytest.raises(ValueError, match=said):
        export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "net.onnx", **options)
    assert not (tmp_path / "full.onnx").exists()


@pytest.mark.parametrize(
    ("inputs", "chosen"),
    [("proba", "probabilities"), ("logits", "logits"), ("log_proba", "log_probs")],
)
def test_the_output_is_the_one_that_the_calibrator_takes(inputs, chosen):
    from calibrant.export._onnx import _likely

    assert _likely(["label", "log_probs", "logits", "probabilities"], inputs) == chosen
    assert _likely(["label", "probabilities"], inputs) == "probabilities"
    assert _likely(["y"], inputs) == "y"


def test_an_operator_set_that_is_too_old_is_refused(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    with pytest.raises(ValueError, match="at least 13"):
        export.to_onnx(model, tmp_path / "cal.onnx", opset=9)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_other_operator_sets_compute_the_same(opset, tmp_path):
    model, scores = fitted(calibrant.AutoCalibration(cv=3), 3)
    export.to_onnx(model, tmp_path / "cal.onnx", opset=opset)
    proba = session_of(tmp_path / "cal.onnx").run(["probabilities"], {"scores": scores})[0]
    assert np.abs(proba - model.predict_proba(scores)).max() <= 1e-15


def test_a_step_is_bit_equal_at_every_edge_and_beside_it(tmp_path):
    model, _ = fitted(calibrant.IsotonicCalibration(), 2)
    edges = model.edges_
    at = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)]).clip(0, 1)
    rows = np.column_stack([1 - at, at])
    assert np.array_equal(
        run_onnx(export.program(model), rows, tmp_path)[0], model.predict_proba(rows)
    )
