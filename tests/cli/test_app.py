"""The command line as its users see it: files in, files and lines out, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.cli import run
from calibrant.exceptions import DataWarning

pa = pytest.importorskip("pyarrow")
pa_csv = pytest.importorskip("pyarrow.csv")
pa_parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("typer")

N_ROWS, N_CLASSES = 300, 4
NAMES = np.array(["cat", "dog", "eel", "fox"])


@pytest.fixture
def data(rng):
    logits = rng.normal(scale=2.0, size=(N_ROWS, N_CLASSES))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    return proba, logits, labels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(data, folder):
    """predictions.csv and .parquet with p_<name>, z_<name>, an identifier and a label."""
    proba, logits, labels = data
    columns = {"id": [f"00{i}" for i in range(N_ROWS)], "y": NAMES[labels]}
    table = pa.table({**columns, **{f"p_{n}": proba[:, k] for k, n in enumerate(NAMES)}})
    pa_csv.write_csv(table, "predictions.csv")
    pa_parquet.write_table(table, "predictions.parquet")
    raw = pa.table({**columns, **{f"z_{n}": logits[:, k] for k, n in enumerate(NAMES)}})
    pa_csv.write_csv(raw, "logits.csv")
    np.savez("predictions.npz", probs=proba, labels=labels)
    return folder


def command(capsys, *arguments, code=0):
    assert run([str(a) for a in arguments]) == code
    return capsys.readouterr()


def rejected(capsys, *arguments):
    """Exit code 2 and one line; that line."""
    before = sorted(os.listdir("."))
    printed = command(capsys, *arguments, code=2)
    assert printed.out == ""
    remarks = ("Reading ", "The labels are assumed to be")
    lines = [line for line in printed.err.splitlines() if not line.startswith(remarks)]
    assert len(lines) == 1, printed.err
    assert lines[0].startswith("calibrant: ")
    assert "Traceback" not in printed.err
    assert sorted(os.listdir(".")) == before
    return lines[0]


def read_csv(path):
    return {name: np.array(column) for name, column in pa_csv.read_csv(path).to_pydict().items()}


# What the commands compute


def test_evaluate_gives_the_numbers_of_the_library(files, data, capsys):
    proba, _, labels = data
    expected = calibrant.evaluate(labels, proba).to_dict()
    for name in ("predictions.csv", "predictions.parquet", "predictions.npz"):
        printed = command(capsys, "evaluate", name, "--json")
        assert json.loads(printed.out) == pytest.approx(expected, rel=1e-9), name


def test_evaluate_takes_logits_as_logits(files, data, capsys):
    _, logits, labels = data
    printed = command(capsys, "evaluate", "logits.csv", "--label", "y", "--logits", "z_*", "--json")
    assert json.loads(printed.out) == pytest.approx(
        calibrant.evaluate(labels, logits, inputs="logits").to_dict(), rel=1e-9
    )


def test_csv_and_parquet_give_the_same_numbers(files, capsys):
    printed = [
        command(capsys, "evaluate", name, "--json", "-q").out
        for name in ("predictions.csv", "predictions.parquet")
    ]
    assert printed[0] == printed[1]


def test_blocks_do_not_matter(files, capsys, monkeypatch):
    whole = json.loads(command(capsys, "evaluate", "predictions.parquet", "--json", "-q").out)
    monkeypatch.setattr("calibrant.io._readers.WORK_MEMORY", 56)
    monkeypatch.setattr("calibrant.io._csv_reader._CSV_BYTES", 500)
    for name in ("predictions.parquet", "predictions.csv", "predictions.npz"):
        assert json.loads(command(capsys, "evaluate", name, "--json", "-q").out) == pytest.approx(
            whole, rel=1e-9
        ), name


def test_weights_are_copies(files, data, capsys):
    proba, _, labels = data
    weight = np.arange(N_ROWS) % 3
    table = pa_parquet.read_table("predictions.parquet").append_column("w", pa.array(weight))
    pa_parquet.write_table(table, "weighted.parquet")
    printed = command(
        capsys, "evaluate", "weighted.parquet", "--label", "y", "--weight", "w", "--json"
    )
    expected = calibrant.evaluate(labels, proba, sample_weight=weight).to_dict()
    assert json.loads(printed.out) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("method", ["temperature", "dirichlet", "isotonic", "canonical", "auto"])
def test_fit_then_apply_equals_the_library(method, files, data, capsys):
    proba, _, labels = data
    command(capsys, "fit", "predictions.csv", "-m", method, "-o", "model.json", "-q")
    command(capsys, "apply", "model.json", "predictions.csv", "-o", "out.csv", "-q")
    from calibrant._crossfit.members import set_up

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = set_up(calibrant.method(method), "proba", N_CLASSES, NAMES)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=0)
        expected = model.fit(proba, NAMES[labels]).predict_proba(proba)
    out = read_csv("out.csv")
    np.testing.assert_allclose(
        np.stack([out[f"p_{n}"] for n in NAMES], axis=1), expected, rtol=1e-12, atol=1e-15
    )


def test_export_writes_what_the_library_writes(files, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "temperature", "-o", "model.json", "-q")
    model = calibrant.load("model.json")
    for target in ("python", "javascript"):
        command(capsys, "export", "model.json", "--to", target, "-o", "out")
        written = getattr(calibrant.export, f"to_{target}")(model)
        assert Path("out").read_text(encoding="utf-8") == written
    command(
        *(capsys, "export", "model.json", "--to", "sql", "-o", "out", "--dialect", "sqlite"),
        *("--table", "t", "--keep", "id"),
    )
    columns = [f"p_{name}" for name in NAMES]
    expected = calibrant.export.to_sql(
        model, table="t", columns=columns, dialect="sqlite", keep=["id"]
    )
    assert Path("out").read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(
    ("inputs", "prefix"), [("proba", "p"), ("logits", "z"), ("log_proba", "lp")]
)
def test_sql_reads_the_columns_that_files_of_such_scores_have(inputs, prefix, folder, capsys):
    model = calibrant.Identity(inputs=inputs, classes=["a", "b"])
    table = np.log([[0.5, 0.5], [0.25, 0.75]]) if inputs == "log_proba" else [[0.5, 0.5], [1, 0]]
    calibrant.save(model.fit(table, ["a", "b"]), "model.json")
    command(capsys, "export", "model.json", "--to", "sql", "-o", "out.sql")
    query = Path("out.sql").read_text(encoding="utf-8")
    assert f'"{prefix}_a"' in query
    assert f'"{prefix}_b"' in query


def test_export_says_what_it_cannot_do(files, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "temperature", "-o", "model.json", "-q")
    said = rejected(capsys, "export", "model.json", "--to", "pythn", "-o", "out")
    assert "Did you mean 'python'" in said
    said = rejected(
        capsys, "export", "model.json", "--to", "sql", "--compose", "net.onnx", "-o", "out"
    )
    assert "--compose requires --to onnx" in said
    said = rejected(capsys, "export", "model.json", "--to", "python", "-o", "model.json")
    assert "model.json is an input file and would be overwritten" in said
    command(capsys, "fit", "predictions.csv", "-m", "canonical", "-o", "model.json", "-q")
    assert "MulticlassToBinary" in rejected(
        capsys, "export", "model.json", "--to", "sql", "-o", "o"
    )


def test_every_method_can_be_fitted_saved_and_applied(files, capsys):
    from calibrant.selection.methods import METHODS

    for method in METHODS:
        command(capsys, "fit", "predictions.parquet", "-m", method, "-o", "model.json", "-q")
        command(capsys, "apply", "model.json", "predictions.parquet", "-o", "out.npy", "-q")
        np.testing.assert_allclose(np.load("out.npy").sum(axis=1), 1, atol=1e-9, err_msg=method)


def test_a_notion_lifts_a_binary_method(files, data, capsys):
    proba, _, labels = data
    command(
        capsys,
        "fit",
        "predictions.npz",
        "-m",
        "histogram",
        "--notion",
        "top-label",
        "-o",
        "model.json",
    )
    model = calibrant.load("model.json")
    expected = calibrant.MulticlassToBinary(calibrant.HistogramBinning(), notion="top-label").fit(
        proba, labels
    )
    np.testing.assert_array_equal(model.predict_proba(proba), expected.predict_proba(proba))


def test_the_model_remembers_the_names_of_the_classes(files, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "temperature", "-o", "model.json")
    assert calibrant.load("model.json").classes_.tolist() == NAMES.tolist()


def test_apply_leaves_other_columns_as_they_are_letter_by_letter(files, capsys):
    command(capsys, "fit", "logits.csv", "-m", "temperature", "-o", "model.json")
    with open("new.csv", "w") as file:
        file.write(
            'id,note,z_cat,z_dog,z_eel,z_fox\n007,"a, ""b""",1.50,0.0,-1,2e0\n008,,0.10,3,1,0\n'
        )
    command(capsys, "apply", "model.json", "new.csv", "-o", "out.csv")
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "id,note,z_cat,z_dog,z_eel,z_fox,p_cat,p_dog,p_eel,p_fox"
    assert lines[1].startswith(
        '"007","a, ""b""","1.50","0.0","-1","2e0",'
    )  # a block with special letters is quoted
    table = pa_csv.read_csv(
        "out.csv", convert_options=pa_csv.ConvertOptions(column_types={"id": pa.string()})
    )
    assert table.column("id").to_pylist() == ["007", "008"]


