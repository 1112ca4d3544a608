"""Error messages for damaged, changing and oversized files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import pyarrow as pa
import pyarrow.feather

import calibrant
from calibrant.cli import run
from calibrant.io import open_scores
from calibrant.monitoring import CalibrationMonitor


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def proba(rng):
    return rng.dirichlet(np.ones(3), 400)


def rejected(capsys, *arguments):
    capsys.readouterr()
    assert run([*arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def write_arrow(path, proba, **options):
    names = np.array(["cat", "dog", "owl"])
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(names)}
    table = pa.table({**columns, "y": names[proba.argmax(axis=1)]})
    pa.feather.write_feather(table, path, **options)


def damage_offsets(path, offset):
    """Let the last offset of the labels point elsewhere."""
    raw = bytearray(Path(path).read_bytes())
    with pa.memory_map(str(path)) as mapped:
        labels = pa.ipc.open_file(mapped).get_batch(0).column("y")
        expected = labels.buffers()[1].to_pybytes()
    place = raw.find(expected) + len(labels) * 2
    place -= place % 4
    raw[place : place + 4] = int(offset).to_bytes(4, "little", signed=True)
    Path(path).write_bytes(raw)


@pytest.mark.parametrize("offset", [2**30, -(2**20), 4096])
def test_an_arrow_file_with_damaged_offsets_raises_an_error_and_does_not_crash(offset, proba):
    write_arrow("x.arrow", proba, compression="uncompressed")
    damage_offsets("x.arrow", offset)
    script = "import sys; from calibrant.cli import run; sys.exit(run(['evaluate', 'x.arrow']))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "x.arrow cannot be read" in done.stderr


@pytest.mark.parametrize("ending", ["npy", "arrow"])
def test_a_file_that_shrinks_while_it_is_read_raises_an_error(ending, proba):
    path = Path(f"x.{ending}")
    if ending == "npy":
        np.save(path, proba)
        np.save("y.npy", proba.argmax(axis=1))
        file = open_scores(path, labels="y.npy")
    else:
        write_arrow(path, proba, compression="uncompressed")
        file = open_scores(path, label="y")
    with path.open("r+b") as opened:
        opened.truncate(path.stat().st_size // 2)
    with pytest.raises(ValueError, match=r"became shorter|cannot be read"):
        file.load()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f8"])
def test_arrays_of_every_memory_layout_and_byte_order_are_read(order, dtype, proba):
    np.save("x.npy", np.asarray(proba, dtype=dtype, order=order))
    np.save("y.npy", proba.argmax(axis=1).astype(">i4"))
    scores, labels, _ = open_scores("x.npy", labels="y.npy").load()
    np.testing.assert_allclose(scores, proba, rtol=1e-6)
    np.testing.assert_array_equal(labels, proba.argmax(axis=1))
    np.savez("x.npz", probs=proba, labels=proba.argmax(axis=1).astype(">i8"))
    assert calibrant.evaluate(*open_scores("x.npz").load()[1::-1]).accuracy == 1.0


def test_unused_arrays_of_an_archive_are_not_loaded(proba, monkeypatch):
    np.savez_compressed("x.npz", probs=proba, labels=proba.argmax(axis=1), junk=np.zeros(10**6))
    loaded = []
    read = np.lib.format.read_array
    monkeypatch.setattr(
        "numpy.lib.format.read_array", lambda *a, **k: loaded.append(read(*a, **k)) or loaded[-1]
    )
    open_scores("x.npz").load()
    assert {array.size for array in loaded} == {proba.size, len(proba)}


def test_an_archive_that_declares_far_more_bytes_than_it_contains_is_rejected(capsys, proba):
    junk = {f"junk{k}": np.zeros(2**24) for k in range(8)}
    np.savez_compressed("x.npz", probs=proba, labels=proba.argmax(axis=1), **junk)
    assert "but declares" in rejected(capsys, "evaluate", "x.npz")


def test_an_arrow_file_of_many_equal_rows_is_rejected_before_it_is_loaded(capsys, monkeypatch):
    monkeypatch.setattr("calibrant.io._readers._MAX_BYTES", 2**20)
    monkeypatch.setattr("calibrant.io._readers._MAX_COMPRESSION", 5)
    write_arrow("x.arrow", np.tile([[0.5, 0.3, 0.2]], (500_000, 1)), compression="zstd")
    said = rejected(capsys, "fit", "x.arrow", "-m", "isotonic", "-o", "m.json", "-q")
    assert "but declares" in said


@pytest.mark.parametrize("text", ["[" + "[]," * 2**22 + "[]]", '{"a": [' + "0," * 2**22 + "0]}"])
def test_a_json_document_of_millions_of_values_is_rejected(text):
    Path("m.json").write_text(text)
    with pytest.raises(ValueError, match="it contains more than 4,194,304 values"):
        calibrant.load("m.json")
    with pytest.raises(ValueError, match="it contains more than 4,194,304 values"):
        CalibrationMonitor.from_json(text)


def test_a_model_of_many_classes_is_loaded_with_little_memory():
    import tracemalloc

    n_classes = 300_000
    scores = np.full((2, n_classes), 1 / n_classes)
    calibrant.save(calibrant.Identity().fit(scores, [0, 1]), "m.json")
    tracemalloc.start()
    calibrant.load("m.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize(
    "arguments", [("evaluate", "x.csv"), ("monitor", "show", "x.csv"), ("evaluate", "x.npy")]
)
def test_a_pipe_is_rejected_without_waiting_for_data(arguments, capsys):
    os.mkfifo(arguments[-1])
    said = rejected(capsys, *arguments)
    assert "regular file" in said


def test_an_endless_device_is_rejected_as_a_monitor_state(capsys):
    Path("s.json").symlink_to("/dev/zero")
    assert "not a regular file" in rejected(capsys, "monitor", "show", "s.json")


def test_a_folder_is_rejected_as_a_monitor_state(capsys):
    assert "not a regular file" in rejected(capsys, "monitor", "update", ".", "x.csv")


def test_a_file_with_thousands_of_columns_is_read_in_seconds(capsys):
    n_classes = 20_000
    names = ",".join(f"p_c{k}" for k in range(n_classes))
    row = ",".join(["1", *["0"] * (n_classes - 1)])
    Path("x.csv").write_text(f"{names},y\n{row},c0\n{row},c1\n")
    start = time.process_time()
    assert run(["evaluate", "x.csv", "--label", "y", "-q"]) == 0
    assert time.process_time() - start < 20


@pytest.mark.parametrize("weight", ["1e308", "1e200"])
@pytest.mark.parametrize("command", ["evaluate", "fit", "report"])
def test_weights_that_are_too_large_are_rejected_with_a_one_line_message(
    command, weight, proba, capsys
):
    rows = [f"{p!r},{1 - p!r},{k % 2},{weight}" for k, p in enumerate(proba[:20, 0].tolist())]
    Path("x.csv").write_text("\n".join(["p_0,p_1,y,w", *rows]) + "\n")
    output = {"fit": ["-o", "m.json"], "report": ["-o", "r.html"]}.get(command, [])
    said = rejected(capsys, command, "x.csv", "--weight", "w", "--label", "y", "-q", *output)
    assert "weight" in said


def test_a_horizon_that_is_too_large_is_rejected_with_a_one_line_message(proba, capsys):
    write_arrow("x.arrow", proba)
    begin = ["monitor", "start", "x.arrow", "--label", "y", "-o", "s.json", "-q"]
    assert "horizon" in rejected(capsys, *begin, "--horizon", "1" + "0" * 400)


def test_scores_that_are_too_large_are_rejected_without_a_warning(capsys):
    Path("x.csv").write_text("p_a,p_b,y\n1e308,0.5,a\n0.5,0.5,b\n")
    assert "1e+308" in rejected(capsys, "evaluate", "x.csv", "--label", "y", "-q")


# Models and states


def saved(calibrator, rng, n_classes=3):
    proba = rng.dirichlet(np.ones(n_classes), 300)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    calibrant.save(calibrator.fit(proba, labels), "m.json")
    return json.loads(Path("m.json").read_text())


@pytest.mark.parametrize(
    ("calibrator", "attribute", "value"),
    [
        (calibrant.AutoCalibration(), "names_", 7),
        (calibrant.AutoCalibration(), "gain_", 0.5),
        (calibrant.AutoCalibration(), "left_out_", 3),
        (calibrant.DirichletCalibration(lam=0.1), "lam_", "much"),
        (calibrant.TemperatureScaling(), "training_", {"tuple": []}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_model_whose_explanation_fails_is_not_loaded(calibrator, attribute, value, rng):
    document = saved(calibrator, rng)
    document["models"][-1]["fitted"][attribute] = value
    Path("m.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is not a saved calibrator"):
        calibrant.load("m.json")


def test_a_model_with_attributes_of_wrong_types_raises_a_value_error(rng):
    document = saved(calibrant.TemperatureScaling(), rng)
    document["models"][-1]["fitted"]["training_"]["fields"]["class_weights"] = 0.5
    Path("m.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is not a saved calibrator"):
        calibrant.load("m.json")
    document = saved(calibrant.CrossFitted(calibrant.TemperatureScaling()), rng)
    document["models"][-1]["parameters"].pop("calibrator")
    Path("m.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="is not a saved calibrator"):
        calibrant.load("m.json")


def test_labels_of_a_monitor_state_must_fit_into_64_bits():
    text = CalibrationMonitor(classes=[0, 1]).to_json()
    with pytest.raises(ValueError, match="64 bits"):
        CalibrationMonitor.from_json(text.replace("[0, 1]", f"[{2**63}, 1]"))


# Writing


def test_a_model_can_be_written_to_a_pipe(proba, rng):
    write_arrow("x.arrow", proba)
    arguments = ["fit", "x.arrow", "--label", "y", "-m", "identity", "-o", "/dev/stdout", "-q"]
    if not os.path.exists("/dev/stdout"):
        pytest.skip("needs /dev/stdout")
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith('{\n "format": "calibrant-model"')


def test_a_full_disk_is_reported_with_the_path_of_the_output():
    from calibrant._output.files import written_aside

    with pytest.raises(OSError, match=r"No space left on device: 'out'"), written_aside("out"):
        raise OSError(28, "No space left on device")
    assert os.listdir() == []


def test_an_output_in_a_read_only_folder_is_rejected_before_the_fit(monkeypatch):
    from calibrant._output.files import check_writable

    Path("out").write_text("old")
    # Root may write everywhere, so the answer of the system is replaced.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name == "out")
    with pytest.raises(PermissionError, match="out cannot be written"):
        check_writable("out")


def test_a_closed_pipe_ends_a_command_without_a_message(proba):
    write_arrow("x.arrow", proba)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", "evaluate", "x.arrow", "--label", "y", "-q"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_reading_a_file_that_grows_and_shrinks_never_crashes(proba):
    write_arrow("x.arrow", proba, compression="uncompressed")
    raw, stop = Path("x.arrow").read_bytes(), threading.Event()

    def change():
        while not stop.is_set():
            Path("x.arrow").write_bytes(raw[: len(raw) // 2])
            Path("x.arrow").write_bytes(raw)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(100):
            try:
                open_scores("x.arrow", label="y").load()
            except (ValueError, OSError):
                continue
    finally:
        stop.set()
        thread.join()
