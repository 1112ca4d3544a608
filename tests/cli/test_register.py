"""Registration of commands, whose dataclass parameters become options."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from calibrant.cli._app import app
from calibrant.cli._options import Printing, WeightedFileArguments
from calibrant.cli._register import flatten


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


def test_every_command_is_registered():
    names = {entry.callback.__name__ for entry in app.registered_commands}
    commands = {"evaluate", "fit", "apply", "decide", "compare", "export", "report", "demo", "llm"}
    assert names == commands
