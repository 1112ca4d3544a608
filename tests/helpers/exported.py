"""Calibrators that are exported, rows to export them for, and how each target is run."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import warnings
from copy import deepcopy

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant._crossfit.members import set_up
from calibrant._kernels.simplex import log_softmax
from calibrant.datasets import noisy_simplex
from calibrant.exceptions import ConvergenceWarning
from calibrators import ALL, COMPOSED

NOT_EXPORTED = (calibrant.CanonicalBinning, calibrant.GaussianProcessCalibration)
"""Classes that the operations of programs cannot express, at least with default parameters."""

EXPORTED = [c for c in [*ALL, *COMPOSED] if not isinstance(c, NOT_EXPORTED)]
MEAN_PROCESSES = [
    calibrant.GaussianProcessCalibration(n_samples=0),
    calibrant.GaussianProcessCalibration(n_samples=0, monotone=True),
]


_FITS = {}


def fitted(calibrator, n_classes, inputs="proba", n_samples=300):
    """A calibrator fitted to rows with zeros, ones and ties, and these rows. Fitted once for all
    tests, each of which has a copy.
    """
    key = (type(calibrator), repr(calibrator), n_classes, inputs, n_samples)
    if key not in _FITS:
        _FITS[key] = _fit(calibrator, n_classes, inputs, n_samples)
    return deepcopy(_FITS[key])


def _fit(calibrator, n_classes, inputs, n_samples):
    data = noisy_simplex(n_samples, n_classes, noise=0.7, rng=n_classes)
    proba = np.array(data.proba)
    proba[:3] = 0.0
    proba[0, 0] = proba[1, 1] = 1.0
    proba[2, :2] = 0.5
    scores = proba if inputs == "proba" else _logarithms(data.proba, inputs)
    labels = np.array(data.labels)
    if inputs != "proba":
        labels[:3] = scores[:3].argmax(axis=1)  # what is impossible is not the truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return set_up(calibrator, inputs, n_classes).fit(scores, labels), scores


def _logarithms(proba, inputs):
    """Logits or log-probabilities, some of them -inf: alone, and beside one that is lower still."""
    scores = np.log(proba + 1e-12)
    scores[0, 1:] = scores[1, 0] = -np.inf
    if scores.shape[1] > 2:
        scores[2, :3] = 0.0, -np.inf, -50.0
    return scores + 0.7 if inputs == "logits" else log_softmax(scores)


CASES = [
    pytest.param(calibrator, n_classes, inputs, id=f"{calibrator}-{n_classes}-{inputs}")
    for calibrator in EXPORTED
    for n_classes, inputs in [
        (2, "proba"),
        (3, "proba"),
        (3, "logits"),
        (10, "proba"),
        (4, "log_proba"),
    ]
]
"""Every calibrator that has a program, for some numbers of classes."""


def check(run, calibrator, n_classes, inputs):
    """A target gives the probabilities and the labels of a calibrator.

    Within 1e-15 where scores are probabilities. The softmax of logits is only as good as the
    engine's exp, and a steep map multiplies its last bits.
    """
    model, scores = fitted(calibrator, n_classes, inputs)
    proba, labels = run(export.program(model), scores)
    assert np.abs(proba - model.predict_proba(scores)).max() <= (
        1e-15 if inputs == "proba" else 1e-13
    )
    assert labels == model.classes_[model._proba_of(scores).argmax(axis=1)].tolist()


def run_python(program, scores):
    space = {}
    exec(export.to_python(program), space)
    rows = scores.tolist()
    return np.array(list(map(space["calibrate"], rows))), list(map(space["predict"], rows))


_SCRIPT = """
import { calibrate, predict } from "./calibrator.mjs";
import fs from "fs";
const rows = JSON.parse(fs.readFileSync("rows.json")).map(r => r.map(x => x ?? -Infinity));
console.log(JSON.stringify([rows.map(calibrate), rows.map(predict)]));
"""


def run_javascript(program, scores, folder):
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    (folder / "calibrator.mjs").write_text(export.to_javascript(program), encoding="utf-8")
    (folder / "run.mjs").write_text(_SCRIPT)
    rows = [[None if x == -np.inf else x for x in row] for row in scores.tolist()]
    (folder / "rows.json").write_text(json.dumps(rows))
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, check=True)
    proba, labels = json.loads(done.stdout)
    return np.array(proba), labels


def run_sql(program, scores, dialect, columns=None):
    columns = columns or [f"p_{k}" for k in range(program.n_classes)]
    connection = _connect(dialect)
    names = ['"' + name.replace('"', '""') + '"' for name in columns]
    typed = ", ".join(f"{name} DOUBLE" for name in names)
    connection.execute(f"CREATE TABLE scores (id INTEGER, {typed})")
    places = ", ".join("?" * (len(columns) + 1))
    rows = [[i, *row] for i, row in enumerate(scores.tolist())]
    connection.executemany(f"INSERT INTO scores VALUES ({places})", rows)
    query = export.to_sql(program, table="scores", columns=columns, dialect=dialect, keep=["id"])
    found = sorted(connection.execute(query).fetchall())
    connection.close()
    return np.array([row[1:-1] for row in found]), [row[-1] for row in found]


def _connect(dialect):
    if dialect == "duckdb":
        return pytest.importorskip("duckdb").connect()
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT ln(exp(1))")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite was built without mathematical functions")
    return connection


def session_of(path):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_onnx(program, scores, folder, dtype="float64"):
    pytest.importorskip("onnx")
    export.to_onnx(program, folder / "calibrator.onnx", dtype=dtype)
    session = session_of(folder / "calibrator.onnx")
    proba, labels = session.run(None, {"scores": scores.astype(dtype)})
    return proba, labels.tolist()


def run_torch(program, scores):
    torch = pytest.importorskip("torch")
    proba = export.to_torch(program)(torch.tensor(scores)).numpy()
    return proba, [program.classes[k] for k in proba.argmax(axis=1)]


_DECIDE = """
import { decide } from "./rule.mjs";
import fs from "fs";
console.log(JSON.stringify(JSON.parse(fs.readFileSync("rows.json")).map(decide)));
"""


def decide_in_python(program, scores, folder):
    space = {}
    exec(export.to_python(program), space)
    return _by_name([space["decide"](row) for row in scores.tolist()])


def decide_in_javascript(program, scores, folder):
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    (folder / "rule.mjs").write_text(export.to_javascript(program), encoding="utf-8")
    (folder / "run.mjs").write_text(_DECIDE)
    (folder / "rows.json").write_text(json.dumps(scores.tolist()))
    done = subprocess.run(["node", "run.mjs"], cwd=folder, capture_output=True, check=True)
    return _by_name(json.loads(done.stdout))


def _by_name(rows):
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def decide_in_sql(program, scores, folder, dialect="sqlite"):
    columns = [f"s_{k}" for k in range(program.n_classes)]
    connection = _connect(dialect)
    typed = ", ".join(f"{name} DOUBLE" for name in columns)
    connection.execute(f"CREATE TABLE scores (id INTEGER, {typed})")
    places = ", ".join("?" * (len(columns) + 1))
    rows = [[i, *row] for i, row in enumerate(scores.tolist())]
    connection.executemany(f"INSERT INTO scores VALUES ({places})", rows)
    query = export.to_sql(program, table="scores", columns=columns, dialect=dialect, keep=["id"])
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    rows = sorted(cursor.fetchall())
    found = {k: list(v) for k, v in zip(names, np.array(rows, dtype=object).T, strict=True)}
    connection.close()
    by_class = [found[f"in_set_{label}"] for label in program.classes if f"in_set_{label}" in found]
    named = {"in_set": np.array(by_class).T} if by_class else {}
    return named | {k: np.array(v) for k, v in found.items() if not k.startswith(("in_", "cal"))}


def decide_in_duckdb(program, scores, folder):
    return decide_in_sql(program, scores, folder, "duckdb")


def decide_in_onnx(program, scores, folder):
    pytest.importorskip("onnx")
    export.to_onnx(program, folder / "rule.onnx")
    session = session_of(folder / "rule.onnx")
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"scores": scores}), strict=True))


def decide_in_torch(program, scores, folder):
    torch = pytest.importorskip("torch")
    module = export.to_torch(program)
    found = {name: value.numpy() for name, value in module(torch.tensor(scores)).items()}
    for output in module.outputs:
        if output.labels:
            found[output.name] = np.array(output.labels)[found[output.name].astype(int)]
    export.save_torch(program, folder / "rule.pt2")
    again = torch.export.load(folder / "rule.pt2").module()(torch.tensor(scores))
    assert set(again) == {"probabilities", *(output.name for output in program.outputs)}
    return found


DECIDERS = [
    decide_in_python,
    decide_in_javascript,
    decide_in_sql,
    decide_in_duckdb,
    decide_in_onnx,
    decide_in_torch,
]
"""Functions that run the decisions of a program on each target, and return them by name."""


def steps(n_edges, side="left"):
    """A program of one step function, and rows at every edge and both its neighbors."""
    rng = np.random.default_rng(n_edges)
    edges = np.unique(rng.random(n_edges))
    build = export.Builder(2)
    curve = {"edges": edges, "values": rng.random(len(edges) + 1), "side": side}
    build.append("step", (0,), curve)
    at = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
    rows = np.column_stack([at, rng.permutation(at)])
    return build.program("logits", (0, 1), "steps"), rows
