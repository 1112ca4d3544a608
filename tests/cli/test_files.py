"""How a file is read: loaded, or in blocks, which gives the fit of all rows and keeps nothing."""

from __future__ import annotations

import json
from pathlib import Path

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
from calibrant.io import open_scores
from calibrant.selection import method
from calibrant.selection.methods import METHODS

NAMES = np.array(["pear", "apple", "fig"])


@pytest.fixture
def file(rng, tmp_path, monkeypatch):
    """600 rows in blocks of about 60, of which the scores are too many to be kept."""
    monkeypatch.setattr("calibrant.cli._files.LOADED_BYTES", 1000)
    monkeypatch.setattr("calibrant.io._readers.WORK_MEMORY", 360)
    logits = 2 * rng.normal(size=(600, 3))
    labels = (0.6 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    columns = {f"z_{name}": logits[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "label": NAMES[labels], "w": rng.integers(1, 4, 600)})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.fixture
def nothing_is_loaded(monkeypatch):
    def reject(*_, **__):
        raise AssertionError("rows were loaded")

    monkeypatch.setattr("calibrant.io._score_file.load_blocks", reject)


def fitted(file, capsys, *options):
    out = file.with_name("model.json")
    assert run(["fit", str(file), "-o", str(out), "--json", *options]) == 0
    return calibrant.load(out), json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["temperature", "structured-vector", "vector"])
def test_a_fit_in_blocks_is_the_fit_of_all_rows(name, file, capsys):
    model, result = fitted(file, capsys, "-m", name, "--weight", "w")
    whole, expected = fitted(file, capsys, "-m", name, "--weight", "w", "--in-memory")
    assert (result["chunked"], expected["chunked"]) == (True, False)
    scores = np.random.default_rng(0).normal(size=(20, 3))
    assert np.abs(model.predict_proba(scores) - whole.predict_proba(scores)).max() < 1e-8
    assert model.classes_.tolist() == NAMES.tolist()
    for when in ("before", "after"):
        assert result[when] == pytest.approx(expected[when], rel=1e-7)
    assert "note" not in result


ORDERED = ["platt", "beta", "isotonic", "histogram", "bbq", "spline", "venn-abers"]


@pytest.mark.parametrize(
    ("name", "notion"),
    [*((name, None) for name in ORDERED), ("histogram", "top-label"), ("isotonic", "confidence")],
)
def test_a_calibrator_of_ordered_scores_is_fitted_in_blocks_with_a_note_about_cells(
    name, notion, file, capsys
):
    options = ["-m", name, *(["--notion", notion] if notion else [])]
    model, result = fitted(file, capsys, *options)
    opened, scores = open_scores(file), np.random.default_rng(0).normal(size=(200, 3))
    own = set_up(method(name, notion=notion), "logits", 3, model.classes_)
    own.fit(opened.scores, opened.labels)
    assert np.abs(model.predict_proba(scores) - own.predict_proba(scores)).max() < 1e-9
    assert result["note"] == own._chunked_note()
    assert "cells of scores" in result["note"]
    assert "note" not in fitted(file, capsys, *options, "--in-memory")[1]


def test_a_stack_is_fitted_in_blocks_as_in_python(file, capsys):
    model, result = fitted(file, capsys, "-m", "auto")
    opened = open_scores(file)
    own = calibrant.AutoCalibration(inputs="logits", classes=model.classes_)
    own.fit(opened.scores, opened.labels)
    assert model.names_ == own.names_
    assert model.weights_ == pytest.approx(own.weights_, abs=1e-9)
    assert result.get("note", "") == own._chunked_note()


@pytest.mark.parametrize("name", ["gp", "canonical"])
def test_what_needs_all_rows_loads_them_or_is_rejected(name, file, capsys):
    assert fitted(file, capsys, "-m", name)[1]["chunked"] is False
    arguments = ["fit", str(file), "-m", name, "-o", str(file.with_name("m.json"))]
    assert run([*arguments, "--chunked"]) == 2
    assert "needs all rows in memory, so it cannot be fitted in blocks. Pass --in-memory." in (
        capsys.readouterr().err
    )


def test_the_calibrators_say_themselves_which_of_them_need_all_rows():
    assert {name for name in METHODS if method(name).needs_rows} == {"gp", "canonical"}


