"""What export promises about real predictions and about classifiers of other packages."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant._crossfit.members import set_up
from calibrant.exceptions import ConvergenceWarning
from exported import run_javascript, run_onnx, run_python, run_sql, run_torch, session_of

SETS = {
    "kitti_randomforest_pycalib": 2,
    "cifar10_resnet50_gupta": 10,
    "hpc_cv_yardstick": 4,
    "species_probs_probably": 3,
    "mnist_xgboost_pycalib": 10,
    "cifar100_resnet50_gupta": 100,
    "imagenet1k_effnetlite0_sample1000": 1000,
}
METHODS = ("temperature", "ensemble-temperature", "structured-vector", "histogram", "venn-abers")
ROWS = 60


def predictions(load, name):
    """Probabilities in float64 and labels of a file, whatever it calls them."""
    data = load(name)
    keys = sorted(data, key=lambda key: ("test" in key, key))
    scores = next(data[k] for k in keys if "prob" in k or "logits" in k)
    labels = next(data[k] for k in keys if "label" in k)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.min() < 0 or scores.max() > 1:
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    n_rows = min(len(scores), len(labels), 2000)
    return (scores / scores.sum(axis=1, keepdims=True))[:n_rows], labels[:n_rows]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SETS)
def test_a1_exported_calibrators_agree_on_real_predictions(name, method, real_data, tmp_path):
    proba, labels = predictions(real_data, name)
    n_classes = proba.shape[1]
    if n_classes >= 100 and method == "venn-abers":
        pytest.skip("a hundred curves of a thousand edges take SQLite minutes")
    notion = "top-label" if method == "histogram" and n_classes > 2 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = set_up(calibrant.method(method, notion=notion), "proba", n_classes)
        model.fit(proba, labels)
    rows, program = proba[:ROWS], export.program(model)
    expected = model.predict_proba(rows)
    assert np.array_equal(program(rows), expected)
    runs = {
        "python": run_python(program, rows),
        "sqlite": run_sql(program, rows, "sqlite") if n_classes <= 100 else None,
        "javascript": run_javascript(program, rows, tmp_path),
        "onnx": run_onnx(program, rows, tmp_path),
        "torch": run_torch(program, rows),
    }
    for target, found in runs.items():
        if found is not None:
            # Sums of a thousand exponentials are as good as the order of their terms, ours too.
            assert np.abs(found[0] - expected).max() <= (1e-15 if n_classes <= 100 else 1e-14)
            assert found[1] == expected.argmax(axis=1).tolist(), target


def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    X = data.data.astype(np.float32)
    return X[:900], data.target[:900], X[900:1200]


def classifiers():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "logistic": LogisticRegression(max_iter=2000),
        "forest": RandomForestClassifier(20, random_state=0),
        "naive-bayes": GaussianNB(),
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    }


@pytest.mark.parametrize("is_frozen", [False, True], ids=["cross-validated", "frozen"])
@pytest.mark.parametrize("method", ["platt", "isotonic", "temperature"])
@pytest.mark.parametrize("name", ["logistic", "forest", "naive-bayes", "pipeline"])
def test_a3_the_24_conversions_are_right(name, method, is_frozen, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    from sklearn.model_selection import cross_val_predict

    X, y, new = digits()
    base = classifiers()[name]
    half = len(X) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_frozen:
            fitted = base.fit(X[:half], y[:half])
            scores, labels = fitted.predict_proba(X[half:]), y[half:]
        else:
            scores, labels = cross_val_predict(base, X, y, method="predict_proba"), y
            fitted = base.fit(X, y)
        scores = scores / scores.sum(axis=1, keepdims=True)
        model = set_up(calibrant.method(method), "proba", 10).fit(scores, labels)
        converted = skl2onnx.to_onnx(fitted, X[:1], options={"zipmap": False})
    (tmp_path / "base.onnx").write_bytes(converted.SerializeToString())
    export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "base.onnx")
    base_session, session = (session_of(tmp_path / f"{part}.onnx") for part in ("base", "full"))
    given = {base_session.get_inputs()[0].name: new}
    raw = base_session.run(["probabilities"], given)[0].astype(np.float64)
    proba, label = session.run(None, given)
    expected = model._proba_of(raw)
    assert np.abs(proba - expected).max() <= 1e-14
    assert label.tolist() == expected.argmax(axis=1).tolist()


def test_a4_a_zipmap_is_refused_with_the_option_that_removes_it(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    X, y, _ = digits()
    base = classifiers()["naive-bayes"].fit(X, y)
    (tmp_path / "base.onnx").write_bytes(skl2onnx.to_onnx(base, X[:1]).SerializeToString())
    model = calibrant.Identity().fit(np.eye(10), np.arange(10))
    with pytest.raises(ValueError, match="zipmap"):
        export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "base.onnx")


def test_a4_a_network_of_pytorch_runs_with_its_calibrator_in_one_session(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    X, y, new = digits()
    torch.manual_seed(0)
    network = torch.nn.Linear(64, 10)
    with torch.no_grad():
        logits, fresh = (network(torch.tensor(part)).numpy() for part in (X, new))
    model = calibrant.TemperatureScaling(inputs="logits", prior_scale=0.25).fit(logits, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network, torch.tensor(X[:2]), tmp_path / "net.onnx", output_names=["logits"]
        )
    export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "net.onnx")
    session = session_of(tmp_path / "full.onnx")
    proba = session.run(["probabilities"], {session.get_inputs()[0].name: new[:2]})[0]
    assert np.abs(proba - model.predict_proba(fresh[:2].astype(np.float64))).max() <= 1e-6


def test_skops_trusts_the_types_of_calibrators():
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model = calibrant.StructuredScaling().fit(np.eye(3) * 0.7 + 0.1, np.arange(3))
    untrusted = skops.get_untrusted_types(data=skops.dumps(model))
    assert all(name.startswith("calibrant.") for name in untrusted)
