"""Groups, intervals, saved calibrators and files to fit on, at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import calibrant
from calibrant.cli import run

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def data(tmp_path, monkeypatch, rng):
    """Scores, labels and groups of two files, and a model that was fitted on the first."""
    monkeypatch.chdir(tmp_path)
    files = {}
    for name in ("validation", "test"):
        proba = rng.dirichlet(np.full(3, 0.5), 400)
        softer = proba**0.5 / (proba**0.5).sum(axis=1, keepdims=True)
        labels = NAMES[calibrant.datasets.draw_labels(softer, rng=rng)]
        sites = np.array(["north", "south"])[rng.integers(0, 2, 400)]
        rows = zip(proba.tolist(), labels, sites, strict=True)
        lines = [f"{','.join(map(repr, row))},{label},{site}" for row, label, site in rows]
        text = "\n".join(["prob_cat,prob_dog,prob_owl,outcome,site", *lines])
        Path(f"{name}.csv").write_text(text + "\n")
        files[name] = proba, labels, sites
    fit = ["fit", "validation.csv", "--label", "outcome", "-m", "temperature", "-o", "m.json"]
    assert run([*fit, "-q"]) == 0
    return files


def result(capsys, *arguments):
    capsys.readouterr()
    assert run([*arguments, "-q", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


EVALUATE = ("evaluate", "test.csv", "--label", "outcome")


def test_evaluate_by_a_column_is_the_evaluation_of_its_groups(data, capsys):
    proba, labels, sites = data["test"]
    shown = result(capsys, *EVALUATE, "--by", "site")
    expected = calibrant.evaluate(labels, proba, by={"site": sites}, classes=NAMES).to_dict()
    assert [group["n_samples"] for group in shown["groups"]] == [
        group["n_samples"] for group in expected["groups"]
    ]
    assert shown["overall"]["log_loss"] == pytest.approx(expected["overall"]["log_loss"])


def test_a_column_of_groups_that_is_not_there_is_an_error(data, capsys):
    assert run([*EVALUATE, "--by", "region"]) == 2
    assert "--by names the column 'region'" in capsys.readouterr().err


def test_evaluate_with_intervals(data, capsys):
    shown = result(capsys, *EVALUATE, "--intervals")
    assert set(shown["intervals"]) == {"accuracy", "log_loss", "brier_score", "debiased_error"}
    for name in ("accuracy", "log_loss", "brier_score"):
        interval = shown["intervals"][name]
        assert interval["low"] < shown[name] < interval["high"]
    capsys.readouterr()
    assert run([*EVALUATE, "--intervals", "-q"]) == 0
    assert "log-loss: " in capsys.readouterr().out


def test_evaluate_a_saved_model_on_a_test_file(data, capsys):
    proba, labels, _ = data["test"]
    shown = result(capsys, *EVALUATE, "--model", "m.json")
    after = calibrant.load("m.json").predict_proba(proba)
    expected = calibrant.evaluate(labels, after, classes=NAMES)
    assert shown["after"]["log_loss"] == pytest.approx(expected.log_loss)
    assert shown["after"]["log_loss"] < shown["before"]["log_loss"]
    assert run([*EVALUATE, "--model", "m.json", "--by", "site"]) == 2


def test_a_report_about_a_file_whose_calibrator_was_fitted_on_another(data, capsys):
    arguments = ["report", "test.csv", "--label", "outcome", "-m", "temperature", "-o", "r.json"]
    shown = result(capsys, *arguments, "--fit-on", "validation.csv", "--by", "site")
    proba, labels, _ = data["test"]
    after = calibrant.load("m.json").predict_proba(proba)
    row = next(row for row in shown["metrics"] if "log" in row["title"].lower())
    expected = calibrant.evaluate(labels, after, classes=NAMES).log_loss
    assert row["after"]["value"] == pytest.approx(expected, abs=1e-6)
    assert "--fit-on validation.csv --by site" in shown["code"]


def test_the_help_of_export_lists_each_option_once(capsys):
    assert run(["export", "-h"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    options = [word.rstrip(",") for line in lines for word in line[:2] if word.startswith("--")]
    assert len(set(options)) == len(options)
    assert "--score-output" in options
