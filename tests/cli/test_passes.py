"""Files that are fitted pass by pass: the fit of all rows, and nothing of them kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import calibrant
from calibrant._crossfit.members import set_up
from calibrant.cli import run
from calibrant.cli._passes import (
    is_compared_by_passes,
    is_passed,
    is_reported_by_passes,
    takes_parts,
)
from calibrant.io import open_scores
from calibrant.io._roles import FileOptions
from calibrant.selection import method
from calibrant.selection._methods import METHODS

NAMES = np.array(["pear", "apple", "fig"])


@pytest.fixture
def file(rng, tmp_path, monkeypatch):
    """600 rows in blocks of about 60, of which the scores are too many to be kept."""
    monkeypatch.setattr("calibrant.cli._passes.KEEP_BYTES", 1000)
    monkeypatch.setattr("calibrant.io._sources.FILE_ELEMENTS", 180)
    logits = 2 * rng.normal(size=(600, 3))
    labels = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    columns = {f"z_{name}": logits[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "label": NAMES[labels], "w": rng.integers(1, 4, 600)})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def fitted(file, capsys, *options):
    out = file.with_name("model.json")
    assert run(["fit", str(file), "-o", str(out), "--json", *options]) == 0
    return calibrant.load(out), json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["temperature", "structured-vector", "vector"])
def test_a_fit_pass_by_pass_is_the_fit_of_all_rows(name, file, capsys, monkeypatch):
    assert is_passed(FileOptions(file), name, None)
    model, said = fitted(file, capsys, "-m", name, "--weight", "w")
    monkeypatch.setattr("calibrant.cli._passes.KEEP_BYTES", 2**28)
    whole, all_said = fitted(file, capsys, "-m", name, "--weight", "w")
    scores = np.random.default_rng(0).normal(size=(20, 3))
    assert np.abs(model.predict_proba(scores) - whole.predict_proba(scores)).max() < 1e-8
    assert model.classes_.tolist() == NAMES.tolist()
    for when in ("before", "after"):
        assert said[when] == pytest.approx(all_said[when], rel=1e-7)


ORDERED = ["platt", "beta", "isotonic", "histogram", "bbq", "spline", "venn-abers"]


@pytest.mark.parametrize(
    ("name", "notion"),
    [*((name, None) for name in ORDERED), ("histogram", "top-label"), ("isotonic", "confidence")],
)
def test_a_map_of_ordered_scores_is_fitted_pass_by_pass_and_its_cells_are_told(
    name, notion, file, capsys, monkeypatch
):
    options = ["-m", name, *(["--notion", notion] if notion else [])]
    assert is_passed(FileOptions(file), name, notion)
    model, said = fitted(file, capsys, *options)
    assert "8,192 cells of scores a claim" in said["passes"]
    assert "differs by less than 0.00338 s (1 - s), at most 0.000845" in said["passes"]
    opened, scores = open_scores(file), np.random.default_rng(0).normal(size=(200, 3))
    own = set_up(method(name, notion=notion), "logits", 3, model.classes_)
    own.fit(opened.scores, opened.labels)
    assert np.abs(model.predict_proba(scores) - own.predict_proba(scores)).max() < 1e-9
    monkeypatch.setattr("calibrant.cli._passes.KEEP_BYTES", 2**28)
    assert "passes" not in fitted(file, capsys, *options)[1]


def test_a_stack_is_fitted_pass_by_pass_as_it_is_to_blocks(file, capsys):
    assert is_passed(FileOptions(file), "auto", None)
    model, said = fitted(file, capsys, "-m", "auto")
    opened = open_scores(file)
    own = calibrant.AutoCalibration(inputs="logits", classes=model.classes_)
    own.fit(opened.scores, opened.labels)
    assert model.names_ == own.names_
    assert model.weights_ == pytest.approx(own.weights_, abs=1e-9)
    assert "no isotonic maps" in said["passes"]
    assert "not corrected" in said["passes"]


def test_what_needs_all_rows_is_not_fitted_pass_by_pass(file):
    assert not is_passed(FileOptions(file), "gp", None)
    assert not is_passed(FileOptions(file), "canonical", None)


def test_the_calibrators_say_themselves_which_of_them_take_parts():
    refused = {name for name in METHODS if not takes_parts(method(name))}
    assert refused == {"gp", "canonical"}


def test_what_is_a_sum_has_no_remark_about_passes(file, capsys):
    _, said = fitted(file, capsys, "-m", "temperature")
    assert "passes" not in said


def test_nothing_is_written_beside_the_model(file, capsys, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a temporary file was made")

    monkeypatch.setattr("calibrant.cli._spool.Spool.add", refuse)
    for name in ("temperature", "auto", "histogram"):
        fitted(file, capsys, "-m", name)


def test_a_text_file_is_large_by_its_size(file, capsys):
    table = pa.parquet.read_table(file)
    pa.csv.write_csv(table, file.with_suffix(".csv"))
    model, _ = fitted(file.with_suffix(".csv"), capsys, "-m", "temperature")
    whole, _ = fitted(file, capsys, "-m", "temperature")
    assert model.temperature_ == pytest.approx(whole.temperature_, rel=1e-9)


def test_a_bad_row_is_named_and_what_is_odd_is_said_once(file, capsys):
    table = pa.parquet.read_table(file)
    scores = table.column("z_fig").to_numpy().copy()
    scores[432] = np.nan
    pa.parquet.write_table(table.set_column(2, "z_fig", pa.array(scores)), file)
    out = file.with_name("model.json")
    assert run(["fit", str(file), "-m", "temperature", "-o", str(out)]) == 2
    assert "row 432" in capsys.readouterr().err
    assert not out.exists()


def test_rounded_rows_are_repaired_with_one_remark(file, capsys, rng):
    proba = rng.dirichlet(np.ones(3), size=600).round(3)
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "label": NAMES[rng.integers(3, size=600)]})
    pa.parquet.write_table(table, file)
    out = file.with_name("model.json")
    run(["fit", str(file), "-m", "temperature", "-o", str(out)])
    assert capsys.readouterr().err.count("--renormalize says so") == 1


def reported(file, capsys, *options):
    out = file.with_name("report.html")
    assert run(["report", str(file), "-o", str(out), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out), out.read_text(encoding="utf-8")


def test_a_report_pass_by_pass_has_the_numbers_of_all_rows(file, capsys, monkeypatch):
    passed, page = reported(file, capsys, "-m", "temperature")
    monkeypatch.setattr("calibrant.cli._passes.KEEP_BYTES", 2**28)
    whole, _ = reported(file, capsys, "-m", "temperature")
    assert passed["n_samples"] == whole["n_samples"] == 600
    assert passed["classes"] == whole["classes"]
    assert "read in passes and not kept" in page
    for own, other in zip(passed["metrics"], whole["metrics"], strict=True):
        assert own["before"]["value"] == pytest.approx(other["before"]["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "said"), [("isotonic", "cells of scores a claim"), ("auto", "no isotonic maps")]
)
def test_a_report_pass_by_pass_says_what_its_map_was_made_of(name, said, file, capsys):
    assert is_reported_by_passes(FileOptions(file), name, None)
    _, page = reported(file, capsys, "-m", name)
    assert said in page


def test_a_report_needs_all_rows_where_they_have_weights_or_the_method_needs_them(file):
    assert not is_reported_by_passes(FileOptions(file, weight="w"), "temperature", None)
    assert not is_reported_by_passes(FileOptions(file), "canonical", None)


def compared(file, capsys, *options):
    assert run(["compare", str(file), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_comparison_goes_pass_by_pass_where_all_methods_can(file, capsys, monkeypatch):
    assert is_compared_by_passes(FileOptions(file), ["temperature", "isotonic", "auto"])
    assert not is_compared_by_passes(FileOptions(file), ["temperature", "gp"])

    def refuse(*_, **__):
        raise AssertionError("a temporary file was made")

    monkeypatch.setattr("calibrant.cli._spool.Spool.add", refuse)
    found = compared(file, capsys, "-m", "temperature", "-m", "isotonic", "--weight", "w")
    opened = open_scores(file, weight="w")
    own = calibrant.compare(
        opened.labels,
        opened.scores,
        inputs="logits",
        methods=["temperature", "isotonic"],
        sample_weight=opened.weight,
    )
    assert found == json.loads(json.dumps(own.to_dict()))
    assert "cells of scores" in found["notes"][0]
