"""What the commands print, and where."""

from __future__ import annotations

import json
import warnings
from typing import NamedTuple

import pytest

pytest.importorskip("rich")

from calibrant.cli._output import Output


class Block(NamedTuple):
    scores: list[int]


def test_people_get_text_and_programs_get_json(capsys):
    Output(as_json=False, quiet=False).show("a [b] c")
    Output(as_json=False, quiet=False).result({"a": 1})
    assert capsys.readouterr().out == "a [b] c\n"
    Output(as_json=True, quiet=False).show("a")
    Output(as_json=True, quiet=False).result({"a": 1})
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_warnings_go_to_standard_error_unless_quiet(capsys):
    Output(as_json=False, quiet=False).say("remark")
    Output(as_json=False, quiet=True).say("nothing")
    assert capsys.readouterr() == ("", "remark\n")


def test_blocks_pass_through_where_there_is_no_terminal(capsys):
    blocks = [Block([1, 2]), Block([3])]
    assert list(Output(as_json=False, quiet=False).watch(iter(blocks), None)) == blocks
    assert capsys.readouterr() == ("", "")


def test_warnings_become_warnings_once(capsys):
    with Output(as_json=False, quiet=False).working("Fitting"):
        for _ in range(2):
            warnings.warn("did not converge", stacklevel=1)
    assert capsys.readouterr().err == "note: did not converge\n"
