"""Reports of the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import calibrant
from calibrant.cli import run

NAMES = np.array(["cat", "dog", "owl"])


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
