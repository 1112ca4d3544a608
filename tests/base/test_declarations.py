from __future__ import annotations

from calibrant import GaussianProcessCalibration, TemperatureScaling
from calibrant.base._declarations import Declarations


def test_defaults_hold_for_an_ordinary_method():
    method = Declarations()
    assert not method.needs_rows
    assert not method.counts_rows
    assert (method.fitted_values, method.check_exceptions) == ({}, {})
    assert method.citation.method == "Declarations"


def test_a_method_overrides_a_default_by_a_class_attribute():
    assert GaussianProcessCalibration.needs_rows is True
    assert TemperatureScaling.citation.method == "temperature scaling"
