"""Reports of the command line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import calibrant
from calibrant.cli import run
from calibrant.cli._files import digest_file
from calibrant.cli._reports import demo_report

NAMES = np.array(["cat", "dog", "owl"])


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--cv", "3", "--seed", "2", "--chunked"),
        ("--fit-on", "validation.csv"),
        ("--weight", "weight"),
        ("--fit-on", "validation.csv", "--weight", "weight"),
        ("--model", "m.json"),
        ("--by", "site", "--min-rows", "10"),
    ],
    ids=" ".join,
)
def test_the_code_reads_the_files_and_repeats_the_figures(outcome_files, capsys, options):
    for name in ("validation", "test"):
        path = Path(f"{name}.csv")
        head, *lines = path.read_text().splitlines()
        weighted = [f"{line},{1 + k % 3}" for k, line in enumerate(lines)]
        path.write_text("\n".join([f"{head},weight", *weighted]) + "\n")
    data = ["test.csv", "--label", "outcome"]
    assert run(["fit", *data, "-m", "temperature", "-o", "m.json", "-q"]) == 0
    method = () if "--model" in options else ("-m", "vector")
    assert run(["report", *data, *method, *options, "-o", "r.json", "-q"]) == 0
    shown = json.loads(Path("r.json").read_text())
    scope = {"print": lambda *values: None}
    exec(shown["code"], scope)
    repeated = json.loads(json.dumps([asdict(row) for row in scope["report"].metrics]))
    assert repeated == shown["metrics"]
    assert ("--by" in options) == (scope["report"].groups is not None)
    capsys.readouterr()


def test_the_code_of_the_demo_repeats_its_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    report = demo_report(0, Path("demo.json"))
    loading, _, _ = report.code.partition("report = summarize")
    scope = {}
    exec(loading, scope)
    model = scope["calibrator"].fit(scope["fit_scores"], scope["fit_labels"])
    after = calibrant.evaluate(scope["labels"], model.predict_proba(scope["scores"]))
    row = next(row for row in report.metrics if row.name == "log_loss")
    assert row.after.value == pytest.approx(after.log_loss, rel=1e-9)


def test_a_report_about_a_file_whose_calibrator_was_fitted_on_another(outcome_files, capsys):
    arguments = ["report", "test.csv", "--label", "outcome", "-m", "temperature", "-o", "r.json"]
    options = ["--fit-on", "validation.csv", "--by", "site", "-q", "--json"]
    assert run([*arguments, *options]) == 0
    shown = json.loads(capsys.readouterr().out)
    proba, labels, _ = outcome_files["test"]
    scores, known, _ = outcome_files["validation"]
    model = calibrant.TemperatureScaling(classes=NAMES).fit(scores, known)
    after = model.predict_proba(proba)
    row = next(row for row in shown["metrics"] if "log" in row["title"].lower())
    expected = calibrant.evaluate(labels, after, classes=NAMES).log_loss
    assert row["after"]["value"] == pytest.approx(expected, abs=1e-6)
    assert "--fit-on validation.csv --by site" in shown["code"]


@pytest.mark.usefixtures("outcome_files")
def test_a_report_identifies_its_data(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    data = ["test.csv", "--label", "outcome", "-m", "temperature", "-q"]
    assert run(["report", *data, "-o", "r.json"]) == 0
    shown = json.loads(Path("r.json").read_text())
    assert shown["data_sha256"] == hashlib.sha256(Path("test.csv").read_bytes()).hexdigest()
    assert (shown["created"], shown["method"]) == ("1970-01-02", "temperature")


def test_a_pipe_has_no_digest():
    assert digest_file(Path("/dev/null")) == ""
