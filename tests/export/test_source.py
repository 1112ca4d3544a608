"""What generated modules have in common."""

from __future__ import annotations

import calibrant
from calibrant import export
from calibrant.export._source import body, functions
from exported import fitted


def test_a_value_is_one_statement_and_a_constant_one_line():
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    constants, lines = body(export.program(model), repr, "{name} = {value}")
    assert constants[-1] == f"C3_0 = {model.temperature_!r}"
    assert lines[-2:] == ["v3 = divide(v2, C3_0)", "v4 = softmax(v3)"]


def test_only_functions_that_are_called_are_written():
    model, _ = fitted(calibrant.IsotonicCalibration(), 2)
    texts = {name: name for name in [*export.OPS, "place"]}
    written = functions(export.program(model), texts, {"step": "place", "log": "unused"})
    assert written == ["place", "columns", "step", "scale", "stack"]
