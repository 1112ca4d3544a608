"""Files of the best few classes."""

from __future__ import annotations

import json

import pytest

from calibrant import TemperatureScaling, evaluate, load
from calibrant._simplex import log_softmax
from top_rows import best

pytest.importorskip("typer")

from calibrant.cli import run  # needs typer


@pytest.fixture
def small(rng):
    """Six classes, of which the truth was drawn."""
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


def test_the_command_line_reads_columns_of_the_best_classes(top_csv, capsys):
    path, y, top = top_csv
    assert run(["evaluate", str(path), "--n-classes", "6", "--json", "-q"]) == 0
    shown = json.loads(capsys.readouterr().out)
    expected = evaluate(y, top).to_dict()
    assert shown == pytest.approx(expected, abs=1e-12)


def test_the_command_line_fits_a_temperature_to_the_best_classes(top_csv, tmp_path, capsys):
    path, y, top = top_csv
    model = tmp_path / "model.json"
    arguments = [str(path), "--n-classes", "6", "-o", str(model), "-q"]
    assert run(["fit", *arguments, "-m", "temperature", "--json"]) == 0
    assert load(model).temperature_ == pytest.approx(
        TemperatureScaling().fit(top, y).temperature_, rel=1e-9
    )
    assert run(["fit", *arguments, "-m", "auto"]) == 2
    assert "-m temperature" in capsys.readouterr().err
    assert run(["evaluate", str(path), "-q"]) == 2
    assert "--n-classes" in capsys.readouterr().err
