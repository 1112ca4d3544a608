"""Files of the best few classes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from calibrant import TemperatureScaling, evaluate, load
from calibrant._kernels.simplex import log_softmax
from calibrant.cli import run
from calibrant.io import open_scores
from top_rows import best, log_rest

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pa_parquet = pytest.importorskip("pyarrow.parquet")

NAMES = np.array(["ape", "bat", "cow", "dog", "eel", "fox"])


@pytest.fixture
def small(rng):
    """Six classes, of which the true one was drawn."""
    log_proba = log_softmax(2 * rng.normal(size=(400, 6)))
    draws = log_proba + rng.gumbel(size=log_proba.shape)
    return log_proba, draws.argmax(axis=1)


@pytest.fixture
def top_csv(small, tmp_path):
    log_proba, y = small
    top, path = best(log_proba, 3), tmp_path / "top.csv"
    names = ",".join(f"top{r}_label,top{r}_logprob" for r in (1, 2, 3))
    rows = [
        ",".join([str(y[i]), *(f"{c},{top.log_proba[i, r]:.17g}" for r, c in enumerate(codes))])
        for i, codes in enumerate(top.labels)
    ]
    path.write_text("\n".join([f"y,{names}", *rows]) + "\n")
    return path, y, top


def fit_model(path, *options):
    model = path.with_name("model.json")
    assert run(["fit", str(path), *options, "-m", "temperature", "-o", str(model), "-q"]) == 0
    return model


def rejected(capsys, *arguments):
    assert run([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_the_best_classes_are_evaluated(top_csv, capsys):
    path, y, top = top_csv
    assert run(["evaluate", str(path), "--n-classes", "6", "--json", "-q"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == pytest.approx(evaluate(y, top).to_dict(), abs=1e-12)
    assert "--n-classes" in rejected(capsys, "evaluate", path, "-q")


def test_a_temperature_is_fitted_to_the_best_classes(top_csv, capsys):
    path, y, top = top_csv
    model = fit_model(path, "--n-classes", "6")
    expected = TemperatureScaling().fit(top, y).temperature_
    assert load(model).temperature_ == pytest.approx(expected, rel=1e-9)
    shown = capsys.readouterr().out
    assert "the values after calibration are too optimistic." in shown
    assert "calibrant compare" not in shown


@pytest.mark.parametrize("name", ["auto", "histogram", "vector"])
def test_what_needs_all_classes_is_rejected_with_a_method_that_does_not(name, top_csv, capsys):
    path, *_ = top_csv
    arguments = ["fit", path, "--n-classes", "6", "-o", path.with_name("m.json"), "-m", name]
    assert f"{name} needs the scores of all classes" in rejected(capsys, *arguments)
    assert "Pass -m temperature." in rejected(capsys, *arguments)


@pytest.mark.parametrize("command", ["compare", "report", "monitor start"])
def test_commands_that_need_all_classes_name_those_that_do_not(command, top_csv, capsys):
    path, *_ = top_csv
    options = [] if command == "compare" else ["-o", path.with_name("out.html")]
    error = rejected(capsys, *command.split(), path, *options)
    assert "needs the scores of all classes" in error
    assert "Use calibrant evaluate, or calibrant fit -m temperature" in error
    assert "No such option" in rejected(capsys, *command.split(), path, "--n-classes", 6, *options)


def test_a_model_of_the_best_classes_is_applied_and_keeps_the_layout(top_csv, capsys):
    path, y, top = top_csv
    model, out = fit_model(path, "--n-classes", "6"), path.with_name("out.csv")
    assert run(["apply", str(model), str(path), "-o", str(out), "-q"]) == 0
    file = open_scores(out, n_classes=6)
    expected = load(model).predict_proba(top)
    np.testing.assert_array_equal(file.scores.labels, expected.labels)
    np.testing.assert_allclose(file.scores.log_proba, expected.log_proba, rtol=1e-12)
    np.testing.assert_array_equal(file.labels, y)
    names = out.read_text().splitlines()[0].split(",")
    assert names[:3] == ["y", "raw_top1_label", "raw_top1_logprob"]
    assert names[-2:] == ["top3_label", "top3_logprob"]
    again = rejected(capsys, "apply", model, out, "-o", path.with_name("twice.csv"))
    assert "already calibrated. Apply the model to the original file." in again


def test_names_weights_and_the_tail_mass_are_read_and_written(small, tmp_path, capsys):
    log_proba, y = small
    rest = log_rest(log_proba, 2)
    top = best(log_proba, 2, rest=rest)
    columns = {f"top{k + 1}_label": NAMES[top.labels[:, k]] for k in (0, 1)}
    columns |= {f"top{k + 1}_logprob": top.log_proba[:, k] for k in (0, 1)}
    path, weight = tmp_path / "top.parquet", np.arange(400) % 3
    table = pa.table({**columns, "rest_logprob": rest, "label": NAMES[y], "w": weight})
    pa_parquet.write_table(table, path)
    model = fit_model(path, "--classes", ",".join(NAMES), "--weight", "w")
    expected = TemperatureScaling().fit(top, y, sample_weight=weight)
    assert load(model).temperature_ == pytest.approx(expected.temperature_, rel=1e-9)
    out = tmp_path / "out.parquet"
    assert run(["apply", str(model), str(path), "-o", str(out), "-q"]) == 0
    written, after = pa_parquet.read_table(out), expected.predict_proba(top)
    np.testing.assert_allclose(written["rest_logprob"], after.log_rest, rtol=1e-8)
    np.testing.assert_allclose(written["top2_logprob"], after.log_proba[:, 1], rtol=1e-8)
    assert written["top1_label"].to_pylist() == NAMES[top.labels[:, 0]].tolist()


def test_top_scores_are_not_written_as_arrays(top_csv, capsys):
    path, *_ = top_csv
    model = fit_model(path, "--n-classes", "6")
    error = rejected(capsys, "apply", model, path, "-o", path.with_name("out.npz"))
    assert "Write a .csv or .parquet file." in error


def test_a_model_of_the_best_classes_asks_for_columns_of_whole_rows_by_an_option(top_csv, capsys):
    path, *_ = top_csv
    model, other = fit_model(path, "--n-classes", "6"), path.with_name("other.csv")
    other.write_text(",".join("abcdef") + "\n" + ",".join(["0.5"] * 2 + ["0"] * 4) + "\n")
    error = rejected(capsys, "apply", model, other, "-o", path.with_name("out.csv"))
    assert "Pass --log-proba a,b,... with the columns" in error
