"""The public API computes what version 0.1.0 computed, but for intended differences."""

from __future__ import annotations

import importlib.util
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
REFERENCE = FIXTURES / "behaviour-0.1.0.npz"
EXPECTED = FIXTURES / "behaviour-expected.txt"


@pytest.fixture(scope="module")
def recorder():
    """The recording script, as a module."""
    spec = importlib.util.spec_from_file_location(
        "record_behaviour", FIXTURES / "record_behaviour.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def expected(recorder):
    """Patterns of intended differences, with their reasons."""
    return recorder.read_expected(EXPECTED) if EXPECTED.exists() else {}


@pytest.mark.slow
def test_the_public_api_computes_what_it_computed(recorder, expected, tmp_path):
    recorded, here = recorder.read_environment(REFERENCE), recorder.environment()
    if here != recorded:
        pytest.skip(f"last bits differ: recorded with {recorded}, and this is {here}")
    recorder.record(tmp_path / "now.npz")
    before, now = recorder.read(REFERENCE), recorder.read(tmp_path / "now.npz")
    lines, is_same = recorder.compared(before, now, expected)
    assert is_same, "\n".join(lines)


def test_every_intended_difference_has_a_reason(expected):
    assert all(expected.values()), [pattern for pattern, reason in expected.items() if not reason]


def test_no_pattern_excuses_a_whole_group_of_records(recorder, expected):
    groups: dict[str, list[str]] = {}
    for name in recorder.read(REFERENCE):
        groups.setdefault(name.partition("/")[0], []).append(name)
    broad = [
        pattern
        for pattern in expected
        if len(names := groups.get(pattern.partition("/")[0], [])) > 1
        and all(fnmatchcase(name, pattern) for name in names)
    ]
    assert broad == []


def test_a_changed_number_is_found(recorder):
    before = recorder.read(REFERENCE)
    name = "fit/temperature/three/temperature_"
    changed = before[name]._replace(numbers=before[name].numbers + 1e-9)
    lines, is_same = recorder.compared(before, {**before, name: changed}, {})
    assert not is_same
    assert any(line.strip().startswith(name) for line in lines)


def test_a_missing_record_is_found_unless_it_is_intended(recorder):
    before = recorder.read(REFERENCE)
    name = "fit/temperature/three/temperature_"
    fewer = {key: record for key, record in before.items() if key != name}
    assert not recorder.compared(before, fewer, {})[1]
    assert recorder.compared(before, fewer, {"*/temperature_": "renamed"})[1]
