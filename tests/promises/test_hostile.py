"""Tests of hostile and damaged files, lost data and the command line."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant._output.files import write_text, written_aside
from calibrant.cli import run

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pa_parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("typer")


def command(capsys, *arguments, code=0):
    assert run([str(a) for a in arguments]) == code, capsys.readouterr().err
    return capsys.readouterr()


# Writing


def test_a_symbolic_link_at_a_temporary_path_is_not_followed(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "model.json"
    victim.write_text("precious")
    (tmp_path / f".model.json.{os.getpid()}.part").symlink_to(victim)
    write_text(target, "new")
    assert victim.read_text() == "precious"
    assert target.read_text() == "new"
    assert not target.is_symlink()


def test_names_of_temporary_files_are_not_predictable(tmp_path):
    seen = set()
    for _ in range(20):
        with written_aside(tmp_path / "out") as aside:
            seen.add(aside.name)
    assert len(seen) == 20


def test_several_threads_can_save_to_one_path_at_once(tmp_path):
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
def test_a_file_that_is_overwritten_keeps_its_permissions(mode, tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_default_permissions_of_the_user(tmp_path):
    write_text(tmp_path / "ours", "")
    (tmp_path / "theirs").write_text("")
    modes = {(tmp_path / name).stat().st_mode for name in ("ours", "theirs")}
    assert len(modes) == 1


def test_a_file_whose_name_has_the_maximum_length_can_be_written(tmp_path):
    write_text(tmp_path / ("n" * 255), "text")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_write_keeps_the_old_output_and_removes_the_temporary_file(
    number, tmp_path
):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("this signal is ignored here, and by every process that is started from here")
    (tmp_path / "out").write_text("old")
    script = (
        "import sys, time\n"
        "from calibrant import cli\n"
        "from calibrant._output import files\n"
        "def slow(arguments):\n"
        "    with files.written_aside('out') as aside:\n"
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
    assert said == "calibrant: The command was interrupted. No file was written.\n"
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


def load_error(document, tmp_path):
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


def test_an_empty_array_with_many_columns_is_rejected(tmp_path):
    document = saved(calibrant.GaussianProcessCalibration(n_inducing=4), tmp_path)
    document["models"][-1]["fitted"]["draws_"] = zeros(0, 2**28)
    assert "GaussianProcessCalibration.draws_" in load_error(document, tmp_path)


def test_text_arrays_that_declare_too_much_memory_are_rejected(tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    names = [f"c{k}" for k in range(20_000)]
    wide = {"array": "text65536", "shape": [len(names)], "data": names}
    document["models"][-1]["fitted"]["classes_"] = wide
    assert "its arrays of strings need more" in load_error(document, tmp_path)


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
def test_arrays_with_additional_axes_are_rejected(
    calibrator, attribute, shape, n_classes, tmp_path
):
    document = saved(calibrator, tmp_path, n_classes)
    document["models"][-1]["fitted"][attribute] = zeros(*shape)
    reason = load_error(document, tmp_path)
    assert f"{type(calibrator).__name__}.{attribute} has shape" in reason


def test_deeply_nested_references_are_rejected(tmp_path):
    document = saved(calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=2), tmp_path)
    last = document["models"][-1]
    for _ in range(20):
        parts = [{"model": len(document["models"]) - 1}] * 2
        document["models"].append({**last, "fitted": {**last["fitted"], "calibrators_": parts}})
    reason = load_error(document, tmp_path)
    assert "a prediction would run 1,534 calibrators, but at most 1,270 are allowed" in reason


@pytest.mark.parametrize("temperature", [-1.0, 0.0, True, 1e-300, 1e300, [1.0], "1"])
def test_a_saved_temperature_must_be_a_positive_number_of_moderate_size(temperature, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document["models"][-1]["fitted"]["temperature_"] = temperature
    assert "TemperatureScaling.temperature_ must be" in load_error(document, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"), [("classes", [2, 1, 0]), ("classes", None), ("training", {"n_rows": 7})]
)
def test_a_header_that_contradicts_the_content_of_a_file_is_rejected(key, value, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document[key] = value
    noun = {"classes": "classes", "training": "training summary"}[key]
    assert f"the {noun} in the header" in load_error(document, tmp_path)


@pytest.mark.parametrize("classes", [[0.0, 1.0, 1.0], [0.0, 1.0, np.inf]])
def test_saved_classes_must_be_distinct_and_finite(classes, tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    data = base64.b64encode(np.array(classes).tobytes()).decode()
    array = {"array": "float64", "shape": [3], "order": "C", "data": data}
    document["models"][-1]["fitted"]["classes_"] = array
    assert "classes_ must" in load_error(document, tmp_path)


def test_unknown_fitted_attributes_are_rejected(tmp_path):
    document = saved(calibrant.TemperatureScaling(), tmp_path)
    document["models"][-1]["fitted"]["extra_"] = 1
    assert "'extra_' is not a fitted attribute" in load_error(document, tmp_path)


def test_a_wrong_number_of_bins_is_rejected(tmp_path):
    document = saved(calibrant.CanonicalBinning(n_bins=4), tmp_path)
    document["models"][-1]["fitted"]["n_bins_"] = 10**9
    assert "n_bins_ differs from the number of bins" in load_error(document, tmp_path)


# Columns, classes and labels


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Predictions of zebra, ape and mole, in this order, and a temperature fitted to them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.full(3, 0.4), 300).round(6)
    proba[:, 2] = 1 - proba[:, 0] - proba[:, 1]
    labels = NAMES[calibrant.datasets.draw_labels(proba, rng=rng)]
    write_csv("good.csv", proba, labels)
    calibrant.save(
        calibrant.TemperatureScaling(classes=NAMES).fit(proba, labels), tmp_path / "m.json"
    )
    return proba, labels


NAMES = np.array(["zebra", "ape", "mole"])


def write_csv(path, proba, labels, header="p_zebra,p_ape,p_mole,y", order=(0, 1, 2)):
    rows = [",".join(map(str, row[list(order)])) for row in proba]
    lines = [f"{row},{label}" for row, label in zip(rows, labels, strict=True)]
    with open(path, "w") as file:
        file.write("\n".join([header, *lines]) + "\n")


def accuracy_of(path):
    table = pa_csv.read_csv(path)
    proba = np.stack([table[f"p_{name}"].to_numpy() for name in NAMES], axis=1)
    return (NAMES[proba.argmax(axis=1)] == np.array(table["y"].to_pylist())).mean()


@pytest.mark.parametrize("said", [[], ["--proba", "p_*"], ["--proba", "p_ape,p_mole,p_zebra"]])
def test_a_model_is_applied_to_columns_by_name(said, files, capsys):
    proba, labels = files
    write_csv("permuted.csv", proba, labels, "p_mole,p_zebra,p_ape,y", order=(2, 0, 1))
    command(capsys, "apply", "m.json", "permuted.csv", "-o", "out.csv", *said)
    command(capsys, "apply", "m.json", "good.csv", "-o", "straight.csv")
    assert accuracy_of("out.csv") == accuracy_of("straight.csv")


def test_the_class_names_of_an_archive_determine_the_order_of_its_columns(files, capsys):
    proba, _ = files
    order = [2, 0, 1]
    np.savez("permuted.npz", probs=proba[:, order], class_names=NAMES[order])
    np.savez("good.npz", probs=proba, class_names=NAMES)
    for name in ("permuted", "good"):
        command(capsys, "apply", "m.json", f"{name}.npz", "-o", f"{name}.npy")
    np.testing.assert_allclose(np.load("permuted.npy"), np.load("good.npy"), rtol=1e-12)
    np.savez("other.npz", probs=proba, class_names=["bus", "car", "van"])
    said = command(capsys, "apply", "m.json", "other.npz", "-o", "x.npy", code=2).err
    assert "The model has the classes zebra, ape, mole, but the file has bus, car, van" in said


@pytest.mark.parametrize(
    "header", ["prob_zebra,prob_ape,prob_mole,y", "p_zebra, p_ape, p_mole, y", "zebra,ape,mole,y"]
)
def test_columns_are_matched_by_name_and_not_by_alphabetical_order(header, files, capsys):
    proba, labels = files
    write_csv("named.csv", proba, labels, header)
    for path in ("named.csv", "good.csv"):
        command(capsys, "fit", path, "-m", "temperature", "-o", f"{path}.json")
    classes = [calibrant.load(f"{p}.json").classes_.tolist() for p in ("named.csv", "good.csv")]
    assert classes == [NAMES.tolist()] * 2


def test_numbered_columns_with_text_labels_require_the_option_classes(files, capsys):
    proba, labels = files
    write_csv("numbered.csv", proba, labels, "p_0,p_1,p_2,y")
    said = command(capsys, "evaluate", "numbered.csv", code=2).err
    assert "Pass --classes with the label of each column" in said
    result = command(capsys, "evaluate", "numbered.csv", "--classes", "zebra,ape,mole", "--json")
    straight = command(capsys, "evaluate", "good.csv", "--json")
    assert json.loads(result.out) == json.loads(straight.out)


def test_the_command_and_the_code_that_a_report_shows_can_be_executed(files, capsys):
    proba, labels = files
    write_csv("numbered.csv", proba, labels, "a b,c,d,truth y")
    said = ["--label", "truth y", "--proba", "a b,c,d", "--classes", "zebra,ape,mole"]
    command(
        capsys, "report", "numbered.csv", *said, "-m", "temperature", "--seed", 3, "-o", "r.json"
    )
    with open("r.json") as file:
        report = json.load(file)
    line = report["code"].splitlines()[0].removeprefix("# Command of this report: ")
    arguments = shlex.split(line)
    assert arguments[0] == "calibrant"
    assert run(arguments[1:]) == 0
    with open("r.json") as file:
        assert json.load(file) == report
    known = {"scores": proba, "labels": labels}
    exec(report["code"], known)
    capsys.readouterr()
    assert known["model"].classes_.tolist() == NAMES.tolist()


def test_a_model_that_was_fitted_on_logits_rejects_probabilities(files, capsys):
    proba, labels = files
    model = calibrant.TemperatureScaling(inputs="logits", classes=NAMES)
    calibrant.save(model.fit(np.log(proba + 1e-9), labels), "z.json")
    said = command(capsys, "apply", "z.json", "good.csv", "-o", "out.csv", code=2).err
    assert (
        "needs logits of 3 classes (zebra, ape, mole), but no columns are named after these classes"
        in said
    )


def test_a_model_rejects_columns_of_unknown_classes(files, capsys):
    proba, labels = files
    for header in ("p_bus,p_car,p_van,y", "bus,car,van,y"):
        write_csv("other.csv", proba, labels, header)
        said = command(capsys, "apply", "m.json", "other.csv", "-o", "out.csv", code=2).err
        assert "The model needs probabilities of 3 classes (zebra, ape, mole)" in said
    said = command(
        capsys, "apply", "m.json", "other.csv", "--proba", "*a*", "-o", "out.csv", code=2
    ).err
    assert "2 score columns were passed" in said


@pytest.mark.parametrize("name", ["id", "fold", "prediction", "ID", "y_pred"])
def test_columns_with_ambiguous_names_are_not_used_as_labels(name, files, capsys):
    proba, labels = files
    write_csv("odd.csv", proba, labels, f"p_zebra,p_ape,p_mole,{name}")
    assert "The label column is ambiguous" in command(capsys, "evaluate", "odd.csv", code=2).err
    command(capsys, "evaluate", "odd.csv", "--label", name)


def test_logits_that_look_like_probabilities_cause_a_warning(files, capsys):
    said = command(capsys, "evaluate", "good.csv", "--logits", "p_*").err
    assert "If they are probabilities, pass --proba" in said


@pytest.mark.parametrize(("scores", "labels"), [("y_prob", "y_true"), ("proba", "y")])
def test_common_names_of_arrays_are_recognized(scores, labels, files, capsys):
    proba, y = files
    np.savez("a.npz", **{scores: proba, labels: y, "class_names": NAMES})
    result = command(capsys, "evaluate", "a.npz", "--json")
    straight = command(capsys, "evaluate", "good.csv", "--json")
    assert json.loads(result.out)["accuracy"] == json.loads(straight.out)["accuracy"]


# Data that must not be lost


@pytest.mark.parametrize("name", ["fit", "report"])
def test_the_input_file_is_not_overwritten(name, files, capsys):
    os.link("good.csv", "also.html")
    with open("good.csv") as file:
        before = file.read()
    for output in ("good.csv", "./good.csv", "also.html"):
        said = command(capsys, name, "good.csv", "-m", "identity", "-o", output, code=2).err
        assert "is an input file and would be overwritten" in said
    with open("good.csv") as file:
        assert file.read() == before


def test_calibrated_columns_are_not_calibrated_again(files, capsys):
    command(capsys, "apply", "m.json", "good.csv", "-o", "out.csv")
    said = command(capsys, "apply", "m.json", "out.csv", "-o", "twice.csv", code=2).err
    assert "so calibrant apply wrote it, and its scores are already calibrated" in said
    command(capsys, "apply", "m.json", "out.csv", "--proba", "raw_p_*", "-o", "twice.csv")
    with open("out.csv") as once, open("twice.csv") as twice:
        assert once.read() == twice.read()


def test_text_columns_of_digits_keep_their_leading_zeros(files, capsys):
    proba, labels = files
    rows = [f"{label},{k:05d},{k}" for k, label in enumerate(labels)]
    write_csv("zip.csv", proba, rows, "p_zebra,p_ape,p_mole,y,zip,count")
    command(capsys, "apply", "m.json", "zip.csv", "-o", "zip.parquet")
    table = pa_parquet.read_table("zip.parquet")
    assert table["zip"][7].as_py() == "00007"
    assert table["count"][7].as_py() == 7


# Text of others


def test_escape_sequences_do_not_reach_the_terminal(files, capsys):
    proba, labels = files
    write_csv("\x1b[2J.csv", proba, labels, "p_\x1b[31mred,p_ape,p_mole,\x07y")
    for arguments in (
        ["evaluate", "\x1b[2J.csv"],
        ["evaluate", "\x1b[2J.csv", "--label", "\x07y"],
        ["evaluate", "no\x1b[31m.csv"],
        ["fit", "good.csv", "-m", "identity", "-o", "\x1b[2J.json"],
        ["apply", "m.json", "\x1b[2J.csv", "-o", "out.csv"],
    ):
        run(arguments)
        printed = capsys.readouterr()
        assert not {"\x1b", "\x07"} & set(printed.out + printed.err)
        assert "\\x1b[" in printed.out + printed.err or "label" in arguments[-2]


@pytest.mark.parametrize("ending", ["md", "html"])
def test_a_line_break_in_a_file_name_does_not_add_a_line_of_code(ending, files, capsys):
    os.rename("good.csv", "x\nimport os # \u2028.csv")
    command(
        capsys, "report", "x\nimport os # \u2028.csv", "-m", "identity", "-o", f"report.{ending}"
    )
    with open(f"report.{ending}", newline="\n") as file:
        text = file.read()
    assert not [line for line in text.splitlines() if line.startswith("import os")]
    assert "\x1b" not in text


def test_control_characters_in_class_names_are_escaped_in_markdown(capsys):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    names = np.array(["a\x1b[31m", "b\u202e", "c\nd"])
    made = calibrant.report.summarize(
        names[calibrant.datasets.draw_labels(proba, rng=rng)],
        proba,
        classes=names,
        calibrator=calibrant.VectorScaling(),
        n_resamples=99,
    )
    text = calibrant.report.to_markdown(made)
    assert not {"\x1b", "\u202e"} & set(text)
    assert "a\\\\x1b[31m" in text


# Heads that promise too much, and what ended in tracebacks


def test_a_small_archive_that_declares_gigabytes_is_rejected(files, capsys):
    head = {"descr": "<f8", "fortran_order": False, "shape": (2**26, 2)}
    with (
        zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("probs.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(file, head)
        for _ in range(64):
            file.write(bytes(2**24))
    assert os.path.getsize("bomb.npz") < 2_000_000
    tracemalloc.start()
    said = command(capsys, "evaluate", "bomb.npz", code=2).err
    assert tracemalloc.get_traced_memory()[1] < 64e6
    tracemalloc.stop()
    assert "but declares 1,073,741" in said


def test_an_array_header_that_contradicts_its_archive_is_rejected(files, capsys):
    with zipfile.ZipFile("lie.npz", "w") as archive, archive.open("probs.npy", "w") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (2**29, 2)}
        )
    assert "its header declares 8,589,934,592" in command(capsys, "evaluate", "lie.npz", code=2).err


def test_a_parquet_file_of_many_equal_rows_is_rejected_before_it_is_loaded(files, capsys):
    n_rows = 50_000_000
    table = pa.table({"p_a": np.full(2**20, 0.5), "p_b": np.full(2**20, 0.5), "y": ["a"] * 2**20})
    with pa_parquet.ParquetWriter("equal.parquet", table.schema) as writer:
        for _ in range(n_rows // 2**20 // 2):
            writer.write_table(table)
    said = command(capsys, "fit", "equal.parquet", "-m", "canonical", "-o", "x", code=2).err
    assert "but declares" in said


def test_a_text_column_is_rejected_as_a_weight(files, capsys):
    said = command(capsys, "evaluate", "good.csv", "--label", "y", "--weight", "y", code=2).err
    assert "Column 'y' must contain numbers, but contains text" in said


def test_a_column_of_lists_is_rejected_as_labels(files, capsys):
    proba, _ = files
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(NAMES)}
    pa_parquet.write_table(pa.table({**columns, "y": [[1]] * len(proba)}), "lists.parquet")
    said = command(capsys, "evaluate", "lists.parquet", "--label", "y", code=2).err
    assert "Labels must be strings or integers" in said


@pytest.mark.parametrize("place", range(6, 126, 3))
def test_a_damaged_array_header_causes_no_traceback(place, files, capsys):
    np.save("a.npy", files[0])
    np.save("labels.npy", np.zeros(300, int))
    with open("a.npy", "r+b") as file:
        file.seek(place)
        file.write(b"\xff")
    code = run(["evaluate", "a.npy", "--labels", "labels.npy"])
    assert code in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_predictions_for_arrays_can_be_written_as_tables(files, capsys):
    proba, _ = files
    np.save("a.npy", proba)
    np.savez("b.npz", probs=proba)
    for path in ("a.npy", "b.npz"):
        for ending in ("csv", "parquet"):
            command(capsys, "apply", "m.json", path, "-o", f"out.{ending}")
    assert pa_parquet.read_table("out.parquet").column_names == ["p_zebra", "p_ape", "p_mole"]


@pytest.mark.parametrize("labels", [["01", "02"], ["True", "False"], ["1.0", "2.0"]])
def test_labels_with_unusual_spellings_are_read(labels, files, capsys):
    proba = np.column_stack([files[0][:, 0], 1 - files[0][:, 0]])
    spelt = np.array(labels)[np.arange(300) % 2]
    lines = [f"{a},{b},{y}" for (a, b), y in zip(proba.tolist(), spelt, strict=True)]
    with open("spelt.csv", "w") as file:
        file.write("\n".join(["p_a,p_b,y", *lines]) + "\n")
    command(capsys, "evaluate", "spelt.csv", "--classes", ",".join(labels))


def test_a_large_file_can_have_quoted_line_breaks(files, capsys):
    proba, labels = files
    rows = [f'{label},"two\nlines {"x" * 40_000}"' for label in labels]
    write_csv("large.csv", proba, rows, "p_zebra,p_ape,p_mole,y,note")
    assert os.path.getsize("large.csv") > 9_000_000
    result = json.loads(command(capsys, "evaluate", "large.csv", "--label", "y", "--json").out)
    assert result["n_samples"] == 300


# All of them


def hostile_cases():
    path = Path(__file__).parents[2] / "tools" / "make_hostile_files.py"
    spec = importlib.util.spec_from_file_location("make_hostile_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is measured in a process of its own")
@pytest.mark.parametrize("part", range(4))
def test_every_hostile_or_damaged_input_is_rejected_with_a_one_line_message(part):
    made = hostile_cases()
    assert len(made.cases()) >= 60
    for case in made.cases()[part::4]:
        outcome = made.measure(case)
        assert outcome.code == 2, (case.name, outcome)
        assert outcome.message.startswith("calibrant: "), (case.name, outcome)
        assert outcome.message.count("\n") == 1, (case.name, outcome)
        assert outcome.message[:-1].isprintable(), (case.name, outcome)
        assert outcome.megabytes < made.MOST_MEGABYTES, (case.name, outcome)


def test_the_page_of_hostile_files_lists_every_case():
    page = (Path(__file__).parents[2] / "docs" / "development" / "hostile-files.md").read_text()
    for case in hostile_cases().cases():
        assert f"| {case.name} |" in page, case.name


def test_a_report_includes_only_warnings_of_calibrant():
    class Talking(calibrant.Identity):
        def _fit(self, sample):
            warnings.warn("of another thread", UserWarning, stacklevel=1)
            super()._fit(sample)

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(2), 60)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    with pytest.warns(UserWarning, match="of another thread"):
        made = calibrant.report.summarize(labels, proba, calibrator=Talking(), n_resamples=49)
    assert "of another thread" not in " ".join(made.warnings)


@pytest.mark.slow
def test_hypothesis_tests_of_a_report_use_a_random_subsample_of_large_data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(2), 60_000)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    made = calibrant.report.summarize(
        labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=49
    )
    assert (
        "The tests, the decomposition, the two-bin error, the cutoff error and the guaranteed "
        "shares of answered rows use 20,000 rows, drawn at random."
    ) in made.how
    assert made.n_samples == 60_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each case is a process of its own")
def test_numeric_labels_are_read_correctly_or_rejected():
    made = hostile_cases()
    outcomes = [
        made.measure(made.Case(name, make, "evaluate x.csv --label y --json"))
        for name, make in list(made.label_cases())[::6]
    ]
    assert made.count_labels(outcomes)[2] == 0
    assert made.count_failures(outcomes) == [0, 0, 0]


def test_the_page_of_hostile_files_reports_no_failure():
    page = (Path(__file__).parents[2] / "docs" / "development" / "hostile-files.md").read_text()
    counts = page.partition("## Counts")[2].partition("## Inputs")[0]
    lines = [line for line in counts.splitlines() if line.startswith("| ")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(cells) == 3
    assert {cell for row in cells for cell in row[2:]} <= {"0", "-"}
