"""Calibrators joined to classifiers, run by onnxruntime in one session."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import export
from exported import fitted, session_of

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def classifier_file(path, n_classes=3, output="probabilities", kind=1, opset=17, given="scores"):
    """A classifier that has its scores as features."""
    from onnx import helper

    info = helper.make_tensor_value_info
    node = helper.make_node("Softmax", [given], [output], axis=1)
    graph = helper.make_graph(
        [node],
        "net",
        [info(given, kind, ["n", n_classes])],
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
        ({"given": "label"}, {}, "an input named 'label'"),
        ({"given": "probabilities", "output": "y"}, {}, "an input named 'probabilities'"),
    ],
)
def test_a_classifier_that_does_not_fit_is_rejected(written, options, said, tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    classifier_file(tmp_path / "net.onnx", **written)
    with pytest.raises(ValueError, match=said):
        export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "net.onnx", **options)
    assert not (tmp_path / "full.onnx").exists()


def damaged_files(data, count):
    """The bytes of a file with a few changed or cut off, and files of other kinds."""
    rng = np.random.default_rng(0)
    yield from (b"", b"p_a,p_b\n0.1,0.9\n", b"\x00" * 64, data[: len(data) // 2])
    for _ in range(count):
        damaged = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 5)):
            damaged[place] = rng.integers(256)
        yield bytes(damaged)


def test_a_damaged_classifier_is_rejected_in_one_sentence_or_joined(tmp_path):
    model, _ = fitted(calibrant.TemperatureScaling(), 3)
    classifier_file(tmp_path / "net.onnx")
    messages = []
    for data in damaged_files((tmp_path / "net.onnx").read_bytes(), 150):
        (tmp_path / "net.onnx").write_bytes(data)
        try:
            export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "net.onnx")
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 100
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize(
    ("inputs", "chosen"),
    [("proba", "probabilities"), ("logits", "logits"), ("log_proba", "log_probs")],
)
def test_the_output_is_the_one_that_the_calibrator_takes(inputs, chosen):
    from calibrant.export._onnx_join import _guess_output

    assert _guess_output(["label", "log_probs", "logits", "probabilities"], inputs) == chosen
    assert _guess_output(["y"], inputs) == "y"


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ("logits", ["label", "probabilities"]),
        ("log_proba", ["label", "probabilities"]),
        ("proba", ["label", "logits"]),
    ],
)
def test_an_output_that_says_something_else_is_not_taken_for_scores(inputs, outputs):
    from calibrant.export._onnx_join import _guess_output

    with pytest.raises(ValueError, match="Pass output=NAME with one of label, "):
        _guess_output(outputs, inputs)


def converted(estimators, X, folder, **options):
    """Files of classifiers in double precision."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    from skl2onnx.common.data_types import DoubleTensorType

    paths = []
    for number, estimator in enumerate(estimators):
        made = skl2onnx.to_onnx(
            estimator,
            initial_types=[("features", DoubleTensorType([None, X.shape[1]]))],
            options={"zipmap": False, **options},
        )
        paths.append(folder / f"fold_{number}.onnx")
        paths[-1].write_bytes(made.SerializeToString())
    return paths


FOLDS = {
    "probabilities": (GaussianNB(), calibrant.TemperatureScaling(prior_scale=0.5), {}),
    "logits": (
        LogisticRegression(max_iter=1000),
        calibrant.StructuredScaling(),
        {"raw_scores": True},
    ),
}


@pytest.mark.parametrize("ensemble", ["auto", True, False])
@pytest.mark.parametrize("kind", FOLDS)
def test_a_calibrated_classifier_is_one_file(kind, ensemble, tmp_path):
    base, calibrator, options = FOLDS[kind]
    X, y = load_iris(return_X_y=True)
    model = calibrant.CalibratedClassifier(base, calibrator, ensemble=ensemble).fit(X, y)
    paths = converted(model.estimators_, X, tmp_path, **options)
    output = "probabilities" if options else None
    export.to_onnx(model, tmp_path / "full.onnx", model=paths, output=output)
    session = session_of(tmp_path / "full.onnx")
    assert [given.name for given in session.get_inputs()] == ["features"]
    proba, labels = session.run(None, {"features": X})
    assert np.abs(proba - model.predict_proba(X)).max() <= 1e-9  # scores are cut to 36 bits
    assert labels.tolist() == model.predict(X).tolist()


def test_the_decision_function_of_two_classes_is_the_log_odds(tmp_path):
    """skl2onnx writes it beside its opposite: as two logits that would be twice the log-odds."""
    X, y = load_iris(return_X_y=True)
    base = LogisticRegression(max_iter=1000)
    model = calibrant.CalibratedClassifier(base, "structured-vector").fit(X[50:], y[50:])
    paths = converted(model.estimators_, X, tmp_path, raw_scores=True)
    export.to_onnx(model, tmp_path / "full.onnx", model=paths, output="probabilities")
    proba, labels = session_of(tmp_path / "full.onnx").run(None, {"features": X})
    assert np.abs(proba - model.predict_proba(X)).max() <= 1e-9
    assert labels.tolist() == model.predict(X).tolist()


def test_a_calibrated_classifier_asks_for_the_files_of_its_classifiers(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = calibrant.CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    with pytest.raises(ValueError, match="has 16 fitted classifiers, but model= has 0 files"):
        export.to_onnx(model, tmp_path / "full.onnx")
    with pytest.raises(ValueError, match="ensemble=False"):
        export.to_onnx(model, tmp_path / "full.onnx", model="one.onnx")
    with pytest.raises(ValueError, match="only a CalibratedClassifier has several classifiers"):
        export.to_onnx(model.calibrator_, tmp_path / "full.onnx", model=["a.onnx", "b.onnx"])


def test_a_fold_that_has_not_seen_a_class_is_rejected_with_the_remedy(tmp_path):
    X, y = load_iris(return_X_y=True)
    folds = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
    model = calibrant.CalibratedClassifier(GaussianNB(), "identity", cv=folds, ensemble=True).fit(
        X, y
    )
    with pytest.raises(
        ValueError, match="was trained without some classes, so its file has too few columns"
    ):
        export.to_onnx(model, tmp_path / "full.onnx", model=["a.onnx", "b.onnx"])


def test_classifiers_of_other_inputs_are_rejected(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = calibrant.CalibratedClassifier(GaussianNB(), "temperature").fit(X, y)
    paths = converted(model.estimators_, X, tmp_path)
    classifier_file(paths[1])
    with pytest.raises(ValueError, match="different inputs"):
        export.to_onnx(model, tmp_path / "full.onnx", model=paths)