def test_plain_text_is_written_without_quotes(files, capsys):
    command(capsys, "fit", "logits.csv", "-m", "temperature", "-o", "model.json")
    Path("new.csv").write_text("id,z_cat,z_dog,z_eel,z_fox\n007,1.50,0.0,-1,2e0\n")
    command(capsys, "apply", "model.json", "new.csv", "-o", "out.csv")
    assert Path("out.csv").read_text().splitlines()[1].startswith("007,1.50,0.0,-1,2e0,0.")


def test_apply_ignores_the_label_and_finds_columns_by_the_names_of_the_model(files, data, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "dirichlet", "-o", "model.json")
    table = pa_parquet.read_table("predictions.parquet")
    shuffled = table.select(["p_fox", "p_cat", "id", "p_eel", "p_dog"])
    pa_parquet.write_table(shuffled, "shuffled.parquet")
    command(capsys, "apply", "model.json", "shuffled.parquet", "-o", "out.parquet")
    out = pa_parquet.read_table("out.parquet")
    expected = calibrant.load("model.json").predict_proba(data[0])
    np.testing.assert_array_equal(np.stack([out[f"p_{n}"] for n in NAMES], axis=1), expected)
    assert out.column_names[:5] == ["raw_p_fox", "raw_p_cat", "id", "raw_p_eel", "raw_p_dog"]
    assert out["raw_p_fox"].equals(table["p_fox"])


