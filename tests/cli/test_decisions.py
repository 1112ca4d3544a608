"""`calibrant decide`: the decisions of the library, their guarantee, and bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import calibrant
from calibrant import cli
from calibrant.cli._decisions import read_costs
from calibrant.decisions import DecisionRule, PredictionSets, SelectiveClassifier, select_answers

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def files(tmp_path, monkeypatch, rng):
    """fit.csv, labeled.csv and new.csv, and a calibrator of fit.csv."""
    monkeypatch.chdir(tmp_path)
    out = {}
    for name in ("fit", "labeled", "new"):
        proba = rng.dirichlet(np.full(3, 0.2), 500)
        labels = NAMES[calibrant.datasets.draw_labels(proba, rng=rng)]
        lines = [
            f"{','.join(map(repr, row))},{label}"
            for row, label in zip(proba.tolist(), labels, strict=True)
        ]
        Path(f"{name}.csv").write_text("\n".join(["p_cat,p_dog,p_owl,y", *lines]) + "\n")
        out[name] = proba, labels
    assert cli.run(["fit", "fit.csv", "-m", "temperature", "-o", "model.json", "-q"]) == 0
    return out


def _table(path="out.csv"):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def test_answers_are_those_of_the_library(files, capsys):
    arguments = ["--risk", "0.1", "--calibration", "labeled.csv", "--save", "rule.json"]
    assert cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments]) == 0
    captured = capsys.readouterr()
    assert "With 90% confidence, at most 10% of the answers are wrong" in captured.err
    model = SelectiveClassifier(calibrant.load("model.json"), risk=0.1).fit(*files["labeled"])
    table, proba = _table(), files["new"][0]
    np.testing.assert_array_equal(table["decision"], model.predict(proba))
    np.testing.assert_array_equal(table["answered"] == "true", model.answers(proba))
    assert "p_cat" in table
    assert cli.run(["decide", "rule.json", "new.csv", "-o", "again.csv", "-q"]) == 0
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_batches_are_those_of_the_library(files, capsys):
    arguments = ["--risk", "0.1", "--calibration", "labeled.csv", "--batch"]
    assert cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments]) == 0
    assert "On average over random draws of the batch" in capsys.readouterr().err
    proba, labels = files["labeled"]
    model = calibrant.load("model.json")
    chosen = select_answers(labels, proba, files["new"][0], 0.1, estimator=model)
    np.testing.assert_array_equal(_table()["answered"] == "true", chosen.answered)


def test_sets_are_those_of_the_library(files):
    arguments = ["--sets", "0.8", "--calibration", "labeled.csv", "-q"]
    assert cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments]) == 0
    model = PredictionSets(calibrant.load("model.json"), coverage=0.8).fit(*files["labeled"])
    table, sets = _table(), model.predict_set(files["new"][0])
    found = np.column_stack([table[f"in_{name}"] == "true" for name in NAMES])
    np.testing.assert_array_equal(found, sets)
    np.testing.assert_array_equal(table["set_size"].astype(int), sets.sum(axis=1))


def test_costs_of_a_file_decide(files, capsys):
    Path("costs.csv").write_text("true,keep,drop\nowl,0,1\ncat,5,0\ndog,2,0\n")
    arguments = ["--cost", "costs.csv", "--abstain", "0.4", "--json"]
    assert cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == 500
    proba = calibrant.load("model.json").predict_proba(files["new"][0])
    rule = DecisionRule([[5, 0], [2, 0], [0, 1]], 0.4, actions=["keep", "drop"])
    np.testing.assert_array_equal(_table()["decision"], rule.decide(proba))


def test_a_saved_decision_by_costs_calibrates_the_scores(files):
    Path("costs.csv").write_text("true,keep,drop\nowl,0,1\ncat,5,0\ndog,2,0\n")
    arguments = ["--cost", "costs.csv", "--abstain", "0.4", "--save", "rule.json", "-q"]
    assert cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments]) == 0
    assert cli.run(["decide", "rule.json", "new.csv", "-o", "again.csv", "-q"]) == 0
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_a_saved_rule_decides_on_probabilities(files):
    rule = DecisionRule(1 - np.eye(3), 0.3, classes=NAMES)
    calibrant.save(rule, "rule.json")
    assert cli.run(["decide", "rule.json", "new.csv", "-o", "out.csv", "-q"]) == 0
    np.testing.assert_array_equal(_table()["decision"], rule.decide(files["new"][0]))


def test_costs_are_read_with_and_without_names(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("0,1\n5,0\n")
    cost, actions = read_costs(path, np.array([0, 1]))
    assert (cost.tolist(), actions) == ([[0, 1], [5, 0]], None)
    path.write_text(",a,b\n1,5,0\n0,0,1\n")
    cost, actions = read_costs(path, np.array([0, 1]))
    assert (cost.tolist(), actions) == ([[0, 1], [5, 0]], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a table of costs"),
        ("0,1\n5\n", "must be a table of costs"),
        (",a,b\n7,5,0\n0,0,1\n", "but the classes are"),
        (",a,b\n1,5,x\n0,0,1\n", "costs must be numbers"),
    ],
)
def test_bad_costs_are_rejected(tmp_path, text, message):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_costs(path, np.array([0, 1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.json"], "exactly one of --cost FILE, --risk SHARE and --sets SHARE, got none"),
        (["model.json", "--risk", "0.1", "--sets", "0.9"], "got --risk and --sets"),
        (["model.json", "--risk", "0.1"], "Pass --calibration FILE"),
        (["model.json", "--sets", "0", "--calibration", "labeled.csv"], "coverage must be a num"),
        (
            ["model.json", "--risk", "0.1", "--calibration", "labeled.csv", "--abstain", "1"],
            "--abstain requires --cost. Remove --abstain",
        ),
        (
            ["model.json", "--cost", "costs.csv", "--calibration", "labeled.csv"],
            "--calibration and --batch have no effect on decisions by costs",
        ),
        (["model.json", "--cost", "none.csv"], "File none.csv does not exist."),
        (["none.json", "--cost", "costs.csv"], "File none.json does not exist."),
        (
            ["model.json", "--risk", "0.1", "--calibration", "new.csv", "--batch"],
            "new.csv is also the file of labeled rows",
        ),
        (["model.json", "--risk", "0.1", "--calibration", "fit.csv"], "was fitted on fit.csv"),
        (["model.json", "--risk", "2", "--calibration", "labeled.csv"], "risk must be a number"),
        (["model.json", "--sets", "0.9", "--batch", "--calibration", "labeled.csv"], "--risk"),
        (
            ["rule.json", "--risk", "0.1"],
            "is a saved DecisionRule, which already contains a decision rule",
        ),
    ],
)
def test_bad_arguments_are_rejected(files, capsys, arguments, message):
    calibrant.save(DecisionRule(1 - np.eye(3), classes=NAMES), "rule.json")
    Path("costs.csv").write_text("0,1\n5,0\n2,0\n")
    model, *options = arguments
    assert cli.run(["decide", model, "new.csv", "-o", "out.csv", *options]) == cli.BAD_INPUT
    assert message in capsys.readouterr().err
    assert not Path("out.csv").exists()


def test_other_rows_of_the_fit_are_detected(files, capsys):
    lines = Path("fit.csv").read_text().splitlines()
    Path("part.csv").write_text("\n".join(lines[:300]) + "\n")
    arguments = ["--risk", "0.1", "--calibration", "part.csv"]
    code = cli.run(["decide", "model.json", "new.csv", "-o", "out.csv", *arguments])
    assert code == cli.BAD_INPUT
    assert "was fitted on rows that are also in X" in capsys.readouterr().err


def test_other_commands_reject_a_saved_decision(files, capsys):
    calibrant.save(DecisionRule(1 - np.eye(3), classes=NAMES), "rule.json")
    assert cli.run(["apply", "rule.json", "new.csv", "-o", "out.csv"]) == cli.BAD_INPUT
    assert "Use calibrant decide" in capsys.readouterr().err


def test_arrays_are_not_written(files, capsys):
    calibrant.save(DecisionRule(1 - np.eye(3), classes=NAMES), "rule.json")
    assert cli.run(["decide", "rule.json", "new.csv", "-o", "out.npy"]) == cli.BAD_INPUT
    assert "must be a table" in capsys.readouterr().err
