"""The options of a report."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import AutoCalibration, IsotonicCalibration, MulticlassToBinary, TemperatureScaling
from calibrant.report import summarize
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
    ready = request.set_up(np.arange(3))
    assert isinstance(ready.calibrator, MulticlassToBinary)
    assert ready.calibrator.inputs == "logits"
    assert ready._replace(calibrator=isotonic) == request


def test_a_fitted_calibrator_is_evaluated_as_it_is(data):
    proba, labels = data
    model = calibrant.TemperatureScaling().fit(proba[:300], labels[:300])
    found = summarize(labels[300:], proba[300:], model=model, n_resamples=19)
    expected = calibrant.evaluate(labels[300:], model.predict_proba(proba[300:]))
    after = {row.name: row.after.value for row in found.metrics}
    assert after["log_loss"] == pytest.approx(expected.log_loss)
    assert found.guarantee is None
    assert any("was fitted before" in sentence for sentence in found.how)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrator": calibrant.Identity()}, "calibrator and calibration do not apply"),
        ({"inputs": "logits"}, "model was fitted with inputs='proba'"),
        ({"model": calibrant.TemperatureScaling()}, "not fitted"),
    ],
)
def test_a_model_that_cannot_be_evaluated_is_an_error(data, options, message):
    proba, labels = data
    model = calibrant.TemperatureScaling().fit(proba, labels)
    with pytest.raises(ValueError, match=message):
        summarize(labels, proba, **{"model": model, **options})