def test_apply_writes_arrays_beside_those_of_the_input(files, data, capsys):
    command(capsys, "fit", "predictions.npz", "-m", "temperature", "-o", "model.json")
    command(capsys, "apply", "model.json", "predictions.npz", "-o", "out.npz")
    with np.load("out.npz") as out:
        np.testing.assert_array_equal(out["raw_probs"], data[0])
        np.testing.assert_array_equal(out["labels"], data[2])
        np.testing.assert_array_equal(
            out["probs"], calibrant.load("model.json").predict_proba(data[0])
        )


def test_compare_and_its_json(files, capsys):
    printed = command(
        capsys, "compare", "predictions.npz", "-m", "temperature", "--cv", "3", "--json"
    )
    result = json.loads(printed.out)
    assert result["methods"] == ["uncalibrated", "temperature"]
    assert (
        "temperature"
        in command(capsys, "compare", "predictions.npz", "-m", "temperature", "--cv", "3").out
    )


def test_the_seed_decides_everything(files, capsys):
    runs = [
        command(
            capsys,
            "compare",
            "predictions.npz",
            "-m",
            "temperature",
            "--cv",
            "3",
            "--seed",
            seed,
            "--json",
        ).out
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    "ending", ["html", *(pytest.param(form, marks=pytest.mark.slow) for form in ("md", "json"))]
)
def test_report_in_all_its_forms(ending, files, capsys):
    printed = command(
        capsys, "report", "predictions.csv", "-m", "temperature", "-o", f"report.{ending}"
    )
    assert "Calibration by temperature" in printed.out
    text = Path(f"report.{ending}").read_text()
    for said in ("cat", "fox", "temperature", "95% CI"):
        assert said in text


