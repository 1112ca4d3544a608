"""The options of a report."""

from __future__ import annotations

from calibrant import AutoCalibration, IsotonicCalibration, MulticlassToBinary, TemperatureScaling
from calibrant.report._request import Request, choose_calibrator


def test_the_default_is_auto():
    calibrator, name = choose_calibrator(None, None)
    assert isinstance(calibrator, AutoCalibration)
    assert name == "auto"


def test_a_calibrator_is_named_after_its_class_unless_it_has_a_name():
    scaling = TemperatureScaling()
    assert choose_calibrator(scaling, None) == (scaling, "TemperatureScaling")
    assert choose_calibrator(scaling, "temperature") == (scaling, "temperature")


def test_a_calibrator_is_set_up_for_the_scores():
    isotonic = IsotonicCalibration()
    request = Request(isotonic, "logits", "isotonic", "data", None, None, 5, 15, 99, 0)
    ready = request.set_up(3)
    assert isinstance(ready.calibrator, MulticlassToBinary)
    assert ready.calibrator.inputs == "logits"
    assert ready._replace(calibrator=isotonic) == request
