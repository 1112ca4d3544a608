"""Options of the commands."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from calibrant.cli._app import app
from calibrant.cli._options import FileArguments, TopFileArguments, WeightedFileArguments
from calibrant.io._roles import FileOptions


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
