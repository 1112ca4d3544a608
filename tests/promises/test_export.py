"""Exported calibrators on real predictions and with other packages."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant._crossfit.members import set_up
from calibrant.exceptions import ConvergenceWarning
from calibrant.selection.methods import METHODS as NAMED
from exported import (
    EXPORTED,
    NOT_EXPORTED,
    fitted,
    run_javascript,
    run_onnx,
    run_python,
    run_sql,
    run_torch,
    session_of,
)

SETS = {
    "kitti_randomforest_pycalib": 2,
    "cifar10_resnet50_gupta": 10,
    "hpc_cv_yardstick": 4,
    "species_probs_probably": 3,
    "mnist_xgboost_pycalib": 10,
    "cifar100_resnet50_gupta": 100,
    "imagenet1k_effnetlite0_sample1000": 1000,
}
ROWS = 60
EPS = np.finfo(float).eps
UNPENALISED, LARGE_SUM = ("vector", "matrix"), 10_000
LONG = 20_000
"""SQLite compiles a query in a time that grows with the square of its edges."""

MADE = {
    "gp": calibrant.GaussianProcessCalibration(n_samples=0),
    "isotonic-steps": calibrant.IsotonicCalibration(),
    "cross-fitted": calibrant.CrossFitted(calibrant.StructuredScaling(), cv=3),
    "top-2-label": calibrant.MulticlassToBinary(calibrant.BetaCalibration(), notion="top-2-label"),
    "within-top-2": calibrant.MulticlassToBinary(calibrant.VennAbers(), notion="within-top-2"),
}
"""Beside the methods that have names."""

QUICK = {
    "matrix": calibrant.MatrixScaling(lam=1e-2),
    "dirichlet": calibrant.DirichletCalibration(lam=1e-2),
    "auto": calibrant.AutoCalibration(["temperature", "structured-vector"], cv=3),
}
"""What stands for methods that search longer, where there are a hundred classes or more."""

METHODS = [name for name, method in NAMED.items() if not isinstance(method.make(), NOT_EXPORTED)]
HUNDRED, THOUSAND = 100, 1000
SMALL_ONLY = ["matrix", "dirichlet", "structured-matrix", "cross-fitted", "auto", "isotonic-steps"]
SMALL_ONLY += [name for name, method in NAMED.items() if method.is_binary]
"""A million coefficients or a thousand curves: minutes each, and nothing that a hundred classes do
not show."""

CASES = [
    (name, method)
    for name, n_classes in SETS.items()
    for method in [*METHODS, *MADE]
    if not (n_classes > 4 and method == "gp")  # its mean is as good as its kernel: smaller sets do
    and not (n_classes == 2 and "-2" in method)
    and not (n_classes == THOUSAND and method in SMALL_ONLY)
]


def predictions(load, name):
    """Probabilities in float64 and labels of a file, whatever it calls them."""
    data = load(name)
    keys = sorted(data, key=lambda key: ("test" in key, key))
    scores = next(data[k] for k in keys if "prob" in k or "logits" in k)
    labels = next(data[k] for k in keys if "label" in k)
    scores = np.asarray(scores, dtype=np.float64)
    if scores.min() < 0 or scores.max() > 1:
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    n_rows = min(len(scores), len(labels), 1000)
    return (scores / scores.sum(axis=1, keepdims=True))[:n_rows], labels[:n_rows]


def fitted_without_a_class(method, proba, labels):
    """A calibrator that never saw the last of its classes, where there are more than two."""
    n_classes = proba.shape[1]
    made = QUICK.get(method) if n_classes >= HUNDRED else None
    made = made or MADE.get(method) or calibrant.method(method)
    seen = labels < n_classes - (n_classes > 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return set_up(made, "proba", n_classes).fit(proba[seen], labels[seen])


def rows_with_zeros_ones_and_ties(proba):
    rows = np.array(proba[:ROWS])
    rows[:4] = 0.0
    rows[0, 0] = rows[1, -1] = 1.0
    rows[2, :2] = 0.5
    rows[3] = 1.0 / rows.shape[1]
    return rows


def n_edges(program):
    names = {"step": "edges", "interpolate": "x"}
    return sum(
        len(node.constants[names[node.op]]) * node.width
        for node in program.nodes
        if node.op in names
    )


def largest_sum(program, rows):
    """The largest sum of absolute terms in a logit: whoever adds them up, in whatever order, is
    right to as many units of the last place of this.
    """
    values, largest = [rows], 0.0
    for node in program.nodes:
        taken = [values[arg] for arg in node.args]
        values.append(export.OPS[node.op].evaluate(taken, node.constants))
        if node.op in ("affine", "scale"):
            size = {name: np.abs(value) for name, value in node.constants.items()}
            sums = export.OPS[node.op].evaluate([np.abs(taken[0])], size)
            largest = max(largest, sums.max())
    return largest


def is_near(found, expected, limit, digits):
    """Within an absolute limit; and relative to probabilities within their digits and what the
    logarithm of a small one cannot hold: exp(z) is no better than the last bit of z.
    """
    difference = np.abs(found - expected)
    sized = expected > 1e-300
    relative = digits + 8.0 * EPS * np.abs(np.log(expected[sized]))
    is_close = difference[sized] <= relative * expected[sized]
    return difference.max() <= limit and is_close.all()


def steepest_slope(program):
    """Of the curves in a program, at least 1."""
    curves = [node.constants for node in program.nodes if node.op == "interpolate"]
    slopes = [np.abs(np.diff(c["y"]) / np.diff(c["x"])).max(initial=1.0) for c in curves]
    return max(slopes, default=1.0)


def tolerances(method, program, rows):
    """Absolute and relative: 1e-15 and 1e-13, but for four things that no target can mend.

    Logits are as good as the sum of their terms, which is in the ten thousands for maps without
    a penalty, or with a small one of many classes. What is one minus another number has the digits
    of one. The mean of a Gaussian process is as good as the condition of its kernel. A curve of a
    number that was computed, such as the top probability of a stack, multiplies its last bits by
    its slope.
    """
    if method == "gp":
        return 1e-11, np.inf
    terms = largest_sum(program, rows)
    is_rest = any(
        node.op == "scale" and node.constants["factor"].tolist() == [-1.0] for node in program.nodes
    )
    is_large = method in UNPENALISED or terms > LARGE_SUM
    limit = max(1e-15, EPS * terms) if is_large else 1e-15
    if method == "auto":
        limit *= steepest_slope(program)
    return limit, np.inf if is_rest else 1e-13 + 2.0 * EPS * terms


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), CASES)
def test_exported_calibrators_agree_with_the_library_on_real_predictions(
    name, method, real_data, tmp_path
):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    proba, labels = predictions(real_data, name)
    model = fitted_without_a_class(method, proba, labels)
    rows, program = rows_with_zeros_ones_and_ties(proba), export.program(model)
    expected = model.predict_proba(rows)
    limit, digits = tolerances(method, program, rows)
    assert np.abs(program(rows) - expected).max() <= (1e-11 if method == "gp" else 0.0)
    for target, run in targets(program, rows, tmp_path).items():
        proba, labels = run()
        assert is_near(proba, expected, limit, digits), target
        assert labels == expected.argmax(axis=1).tolist(), target
    single = rows.astype(np.float32)
    proba, labels = run_onnx(program, single, tmp_path, "float32")
    assert np.abs(proba - model.predict_proba(single)).max() <= 1e-6
    assert labels == model._proba_of(single).argmax(axis=1).tolist()


def targets(program, rows, folder):
    """Where a program of this size is run."""
    runs = {
        "python": lambda: run_python(program, rows),
        "javascript": lambda: run_javascript(program, rows, folder),
        "onnx": lambda: run_onnx(program, rows, folder),
        "torch": lambda: run_torch(program, rows),
    }
    is_wide = program.n_classes == THOUSAND and "mix" in {node.op for node in program.nodes}
    is_long = n_edges(program) > LONG or (program.n_classes == THOUSAND and len(program.nodes) > 12)
    if not (is_wide or is_long):  # a table of SQLite has up to 2,000 columns
        runs["sqlite"] = lambda: run_sql(program, rows, "sqlite")
        if program.n_classes < THOUSAND:  # a minute for DuckDB's planner
            runs["duckdb"] = lambda: run_sql(program, rows, "duckdb")
    return runs


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
def test_onnx_models_of_classifiers_and_calibrators_agree_with_the_library(
    name, method, is_frozen, tmp_path
):
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


def test_the_error_for_a_zipmap_states_the_option_that_disables_zipmaps(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    X, y, _ = digits()
    base = classifiers()["naive-bayes"].fit(X, y)
    (tmp_path / "base.onnx").write_bytes(skl2onnx.to_onnx(base, X[:1]).SerializeToString())
    model = calibrant.Identity().fit(np.eye(10), np.arange(10))
    with pytest.raises(ValueError, match="zipmap"):
        export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "base.onnx")


def test_a_pytorch_network_and_its_calibrator_run_in_one_onnx_session(tmp_path):
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


def test_an_xgboost_model_and_its_calibrator_run_in_one_onnx_session(tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    tools = pytest.importorskip("onnxmltools", reason="onnxmltools is not installed")
    from onnxmltools.convert.common.data_types import FloatTensorType

    X, y, new = digits()
    booster = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X[:600], y[:600])
    model = calibrant.StructuredScaling("vector").fit(booster.predict_proba(X[600:]), y[600:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = [("features", FloatTensorType([None, 64]))]
        made = tools.convert_xgboost(booster, initial_types=kinds, target_opset=15)
    (tmp_path / "booster.onnx").write_bytes(made.SerializeToString())
    export.to_onnx(model, tmp_path / "full.onnx", model=tmp_path / "booster.onnx")
    proba, label = session_of(tmp_path / "full.onnx").run(None, {"features": new})
    expected = model.predict_proba(booster.predict_proba(new))
    assert np.abs(proba - expected).max() <= 1e-5  # the booster itself is in single precision
    assert label.tolist() == proba.argmax(axis=1).tolist()


@pytest.mark.parametrize("calibrator", EXPORTED, ids=repr)
def test_skops_loads_calibrators_that_contain_only_types_of_calibrant(calibrator):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model, scores = fitted(calibrator, 3 if "Isotonic" not in repr(calibrator) else 2)
    data = skops.dumps(model)
    named = skops.get_untrusted_types(data=data)
    assert all(name.startswith("calibrant.") for name in named)
    again = skops.loads(data, trusted=named)
    assert np.array_equal(again.predict_proba(scores), model.predict_proba(scores))
