"""The list of promises itself."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "write_promises.py"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def test_the_page_lists_every_promise_and_is_what_the_script_writes(script):
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"]()


def test_findings_are_told_apart_from_sentences(script):
    for name, spelt in (
        ("w1_s_1_", "W1, S-1"),
        ("d1_18_", "D1.18"),
        ("b_d4_", "B D4"),
        ("section_9_", "section 9"),
    ):
        assert script["_FINDINGS"].match(f"{name}a_class_of_3").group() == name
        assert script["_spell"](name) == spelt
    assert script["_FINDINGS"].match("a_class_of_3") is None


def test_every_test_that_the_page_of_trials_names_exists():
    root = SCRIPT.parents[1]
    page = (root / "docs" / "trials.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py")]
    tests = set(re.findall(r"^def (test_\w+)", "\n".join(sources), re.MULTILINE))
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 80
    assert not [name for name in named if name not in tests]
    outcomes = [line.split("|") for line in page.splitlines() if re.search(r"\| fixed", line)]
    assert all("`test_" in cells[3] for cells in outcomes)