def test_an_npy_file_goes_with_a_file_of_labels(files, data, capsys):
    proba, logits, labels = data
    np.save("scores.npy", proba)
    np.save("labels.npy", NAMES[labels])
    said = ["--labels", "labels.npy", "--classes", ",".join(NAMES), "--json"]
    printed = command(capsys, "evaluate", "scores.npy", *said)
    assert json.loads(printed.out)["log_loss"] == pytest.approx(
        calibrant.evaluate(labels, proba).log_loss
    )
    np.save("logits.npy", logits)
    printed = command(capsys, "evaluate", "logits.npy", "--logits", "*", *said)
    assert json.loads(printed.out)["log_loss"] == pytest.approx(
        calibrant.evaluate(labels, logits, inputs="logits").log_loss
    )


def test_a_split_of_an_npz_file_is_chosen_by_name(data, folder, capsys):
    _, logits, labels = data
    np.savez(
        "all.npz", val_logits=logits, val_labels=labels, test_logits=2 * logits, test_labels=labels
    )
    printed = command(capsys, "evaluate", "all.npz", "--split", "test", "--json")
    assert json.loads(printed.out)["log_loss"] == pytest.approx(
        calibrant.evaluate(labels, 2 * logits, inputs="logits").log_loss
    )
    assert "pass --split with test or val" in rejected(capsys, "evaluate", "all.npz")


def test_rounded_rows_are_taken_with_a_note_unless_renormalize_says_so(data, folder, capsys):
    proba, _, labels = data
    np.savez("rounded.npz", probs=proba.round(2), labels=labels)
    noted = command(capsys, "evaluate", "rounded.npz", "--json")
    assert re.search(
        r"note: Rows .* because of rounding \(row \d+ .* pass --renormalize", noted.err
    )
    said = command(capsys, "evaluate", "rounded.npz", "--renormalize", "--json")
    assert "rounding" not in said.err
    assert noted.out == said.out
    with pytest.warns(DataWarning, match="do not sum to 1 because of rounding"):
        own = calibrant.evaluate(labels, proba.round(2))
    assert json.loads(noted.out)["log_loss"] == pytest.approx(own.log_loss, abs=1e-12)
    np.savez("wrong.npz", probs=proba * 0.9, labels=labels)
    assert "Pass --renormalize for counts or shares" in rejected(capsys, "evaluate", "wrong.npz")


# What is said


def test_what_was_guessed_is_said_aloud_and_quiet_is_quiet(files, capsys):
    printed = command(capsys, "evaluate", "predictions.csv")
    assert (
        printed.err
        == "Reading p_cat, p_dog, p_eel, p_fox as probabilities of 4 classes, and 'y' as "
        "the label.\n"
    )
    assert command(capsys, "evaluate", "predictions.csv", "--quiet").err == ""
    assert (
        command(capsys, "evaluate", "predictions.csv", "--label", "y", "--proba", "p_*").err == ""
    )


