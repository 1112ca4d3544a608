"""What generated modules have in common."""

from __future__ import annotations

import pytest

import calibrant
from calibrant import export
from calibrant.export._source import body, functions, read_functions
from exported import fitted


def test_a_value_is_one_statement_and_a_constant_one_line():
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    constants, lines = body(export.program(model), repr, "{name} = {value}")
    assert constants[-1] == f"C3_0 = {model.temperature_!r}"
    assert lines[-2:] == ["v3 = divide(v2, C3_0)", "v4 = softmax(v3)"]


def test_only_functions_that_are_called_are_written():
    model, _ = fitted(calibrant.IsotonicCalibration(), 2)
    texts = {name: name for name in [*export.OPS, "place", "unused"]}
    texts |= {"step": "step place(x)", "log": "log unused(x)", "scale": "scale replace(x)"}
    written = functions(export.program(model), texts)
    assert written == ["place", "columns", "step place(x)", "scale replace(x)", "stack"]


@pytest.mark.parametrize(
    ("template", "keyword"), [("functions.js", "function"), ("functions.py.txt", "def")]
)
def test_functions_are_read_from_their_template_without_comments(template, keyword):
    texts = read_functions(template, keyword)
    assert set(export.OPS) < set(texts)
    assert all(text.startswith(f"{keyword} {name}(") for name, text in texts.items())
    assert not any("\n\n" in text or "Functions of" in text for text in texts.values())
