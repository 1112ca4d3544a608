"""Promises about hostile and damaged files, lost data and the command line, by their findings."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import calibrant
from calibrant._files import write_text, written_aside
from calibrant.cli import run

pa = pytest.importorskip("pyarrow")
pa_parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("typer")


def command(capsys, *arguments, code=0):
    assert run([str(a) for a in arguments]) == code, capsys.readouterr().err
    return capsys.readouterr()


# Writing


def test_d1_3_a_planted_link_is_not_followed(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "model.json"
    victim.write_text("precious")
    (tmp_path / f".model.json.{os.getpid()}.part").symlink_to(victim)
    write_text(target, "new")
    assert victim.read_text() == "precious"
    assert target.read_text() == "new"
    assert not target.is_symlink()


def test_d1_3_the_name_of_the_file_aside_cannot_be_foreseen(tmp_path):
    seen = set()
    for _ in range(20):
        with written_aside(tmp_path / "out") as aside:
            seen.add(aside.name)
    assert len(seen) == 20


def test_d1_3_many_may_save_to_one_path_at_once(tmp_path):
    path, errors = tmp_path / "model.json", []

    def save(text):
        for _ in range(25):
            try:
                write_text(path, text * 1000)
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=save, args=(str(k),)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(path.read_text())) == 1
    assert os.listdir(tmp_path) == ["model.json"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_d1_6_a_file_that_is_overwritten_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_the_user_gives_new_files(tmp_path):
    write_text(tmp_path / "ours", "")
    (tmp_path / "theirs").write_text("")
    modes = {(tmp_path / name).stat().st_mode for name in ("ours", "theirs")}
    assert len(modes) == 1


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    write_text(tmp_path / ("n" * 255), "text")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_d1_10_a_signal_leaves_the_old_output_and_nothing_else(number, tmp_path):
    (tmp_path / "out").write_text("old")
    script = (
        "import sys, time\n"
        "from calibrant import cli, _files\n"
        "def slow(arguments):\n"
        "    with _files.written_aside('out') as aside:\n"
        "        aside.write_text('half')\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "cli._run = slow\n"
        "cli.main([])\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "writing\n"
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert said == "calibrant: interrupted; nothing was written\n"
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "old"


# Models


def saved(calibrator, tmp_path, n_classes=3):
    """A calibrator that was fitted to random rows, as the dictionary in its file."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), 200)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    scores = proba[:, 1] if n_classes == 2 else proba
    calibrant.save(calibrator.fit(scores, labels), tmp_path / "model.json")
    return json.loads((tmp_path / "model.json").read_text())


def load_refused(document, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps(document))
    tracemalloc.start()
    with pytest.raises(ValueError, match="is not a saved calibrator: ") as caught:
        calibrant.load(tmp_path / "model.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6
    return str(caught.value)


def zeros(*shape):
    raw = bytes(8 * int(np.prod(shape)))
    data = base64.b64encode(raw).decode()
    return {"array": "float64", "shape": list(shape), "order": "C", "data": data}


def test_d1_1_an_array_without_entries_cannot_promise_columns(tmp_path):
    document = saved(calibrant.GaussianProcessCalibration(n_inducing=4), tmp_path)
    document["models"][-1]["fitted"]["draws_"] = zeros(0, 2**28)
    assert "GaussianProcessCalibration.draws_" in load_refused(document, tmp_path)


def test_d1_1_text_cannot_ask_for_room_that_it_does_not_fill(tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    names = [f"c{k}" for k in range(20_000)]
    wide = {"array": "text65536", "shape": [len(names)], "data": names}
    document["models"][-1]["fitted"]["classes_"] = wide
    assert "its text would take more" in load_refused(document, tmp_path)


@pytest.mark.parametrize(
    ("calibrator", "attribute", "shape", "n_classes"),
    [
        (calibrant.BetaCalibration(), "a_", (400, 1, 1), 2),
        (calibrant.PlattScaling(), "coef_", (2000, 1), 2),
        (calibrant.VectorScaling(), "coef_", (5000, 1, 1), 3),
        (calibrant.VectorScaling(), "intercept_", (5000, 3), 3),
        (calibrant.MatrixScaling(lam=0.1), "coef_", (700, 3, 3), 3),
        (calibrant.StructuredScaling(), "coef_", (300, 3, 3), 3),
    ],
)
def test_d1_1_arrays_do_not_broadcast(calibrator, attribute, shape, n_classes, tmp_path):
    document = saved(calibrator, tmp_path, n_classes)
    document["models"][-1]["fitted"][attribute] = zeros(*shape)
    reason = load_refused(document, tmp_path)
    assert f"{type(calibrator).__name__}.{attribute} has shape" in reason


def test_d1_2_nested_references_end(tmp_path):
    document = saved(calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=2), tmp_path)
    last = document["models"][-1]
    for _ in range(20):
        parts = [{"model": len(document["models"]) - 1}] * 2
        document["models"].append({**last, "fitted": {**last["fitted"], "calibrators_": parts}})
    assert "refer to each other so often" in load_refused(document, tmp_path)


@pytest.mark.parametrize("temperature", [-1.0, 0.0, True, 1e-300, 1e300, [1.0], "1"])
def test_d1_18_a_temperature_is_a_positive_number_that_leaves_something(temperature, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document["models"][-1]["fitted"]["temperature_"] = temperature
    assert "TemperatureScaling.temperature_ must be" in load_refused(document, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"), [("classes", [2, 1, 0]), ("classes", None), ("training", {"n_rows": 7})]
)
def test_d1_18_the_head_of_a_file_says_what_it_holds(key, value, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document[key] = value
    assert f"the {key} at its head" in load_refused(document, tmp_path)


@pytest.mark.parametrize("classes", [[0.0, 1.0, 1.0], [0.0, 1.0, np.inf]])
def test_d1_18_classes_are_different_and_finite(classes, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    data = base64.b64encode(np.array(classes).tobytes()).decode()
    array = {"array": "float64", "shape": [3], "order": "C", "data": data}
    document["models"][-1]["fitted"]["classes_"] = array
    assert "classes_ must" in load_refused(document, tmp_path)


def test_d1_18_attributes_that_no_fit_sets_are_refused(tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document["models"][-1]["fitted"]["extra_"] = 1
    assert "'extra_' is no fitted attribute" in load_refused(document, tmp_path)


def test_d1_18_bins_are_counted(tmp_path):
    document = saved(calibrant.CanonicalBinning(n_bins=4), tmp_path)
    document["models"][-1]["fitted"]["n_bins_"] = 10**9
    assert "n_bins_ is not the number of its bins" in load_refused(document, tmp_path)
