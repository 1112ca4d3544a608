"""Options of the commands: stated once, grouped, and given to typer one by one."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from calibrant.cli._app import app
from calibrant.cli._options import (
    FileArguments,
    Printing,
    TopFileArguments,
    WeightedFileArguments,
    flatten,
)
from calibrant.io._roles import FileOptions


def command(data: WeightedFileArguments, printing: Printing, seed: int = 3) -> None:
    """A command."""
    raise ValueError((data, printing, seed))


def test_a_group_becomes_an_option_for_each_of_its_fields():
    parameters = inspect.signature(flatten(command)).parameters
    own = [entry.name for group in (WeightedFileArguments, Printing) for entry in fields(group)]
    assert list(parameters) == [*own, "seed"]
    assert parameters["file"].default is inspect.Parameter.empty
    assert parameters["seed"].default == 3


def test_values_come_back_as_groups():
    given = {entry.name: None for entry in fields(WeightedFileArguments)} | {"file": Path("x.csv")}
    with pytest.raises(ValueError, match=r"x\.csv") as caught:
        flatten(command)(**given, as_json=True, quiet=False, seed=5)
    data, printing, seed = caught.value.args[0]
    assert data == WeightedFileArguments(**given)
    assert (printing.as_json, printing.quiet, seed) == (True, False, 5)


def test_every_option_about_a_file_is_one_of_the_reader():
    about_files = {entry.name for entry in fields(TopFileArguments)} - {"file"} | {"path"}
    assert about_files == {entry.name for entry in fields(FileOptions)}


def test_what_was_said_reaches_the_reader():
    said = WeightedFileArguments(Path("x.csv"), classes="a, b", weight="w")
    assert said.options() == FileOptions(Path("x.csv"), classes=("a", "b"), weight="w")
    assert FileArguments(Path("x.npz"), split="test").options().split == "test"


def test_the_number_of_classes_is_asked_only_where_top_scores_are_read():
    from typer.main import get_command

    commands = get_command(app).commands
    commands |= {f"monitor {name}": c for name, c in commands["monitor"].commands.items()}
    taking = {n for n, c in commands.items() if "n_classes" in {p.name for p in c.params}}
    assert taking == {"evaluate", "fit"}


def test_every_command_is_registered():
    names = {entry.callback.__name__ for entry in app.registered_commands}
    commands = {"evaluate", "fit", "apply", "decide", "compare", "export", "report", "demo", "llm"}
    assert names == commands