def test_json_is_all_there_is_on_standard_output(files, capsys):
    for arguments in (
        ["fit", "predictions.csv", "-m", "platt", "-o", "m.json"],
        ["apply", "m.json", "predictions.csv", "-o", "o.csv"],
    ):
        assert isinstance(json.loads(command(capsys, *arguments, "--json").out), dict)


def test_version_and_help(capsys):
    assert command(capsys, "--version").out == f"calibrant {calibrant.__version__}\n"
    assert "Usage: calibrant" in command(capsys).out
    for name in ("demo", "evaluate", "fit", "apply", "decide", "compare", "report"):
        for option in ("-h", "--help"):
            assert re.search(rf"Example:\n +calibrant {name}", command(capsys, name, option).out)


def test_shell_completion_is_offered(capsys, monkeypatch):
    monkeypatch.setenv("_CALIBRANT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "calibrant ev")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out.strip() == "evaluate"


# Bad input


def test_usage_errors_are_one_line(files, capsys):
    assert "Missing argument" in rejected(capsys, "evaluate")
    assert "No such command 'evalute'" in rejected(capsys, "evalute", "x.csv")
    assert "No such option" in rejected(capsys, "evaluate", "predictions.csv", "--labl", "y")
    assert "Missing option '--output'" in rejected(capsys, "fit", "predictions.csv")
    assert "--seed" in rejected(capsys, "fit", "predictions.csv", "-o", "m.json", "--seed", "x")
    assert "Unknown method 'magic'" in rejected(
        capsys, "fit", "predictions.csv", "-m", "magic", "-o", "m.json"
    )
    assert "notion= is only allowed for the binary methods" in rejected(
        capsys, "fit", "predictions.csv", "-m", "vector", "--notion", "top-label", "-o", "m.json"
    )


def test_bad_files_are_one_line(files, data, capsys):
    proba, _, labels = data
    os.mkdir("directory.csv")
    Path("empty.csv").touch()
    Path("empty.parquet").touch()
    Path("empty.npz").touch()
    Path("header.csv").write_text("p_a,p_b,y\n")
    Path("text.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n0.4,half,b\n")
    Path("sums.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n0.9,0.9,b\n")
    Path("unknown.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6,c\n")
    Path("missing.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n0.4,,b\n")
    Path("ragged.csv").write_text("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6\n")
    Path("twice.csv").write_text("p_a,p_a,y\n0.5,0.5,a\n")
    Path("other.txt.gz").write_text("")
    np.savez("nothing.npz", weights=proba)
    np.savez("short.npz", probs=proba, labels=labels[:-1])
    expected = {
        "absent.csv": "File absent.csv does not exist",
        "directory.csv": "is a directory",
        "empty.csv": "empty.csv cannot be read: Empty CSV file",
        "empty.parquet": "empty.parquet cannot be read",
        "empty.npz": "empty.npz cannot be read",
        "header.csv": "header.csv has no rows",
        "text.csv": "Column 'p_b' must contain numbers, but contains text",
        "sums.csv": (
            "Row 1 (line 3) of the probabilities sums to 1.8 instead of 1. Pass --renormalize for "
            "counts or shares, or --logits for raw scores."
        ),
        "unknown.csv": "Label 'c' in row 1 is not among the classes a, b",
        "missing.csv": "Row 1 (line 3), column 'p_b' of the probabilities is nan",
        "ragged.csv": "Expected 3 columns, got 2",
        "twice.csv": "several columns 'p_a'",
        "other.txt.gz": "an unknown file extension",
        "nothing.npz": "must have an array probs or logits, but the file has weights",
        "short.npz": "labels have shape (299,), but the scores have 300 rows",
    }
    for name, reason in expected.items():
        assert reason in rejected(capsys, "evaluate", name), name


def test_text_far_down_in_a_number_column_is_named(folder, capsys):
    with open("late.csv", "w") as file:
        file.write("p_a,p_b,y\n" + "0.5,0.5,a\n" * 1_000_000 + "0.5,oops,b\n")
    assert "column 'p_b'" in rejected(capsys, "evaluate", "late.csv")


def test_rows_of_later_blocks_are_named_by_their_number_in_the_file(
    data, folder, capsys, monkeypatch
):
    monkeypatch.setattr("calibrant.io._readers.WORK_MEMORY", 80)
    proba, _, labels = data
    proba = proba.copy()
    proba[123] *= 2
    table = pa.table({**{f"p_{k}": proba[:, k] for k in range(4)}, "label": labels})
    pa_parquet.write_table(table, "bad.parquet")
    assert "Row 123" in rejected(capsys, "evaluate", "bad.parquet")


def test_missing_and_wrong_columns_are_named(files, capsys):
    assert "no column 'truth'" in rejected(
        capsys, "evaluate", "predictions.csv", "--label", "truth"
    )
    assert "No column matches 'q_*'" in rejected(
        capsys, "evaluate", "predictions.csv", "--proba", "q_*"
    )
    assert "Pass --proba or --logits, not both" in rejected(
        capsys, "evaluate", "predictions.csv", "--proba", "p_*", "--logits", "z_*"
    )
    assert "--classes has 2 labels, but the file has 4 score columns" in rejected(
        capsys, "evaluate", "predictions.csv", "--classes", "a,b"
    )


def test_a_model_that_does_not_fit_is_rejected(files, data, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "temperature", "-o", "model.json")
    assert "The model has 4 classes" in rejected(
        capsys, "apply", "model.json", "predictions.csv", "--proba", "p_cat,p_dog", "-o", "out.csv"
    )
    assert "fitted on probabilities, but the file contains logits" in rejected(
        capsys, "apply", "model.json", "logits.csv", "--logits", "z_*", "-o", "out.csv"
    )
    assert "is not a saved calibrator" in rejected(
        capsys, "apply", "predictions.csv", "predictions.csv", "-o", "out.csv"
    )


def test_unwritable_output_is_rejected_before_the_work(files, capsys):
    assert "does not exist" in rejected(capsys, "fit", "predictions.csv", "-o", "no/model.json")
    assert "is a directory" in rejected(capsys, "report", "predictions.csv", "-o", ".")
    command(capsys, "fit", "predictions.csv", "-m", "identity", "-o", "model.json")
    assert "does not exist" in rejected(
        capsys, "apply", "model.json", "predictions.csv", "-o", "no/out.csv"
    )
    assert "unknown file extension" in rejected(
        capsys, "apply", "model.json", "predictions.csv", "-o", "out.xyz"
    )
    assert "must end in .html, .md or .json" in rejected(
        capsys, "report", "predictions.csv", "-m", "identity", "-o", "report.pdf"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_rejected(files, capsys):
    os.mkdir("locked", 0o500)
    assert "permission" in rejected(capsys, "fit", "predictions.csv", "-o", "locked/model.json")


def test_an_error_in_the_middle_leaves_the_old_output(files, data, capsys):
    command(capsys, "fit", "predictions.csv", "-m", "temperature", "-o", "model.json")
    Path("out.csv").write_text("old")
    with open("bad.csv", "w") as file:
        file.write(
            "p_cat,p_dog,p_eel,p_fox\n" + "0.25,0.25,0.25,0.25\n" * 5 + "0.25,0.25,0.25,0.95\n"
        )
    assert "Row 5" in rejected(capsys, "apply", "model.json", "bad.csv", "-o", "out.csv")
    assert Path("out.csv").read_text() == "old"


def test_a_missing_extra_is_said_in_one_line(capsys, monkeypatch):
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] == "typer" or name == "calibrant.cli._app"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    printed = command(capsys, "demo", code=2)
    assert (
        printed.err
        == "calibrant: The command line needs the package typer, which is not installed. Run pip "
        'install "calibrant[cli]".\n'
    )


# Processes


INTERRUPTED = """
import os, signal, sys
import calibrant
from calibrant.io import _readers as readers
from calibrant.cli import main

readers.WORK_MEMORY, calls, predict = 80, [], calibrant.TemperatureScaling.predict_proba

def interrupted(self, X):
    calls.append(X)
    if len(calls) == 4:  # after the probe of load and two blocks
        os.kill(os.getpid(), signal.SIGINT)
    return predict(self, X)

calibrant.TemperatureScaling.predict_proba = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
main(sys.argv[1:])
"""


def test_an_interrupted_command_leaves_the_old_output_and_nothing_else(files, capsys):
    command(capsys, "fit", "predictions.parquet", "-m", "temperature", "-o", "model.json")
    Path("out.csv").write_text("old")
    before = sorted(os.listdir("."))
    arguments = ["apply", "model.json", "predictions.parquet", "-o", "out.csv", "-q"]
    made = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments], capture_output=True, text=True, check=False
    )
    assert made.returncode == 130
    message = "calibrant: The command was interrupted. No file was written."
    assert made.stderr.strip() == message
    assert Path("out.csv").read_text() == "old"
    assert sorted(os.listdir(".")) == before


