"""The page about export runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exported import _connect

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "howto-export.md"


def test_the_page_runs(capsys):
    _connect("sqlite").close()
    if not PAGE.exists():
        pytest.skip("the documentation is not at hand")
    space = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, PAGE.name, "exec", dont_inherit=True), space)
    assert "softmax" in capsys.readouterr().out
