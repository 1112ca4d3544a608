"""Saved calibrators in production."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import TemperatureScaling, load, save
from calibrant.io import read_metadata


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.ones(3), 300)
    return proba, calibrant.datasets.draw_labels(proba, rng=rng)


@pytest.fixture
def model(data):
    return TemperatureScaling().fit(*data)


def test_a_saved_model_keeps_its_metadata(model, tmp_path):
    given = {"created": "2026-11-18", "rows": 300, "is_final": True}
    save(model, tmp_path / "m.json", metadata=given)
    found = read_metadata(tmp_path / "m.json")
    assert found["metadata"] == given
    assert found["calibrant"] == calibrant.__version__
    assert found["calibrator"] == "TemperatureScaling"
    assert found["training"]["n_samples"] == 300
    assert load(tmp_path / "m.json").temperature_ == model.temperature_


@pytest.mark.parametrize("metadata", [{"data": Path("x")}, {1: "x"}, {"rows": [1]}, "text"])
def test_metadata_values_other_than_strings_numbers_booleans_and_none_raise_an_error(
    model, metadata, tmp_path
):
    with pytest.raises(TypeError, match="metadata must be a dict with strings as keys"):
        save(model, tmp_path / "m.json", metadata=metadata)
    assert not (tmp_path / "m.json").exists()


def test_metadata_of_a_wrong_type_in_a_file_is_rejected(model, tmp_path):
    path = tmp_path / "m.json"
    save(model, path)
    document = json.loads(path.read_text())
    for key, value in (("metadata", {"a": []}), ("metadata", []), ("calibrant", None)):
        path.write_text(json.dumps({**document, key: value}))
        with pytest.raises(ValueError, match="not a saved calibrator"):
            read_metadata(path)


def test_the_fit_command_records_the_date_and_the_method_and_the_data(data, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("typer")
    from calibrant.cli import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    rows = zip(*data[0].T.tolist(), data[1].tolist(), strict=True)
    Path("x.csv").write_text("p_0,p_1,p_2,y\n" + "\n".join(",".join(map(repr, r)) for r in rows))
    assert run(["fit", "x.csv", "-m", "temperature", "-o", "m.json", "-q"]) == 0
    assert read_metadata("m.json")["metadata"] == {
        "created": "1970-01-01T00:00:00+00:00",
        "method": "temperature",
        "data": "x.csv",
        "data_sha256": hashlib.sha256(Path("x.csv").read_bytes()).hexdigest(),
    }


def test_a_model_can_be_replaced_while_other_threads_load_it(data, model, tmp_path):
    other = TemperatureScaling().fit(data[0][:100], data[1][:100])
    save(model, tmp_path / "m.json")
    seen, is_done = set(), threading.Event()

    def read():
        while not is_done.is_set():
            seen.add(load(tmp_path / "m.json").temperature_)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        save((model, other)[turn % 2], tmp_path / "m.json")
    is_done.set()
    for thread in threads:
        thread.join()
    assert seen <= {model.temperature_, other.temperature_}


def test_models_of_thousands_of_classes_can_be_fitted_and_saved_and_loaded(rng, tmp_path):
    logits = rng.normal(size=(60, 10_000)).astype(np.float32)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    model = TemperatureScaling(inputs="logits").fit(logits, labels)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json").predict_proba(logits[:5])
    np.testing.assert_array_equal(again, model.predict_proba(logits[:5]))


PROGRAM = """
import numpy as np
from calibrant import AutoCalibration, CalibratedClassifier, Evaluation, TemperatureScaling
from calibrant import compare, compare_models, evaluate, evaluate_answers, load, save
from calibrant.io import read_metadata
from calibrant.monitoring import CalibrationMonitor


def serve(path: str, scores: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> float:
    model = load(path)
    proba = model.predict_proba(scores)
    return float(proba[0, 0])


def train(labels: list[int], scores: list[list[float]]) -> Evaluation:
    model = TemperatureScaling().fit(scores, labels)
    save(model, "model.json", metadata={"data": "march"})
    print(read_metadata("model.json")["metadata"], model.temperature_ > 1, model.explain())
    auto = AutoCalibration(random_state=0).fit(scores, labels)
    CalibratedClassifier(object(), auto)
    print(compare(labels, scores, methods=["temperature"]).best)
    print(compare_models(labels, {"a": scores, "b": scores}).difference("a", "b").low)
    print(evaluate_answers([True], [0.5]).gap, evaluate_answers([1], [0.5], by=["a"]).groups)
    CalibrationMonitor(2).update(labels, scores)
    return evaluate(labels, scores)
"""


CHECKERS = {
    "mypy": ("mypy", "--strict", "--cache-dir=cache"),
    "basedpyright": ("basedpyright", "--level", "error", "--pythonpath", sys.executable),
}
"""Type checkers, with their options; the second is pyright with its runtime."""


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_program_that_uses_the_library_passes_strict_type_checks(checker, tmp_path):
    pytest.importorskip(checker)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyproject.toml").write_text('[tool.basedpyright]\ntypeCheckingMode = "standard"\n')
    source = Path(calibrant.__file__).parents[1]
    # An installed package is found without a path, and mypy rejects paths of installed packages.
    path = {} if source.name == "site-packages" else {"MYPYPATH": str(source)}
    found = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **path},
    )
    assert found.returncode == 0, found.stdout


def test_every_name_can_be_imported_without_warnings_and_without_a_home_folder(tmp_path):
    code = "import calibrant; [getattr(calibrant, name) for name in calibrant.__all__]"
    nowhere = str(tmp_path / "missing")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": nowhere, "XDG_CACHE_HOME": nowhere},
    )
    assert done.returncode == 0, done.stderr