def test_how_a_file_was_read_is_said_and_can_be_chosen(file, capsys, monkeypatch):
    arguments = ["fit", str(file), "-m", "isotonic", "-o", str(file.with_name("m.json")), "-q"]
    run(arguments)
    in_blocks = capsys.readouterr().out
    assert "The file was read in blocks. Pass --in-memory to fit on all rows at once." in in_blocks
    assert "cells of scores" in in_blocks
    run([*arguments, "--in-memory"])
    loaded = capsys.readouterr().out
    assert "read in blocks" not in loaded
    monkeypatch.setattr("calibrant.cli._files.LOADED_BYTES", 2**28)
    run(arguments)
    assert capsys.readouterr().out == loaded
    run([*arguments, "--chunked"])
    assert capsys.readouterr().out == in_blocks


@pytest.mark.usefixtures("nothing_is_loaded")
def test_nothing_is_loaded_if_a_file_is_read_in_blocks(file, capsys):
    for name in ("temperature", "auto", "histogram"):
        fitted(file, capsys, "-m", name)


def test_blocks_without_weight_do_not_matter(file, capsys):
    table = pa.parquet.read_table(file)
    weight = np.where(np.arange(600) < 200, 0, 1)
    path = file.with_name("weighted.parquet")
    pa.parquet.write_table(table.set_column(4, "w", pa.array(weight)), path)
    for options in ([], ["--in-memory"]):
        _, result = fitted(path, capsys, "-m", "temperature", "--weight", "w", *options)
        assert result["before"]["n_samples"] == 400
    assert run(["evaluate", str(path), "--weight", "w", "--json"]) == 0
    evaluation = json.loads(capsys.readouterr().out)
    assert evaluation == pytest.approx(result["before"], rel=1e-12)


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
    assert "Row 432" in capsys.readouterr().err
    assert not out.exists()


def test_rounded_rows_are_repaired_with_one_remark(file, capsys, rng):
    proba = rng.dirichlet(np.ones(3), size=600).round(3)
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "label": NAMES[rng.integers(3, size=600)]})
    pa.parquet.write_table(table, file)
    out = file.with_name("model.json")
    run(["fit", str(file), "-m", "temperature", "-o", str(out)])
    assert capsys.readouterr().err.count("To avoid this warning, pass --renormalize.") == 1


def reported(file, capsys, *options):
    out = file.with_name("report.html")
    assert run(["report", str(file), "-o", str(out), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out), out.read_text(encoding="utf-8")


def test_a_report_in_blocks_has_the_numbers_of_all_rows(file, capsys):
    passed, page = reported(file, capsys, "-m", "temperature")
    whole, _ = reported(file, capsys, "-m", "temperature", "--in-memory")
    assert "--in-memory" in whole["code"]
    assert "--in-memory" not in passed["code"]
    assert passed["n_samples"] == whole["n_samples"] == 600
    assert passed["classes"] == whole["classes"]
    assert "read in several passes and not kept" in page
    for own, other in zip(passed["metrics"], whole["metrics"], strict=True):
        assert own["before"]["value"] == pytest.approx(other["before"]["value"], abs=1e-9)


@pytest.mark.usefixtures("nothing_is_loaded")
def test_a_report_in_blocks_says_how_its_calibrator_differs(file, capsys):
    _, page = reported(file, capsys, "-m", "isotonic")
    assert "cells of scores" in page


def test_a_report_loads_rows_that_have_weights_unless_told_otherwise(file, capsys):
    assert "read in passes" not in reported(file, capsys, "-m", "temperature", "--weight", "w")[1]


def compared(file, capsys, *options):
    assert run(["compare", str(file), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("nothing_is_loaded")
def test_a_comparison_reads_blocks_if_all_methods_can(file, capsys):
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


def test_a_comparison_loads_rows_if_one_method_needs_all_of_them(file, capsys):
    found = compared(file, capsys, "-m", "isotonic", "-m", "canonical", "--cv", "2")
    assert not any("cells of scores" in note for note in found.get("notes", []))
    assert run(["compare", str(file), "-m", "canonical", "--chunked"]) == 2
    assert "Pass --in-memory." in capsys.readouterr().err


def test_scores_with_a_decimal_comma_are_applied_to_text_files(outcome_files):
    data = ["--label", "outcome", "-m", "temperature", "-o", "m.json", "-q"]
    assert run(["fit", "validation.csv", *data]) == 0
    text = Path("test.csv").read_text()
    Path("comma.csv").write_text(text.replace(",", ";").replace(".", ","))
    options = ["--sep", ";", "--decimal", ","]
    assert run(["apply", "m.json", "test.csv", "-o", "a.csv", "-q"]) == 0
    assert run(["apply", "m.json", "comma.csv", *options, "-o", "b.csv", "-q"]) == 0
    first, second = (pyarrow.csv.read_csv(name)["p_cat"] for name in ("a.csv", "b.csv"))
    assert first.equals(second)
