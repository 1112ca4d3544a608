"""Consistency of this page and of the findings of trials."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "write_promises.py"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def test_this_page_is_up_to_date(script):
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"]()


def test_no_test_is_named_after_the_code_of_a_finding():
    code = re.compile(r"def (test_(?:[a-z]_?\d+|\d+|section)_\w+)")
    tests = SCRIPT.parents[1] / "tests"
    assert [name for path in tests.rglob("*.py") for name in code.findall(path.read_text())] == []


def test_every_test_on_the_page_of_trials_exists():
    root = SCRIPT.parents[1]
    page = (root / "docs" / "development" / "trials.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py")]
    tests = set(re.findall(r"^def (test_\w+)", "\n".join(sources), re.MULTILINE))
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 80
    assert not [name for name in named if name not in tests]
    outcomes = [line.split("|") for line in page.splitlines() if re.search(r"\| fixed", line)]
    assert all("`test_" in cells[3] for cells in outcomes)
