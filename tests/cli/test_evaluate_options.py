"""Groups, intervals and saved calibrators at the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import calibrant
from calibrant.cli import run

NAMES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def data(outcome_files):
    """The files, and a model that was fitted on the first."""
    fit = ["fit", "validation.csv", "--label", "outcome", "-m", "temperature", "-o", "m.json"]
    assert run([*fit, "-q"]) == 0
    return outcome_files


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
    assert (
        "has no column 'region'. Pass one of prob_cat, prob_dog, prob_owl, outcome, site to --by."
        in capsys.readouterr().err
    )


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


def test_compare_by_a_column_evaluates_each_group(data, capsys):
    proba, labels, sites = data["test"]
    shown = result(
        capsys, "compare", *EVALUATE[1:], "-m", "temperature", "--by", "site", "--cv", "3"
    )
    north = calibrant.evaluate(labels[sites == "north"], proba[sites == "north"], classes=NAMES)
    first = shown["groups"][0]
    assert (first["group"], first["method"]) == ("north", "uncalibrated")
    assert first["conf_ece"] == pytest.approx(north.conf_ece)


REPORT = ("report", "test.csv", "--label", "outcome")


def test_report_of_a_saved_model_on_a_test_file(data, capsys):
    proba, labels, _ = data["test"]
    shown = result(capsys, *REPORT, "--model", "m.json", "--by", "site", "-o", "r.json")
    after = calibrant.evaluate(labels, calibrant.load("m.json").predict_proba(proba), classes=NAMES)
    loss = next(row for row in shown["metrics"] if row["name"] == "log_loss")
    assert loss["after"]["value"] == pytest.approx(after.log_loss)
    assert "heuristic" not in {test["guarantee_after"] for test in shown["tests"]}
    assert "model = load('m.json')" in shown["code"]
    assert "--model m.json" in shown["code"]


def test_a_report_of_a_model_fits_nothing(data, capsys, calls):
    calls.watch(calibrant.TemperatureScaling, "_fit")
    assert run([*REPORT, "--model", "m.json", "-o", "r.html", "-q"]) == 0
    assert calls["_fit"] == 0
    assert run([*REPORT, "--model", "m.json", "--fit-on", "validation.csv", "-o", "r.html"]) == 2
    assert "--fit-on" in capsys.readouterr().err


def test_a_report_is_not_written_over_its_model(data, capsys):
    assert run([*REPORT, "--model", "m.json", "-o", "m.json"]) == 2
    assert "m.json" in capsys.readouterr().err
