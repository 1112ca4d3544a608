"""Groups on the command line: fit, apply, evaluate and report with group columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import calibrant
from calibrant.cli import run

SCORES = ["--proba", "prob_*"]
LABEL = ["--label", "outcome"]


@pytest.fixture
def model(outcome_files):
    """A saved calibrator with groups by site."""
    assert (
        run(["fit", "validation.csv", *SCORES, *LABEL, "--by", "site", "-o", "m.json", "-q"]) == 0
    )
    return calibrant.load("m.json")


def test_a_fit_by_groups_is_that_of_the_arrays(model, outcome_files):
    proba, labels, sites = outcome_files["validation"]
    assert model.by_ == ("site",)
    same = calibrant.GroupCalibration(classes=model.classes_).fit(proba, labels, by=sites)
    np.testing.assert_allclose(
        model.predict_proba(proba, by=sites), same.predict_proba(proba, by=sites), atol=1e-9
    )


def test_groups_are_applied_by_the_column_of_the_fit_or_another(model, outcome_files, capsys):
    proba, _, sites = outcome_files["test"]
    assert run(["apply", "m.json", "test.csv", *SCORES, "-o", "out.csv", "-q"]) == 0
    table = np.genfromtxt("out.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    found = np.column_stack([table[f"p_{name}"] for name in ("cat", "dog", "owl")])
    np.testing.assert_allclose(found, model.predict_proba(proba, by=sites), atol=1e-9)
    assert run(["apply", "m.json", "test.csv", *SCORES, "-o", "b.csv", "-q", "--by", "site"]) == 0
    assert run(["apply", "m.json", "test.csv", *SCORES, "-o", "b.csv", "--by", "place"]) == 2
    assert "has no column 'place'" in capsys.readouterr().err


def test_a_model_of_groups_is_evaluated_and_reported(model, outcome_files, capsys):
    capsys.readouterr()
    assert run(["evaluate", "test.csv", *SCORES, *LABEL, "--model", "m.json", "--json", "-q"]) == 0
    result = json.loads(capsys.readouterr().out)
    proba, labels, sites = outcome_files["test"]
    after = calibrant.evaluate(labels, model.predict_proba(proba, by=sites), classes=model.classes_)
    assert result["after"]["log_loss"] == pytest.approx(after.log_loss)
    assert (
        run(["report", "test.csv", *SCORES, *LABEL, "--model", "m.json", "-o", "r.json", "-q"]) == 0
    )


def test_small_groups_are_suppressed(outcome_files, capsys):
    capsys.readouterr()
    command = ["evaluate", "test.csv", *SCORES, *LABEL, "--by", "site", "--json", "-q"]
    assert run([*command, "--min-rows", "300"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["groups"] == []
    assert result["suppressed"] == ["north", "south"]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["difference"]["p_value"] > 0


def test_groups_are_dates_of_any_file_format(tmp_path, monkeypatch, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    days = np.array(["2024-01-01", "2024-02-01T05:30"], dtype="M8[us]")[np.arange(60) % 2]
    p, y = np.tile([0.2, 0.7, 0.6], 20), np.tile([0, 1, 1, 0], 15)
    pq.write_table(pa.table({"p_0": 1 - p, "p_1": p, "y": y, "day": days}), "x.parquet")
    rows = zip(p, y, np.datetime_as_string(days, "s"), strict=True)
    lines = [f"{1 - p:.1f},{p:.1f},{y},{day}" for p, y, day in rows]
    (tmp_path / "x.csv").write_text("\n".join(["p_0,p_1,y,day", *lines]))
    for name in ("x.csv", "x.parquet"):
        assert run(["evaluate", name, "--by", "day", "--json", "-q"]) == 0
        groups = json.loads(capsys.readouterr().out)["groups"]
        assert [group["group"] for group in groups] == ["2024-01-01", "2024-02-01T05:30:00"]


def test_the_calibrator_of_one_group_is_exported(model, outcome_files, capsys):
    proba, *_ = outcome_files["test"]
    export = ["export", "m.json", "--to", "python", "-o", "m.py"]
    assert run([*export, "--group", "site=north"]) == 0
    scope = {}
    exec(Path("m.py").read_text(), scope)
    expected = model.for_group("north").predict_proba(proba[:5])
    np.testing.assert_allclose([scope["calibrate"](row) for row in proba[:5].tolist()], expected)
    for group, message in (
        ([], "Pass --group site=VALUE."),
        (["--group", "place=north"], "Pass --group site=VALUE."),
        (["--group", "north"], "--group must have the form COLUMN=VALUE, got 'north'."),
        (["--group", "site=nroth"], "had no group 'nroth'. Pass one of north, south."),
    ):
        assert run([*export, *group]) == 2
        assert message in capsys.readouterr().err


def test_a_model_without_groups_has_no_group_to_export(outcome_files, capsys):
    assert run(["fit", "test.csv", *SCORES, *LABEL, "-m", "temperature", "-o", "t.json", "-q"]) == 0
    export = ["export", "t.json", "--to", "python", "-o", "t.py"]
    assert run([*export, "--group", "site=north"]) == 2
    assert "The model was fitted without --by. Remove --group." in capsys.readouterr().err
    assert run(export) == 0