def test_demo_needs_nothing_and_explains_itself(folder, capsys):
    out = command(capsys, "demo").out
    for said in (
        "Overconfident",
        "before",
        "after",
        "hold with 95% confidence",
        "calibrant-report.html",
    ):
        assert said in out
    assert re.search(r"Log-loss +\d\.\d+ +\d\.\d+ to \d\.\d+ +\d\.\d+ +\d\.\d+ to \d\.\d+", out)
    assert os.path.getsize("calibrant-report.html") < 2_000_000


@pytest.mark.parametrize("n_cases", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_csv_files_end_in_one_line_or_a_result(n_cases, data, folder, rng):
    from calibrant.cli._commands import evaluate_file
    from calibrant.io import open_scores

    proba, _, labels = data
    table = pa.table({**{f"p_{k}": proba[:12, k].round(6) for k in range(4)}, "label": labels[:12]})
    pa_csv.write_csv(table, "good.csv")
    good, target, reasons = Path("good.csv").read_bytes(), folder / "mutated.csv", []
    for _ in range(n_cases):
        target.write_bytes(mutated(good, rng))
        try:
            evaluate_file(open_scores(target, renormalize=True), 15)
        except (ValueError, OSError) as error:
            reasons.append(" ".join(str(error).split()))
    assert 0.3 * n_cases < len(reasons) < n_cases
    assert all(reasons)


def mutated(raw, rng):
    data, place = bytearray(raw), int(rng.integers(len(raw)))
    match rng.integers(4):
        case 0:
            data[place] = rng.integers(256)
        case 1:
            del data[place : place + int(rng.integers(1, 30))]
        case 2:
            data[place:place] = data[place // 2 : place // 2 + int(rng.integers(1, 30))]
        case _:
            tokens = [b"nan", b"-1", b"1e400", b"\n\n", b",,", b'"', b"inf", b"\x00", b"\xff\xfe"]
            data[place : place + int(rng.integers(0, 4))] = tokens[int(rng.integers(len(tokens)))]
    return bytes(data)


def imported_by(*arguments):
    """What the command line said, and which large packages it imported for that."""
    code = (
        f"import sys; from calibrant.cli import run; code = run({list(arguments)!r}); "
        "print(code, [name for name in ('numpy', 'scipy', 'sklearn') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, last = said.stdout.splitlines()
    return lines, last


def test_the_version_is_said_without_scikit_learn():
    assert imported_by("--version") == ([f"calibrant {calibrant.__version__}"], "0 []")


@pytest.mark.parametrize("asked", [["--help"], ["evaluate", "-h"], ["monitor", "update", "-h"]])
def test_help_is_given_without_scikit_learn(asked):
    lines, last = imported_by(*asked)
    assert last == "0 []"
    assert any("Usage: calibrant" in line for line in lines)
