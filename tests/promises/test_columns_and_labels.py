"""Matching of columns and classes by order or by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import pyarrow as pa
import pyarrow.parquet as pa_parquet

import calibrant
from calibrant.cli import run
from calibrant.monitoring import CalibrationMonitor


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, names, proba, labels, label="y"):
    """A file of scores, CSV or Parquet."""
    if path.endswith(".parquet"):
        columns = {name: proba[:, k] for k, name in enumerate(names)}
        pa_parquet.write_table(pa.table({**columns, label: labels}), path)
        return
    rows = zip(proba.tolist(), labels, strict=True)
    lines = [f"{','.join(map(repr, row))},{label}" for row, label in rows]
    Path(path).write_text("\n".join([",".join([*names, label]), *lines]) + "\n")


def accuracy(capsys, path, *options):
    capsys.readouterr()
    assert run(["evaluate", path, "--label", "y", "--json", "-q", *options]) == 0
    return json.loads(capsys.readouterr().out)["accuracy"]


def rejected(capsys, *arguments):
    capsys.readouterr()
    assert run([*arguments]) == 2
    return capsys.readouterr().err


# Labels


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["True", "False"], [True, False]),
        (["true", "false"], [True, False]),
        (["01", "02", "03"], [1, 2]),
        (["1.0", "2.0", "3.0"], [1.0, 2.0]),
        (["1.0", "2.0", "3.0"], [1, 2]),
        (["-1", "0", "1"], [-1, 0, 1]),
        (["-1", "1"], [-1.0, 1.0]),
    ],
    ids=lambda values: "-".join(map(str, values)),
)
def test_numeric_labels_match_columns_with_the_same_name(classes, labels, ending, rng, capsys):
    proba = rng.dirichlet(np.full(len(classes), 0.3), 60)
    proba = proba[proba.argmax(axis=1) < len(labels)]
    column = [labels[k] for k in proba.argmax(axis=1)]
    path = f"x.{ending}"
    write(path, [f"p_{name}" for name in classes], proba, column)
    assert accuracy(capsys, path) == 1.0


@pytest.mark.parametrize("classes", [["01", "02", "03"], ["1", "01"], ["1", "1.0"], ["1", "True"]])
def test_labels_of_a_text_file_match_columns_with_the_same_spelling(classes, rng, capsys):
    proba = rng.dirichlet(np.full(len(classes), 0.3), 60)
    labels = [classes[k] for k in proba.argmax(axis=1)]
    write("x.csv", [f"p_{name}" for name in classes], proba, labels)
    assert accuracy(capsys, "x.csv") == 1.0


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["yes", "no"], [True, False]),
        (["cat", "dog"], [0.0, 1.0]),
        (["1", "1.0"], [1.0, 1.0]),
        (["cat", "dog"], [-1, 1]),
    ],
    ids=lambda values: "-".join(map(str, values)),
)
def test_labels_that_match_no_column_or_several_columns_are_rejected(classes, labels, rng, capsys):
    proba = rng.dirichlet(np.ones(2), 20)
    write("x.parquet", [f"p_{name}" for name in classes], proba, labels * 10)
    assert "--classes" in rejected(capsys, "evaluate", "x.parquet", "--label", "y")


def test_the_classes_option_resolves_ambiguous_labels(rng, capsys):
    proba = rng.dirichlet(np.ones(2), 40)
    write("x.parquet", ["p_yes", "p_no"], proba, proba.argmax(axis=1) == 0)
    assert accuracy(capsys, "x.parquet", "--classes", "True,False") == 1.0


# Columns


@pytest.mark.parametrize("prefix", ["", "p_", "prob_", "proba_"])
def test_apply_reads_the_columns_that_the_model_was_fitted_on_and_calibrates_once(
    prefix, rng, capsys
):
    names = [f"{prefix}{name}" for name in ("cat", "dog", "owl")]
    proba = rng.dirichlet(np.full(3, 0.5), 200)
    labels = np.array(["cat", "dog", "owl"])[calibrant.datasets.draw_labels(proba**0.5, rng=rng)]
    write("x.csv", names, proba, labels)
    fit = ["fit", "x.csv", "--label", "y", "--proba", ",".join(names), "-m", "temperature"]
    options = ["--classes", "cat,dog,owl"]
    assert run([*fit, *options, "-o", "m.json", "-q"]) == 0
    assert calibrant.load("m.json").feature_names_in_.tolist() == names
    assert run(["apply", "m.json", "x.csv", "-o", "once.csv", "-q"]) == 0
    again = ["apply", "m.json", "once.csv", "-o", "twice.csv", "-q"]
    if prefix == "p_":
        assert "already calibrated" in rejected(capsys, *again)
        return
    assert run(again) == 0
    once, twice = (read_column(path, "p_cat") for path in ("once.csv", "twice.csv"))
    assert once == twice


def read_column(path, name):
    lines = [line.split(",") for line in Path(path).read_text().splitlines()]
    place = lines[0].index(name)
    return [line[place] for line in lines[1:]]


def test_a_model_without_column_names_rejects_ambiguous_score_columns(rng, capsys):
    proba = rng.dirichlet(np.full(3, 0.5), 100)
    labels = np.array(["cat", "dog", "owl"])[calibrant.datasets.draw_labels(proba, rng=rng)]
    model = calibrant.TemperatureScaling(classes=["cat", "dog", "owl"])
    calibrant.save(model.fit(proba, labels), "m.json")
    write("x.csv", ["cat", "dog", "owl"], proba, ["cat"] * 100)
    assert run(["apply", "m.json", "x.csv", "-o", "once.csv", "-q"]) == 0
    said = rejected(capsys, "apply", "m.json", "once.csv", "-o", "twice.csv")
    assert "several columns for class 'cat'" in said
    assert "--proba" in said


# Text


def test_quoted_line_breaks_do_not_start_new_rows(rng, capsys, monkeypatch):
    monkeypatch.setattr("calibrant.io._csv_reader._CSV_BYTES", 2**16)
    row = "0.25,0.25,0.50,owl,plain note\n"
    forged = "0.98,0.01,0.01,dog,forged\n"
    head = "p_cat,p_dog,p_owl,y,note\n"
    n_rows = (17 * 2**16 - 200) // len(row)  # the first quote comes after more than a megabyte
    quoted = '0.25,0.25,0.50,owl,"begin\n' + forged * 20 + 'end"\n'
    Path("x.csv").write_text(head + row * n_rows + quoted + row * 50)
    capsys.readouterr()
    assert run(["evaluate", "x.csv", "--label", "y", "--json", "-q"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_samples"], result["accuracy"]) == (n_rows + 51, 1.0)


def test_line_breaks_in_names_do_not_forge_output_lines_of_a_monitor():
    name = "A\nNo alarm after 999,999 rows.\nAll is well"
    monitor = CalibrationMonitor(classes=[f"a {name}", f"b {name}"], horizon=1000)
    labels = [f"a {name}", f"b {name}"] * 500
    monitor.update(labels, [[0.9, 0.1]] * 1000, group=[name] * 1000, when=f"week {name}")
    for shown in (str(monitor), str(CalibrationMonitor.from_json(monitor.to_json()))):
        assert not any(line.startswith(("No alarm", "All is")) for line in shown.splitlines())
        assert r"A\nNo alarm" in shown


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("p_a;p_b;y\n0,25;0,75;b\n0,5;0,5;a\n", ["--sep", ";", "--decimal", ","]),
        ("p_a|p_b|y\n0.25|0.75|b\n0.5|0.5|a\n", ["--sep", "|"]),
        ("p_a\tp_b\ty\n0.25\t0.75\tb\n0.5\t0.5\ta\n", ["--sep", "\\t"]),
        ("p_a,p_b,y\n25,75,b\n50,50,a\n", ["--percent"]),
    ],
)
def test_separators_and_decimal_commas_and_percentages_are_read_with_options(text, options, capsys):
    Path("x.csv").write_text(text)
    assert accuracy(capsys, "x.csv", *options) == 1.0
    said = rejected(capsys, "evaluate", "x.csv", "--label", "y")
    assert options[0] in said or "divide by 100" in said


def test_an_error_states_the_line_and_the_column_of_a_missing_score(capsys):
    Path("x.csv").write_text('p_a,p_{b},y\n0.5,0.5,"a\n\n"\n\n0.5,,a\n')
    said = rejected(capsys, "evaluate", "x.csv", "--label", "y", "--classes", "a,b")
    assert "Row 1 (line 6), column 'p_{b}' of the probabilities is nan" in said


@pytest.mark.parametrize("key", ["temperature_", "classes", "format"])
def test_a_model_file_with_a_duplicate_key_is_rejected(key, rng):
    proba = rng.dirichlet(np.ones(3), 60)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    calibrant.save(calibrant.TemperatureScaling().fit(proba, labels), "m.json")
    text = Path("m.json").read_text().replace(f'"{key}":', f'"{key}": 1.0, "{key}":', 1)
    Path("m.json").write_text(text)
    with pytest.raises(ValueError, match="more than once"):
        calibrant.load("m.json")


def test_a_monitor_state_with_a_duplicate_key_is_rejected():
    text = CalibrationMonitor(classes=[0, 1]).to_json()
    with pytest.raises(ValueError, match="more than once"):
        CalibrationMonitor.from_json(text.replace('"n_rows":', '"n_rows": 7, "n_rows":'))


def test_an_archive_with_a_duplicate_array_is_rejected(rng, capsys):
    import zipfile

    proba = rng.dirichlet(np.ones(3), 60)
    np.savez("x.npz", probs=proba, labels=proba.argmax(axis=1))
    np.save("other.npy", proba[:, ::-1])
    with zipfile.ZipFile("x.npz", "a") as archive:
        archive.write("other.npy", "probs")
    assert "the same name" in rejected(capsys, "evaluate", "x.npz")
