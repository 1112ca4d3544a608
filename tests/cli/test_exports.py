"""``calibrant export``."""

from __future__ import annotations

import pytest

pytest.importorskip("typer")

from calibrant.cli import run


def test_the_help_of_export_lists_each_option_once(capsys):
    assert run(["export", "-h"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    options = [word.rstrip(",") for line in lines for word in line[:2] if word.startswith("--")]
    assert len(set(options)) == len(options)
    assert "--score-output" in options
