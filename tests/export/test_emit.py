"""Programs compute what calibrators predict."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from exported import CASES, EXPORTED, MEAN_PROCESSES, fitted


@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_program_is_its_calibrator_but_for_the_last_bits(calibrator, n_classes, inputs):
    model, scores = fitted(calibrator, n_classes, inputs)
    assert_same(export.program(model)(scores), model.predict_proba(scores))


def assert_same(actual, expected):
    # On some processors the last bit of an exponential depends on the layout of its array.
    np.testing.assert_allclose(actual, expected, rtol=4e-15, atol=4e-16)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["logits", "log_proba"])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("calibrator", EXPORTED, ids=repr)
def test_so_it_is_for_few_and_many_classes_in_every_form(calibrator, n_classes, inputs):
    model, scores = fitted(calibrator, n_classes, inputs)
    assert_same(export.program(model)(scores), model.predict_proba(scores))


@pytest.mark.parametrize("calibrator", MEAN_PROCESSES, ids=repr)
def test_the_mean_of_a_gaussian_process_is_exported_up_to_the_condition_of_its_kernel(calibrator):
    model, scores = fitted(calibrator, 3)
    difference = export.program(model)(scores) - model.predict_proba(scores)
    assert np.abs(difference).max() < 1e-11


@pytest.mark.parametrize(
    ("calibrator", "remedy"),
    [
        (calibrant.GaussianProcessCalibration(n_samples=4), "n_samples=0"),
        (calibrant.CanonicalBinning(), "MulticlassToBinary"),
    ],
    ids=["draws", "canonical"],
)
def test_what_has_no_program_is_rejected_with_the_remedy(calibrator, remedy):
    model, _ = fitted(calibrator, 3)
    with pytest.raises(ValueError, match=remedy):
        export.program(model)


def test_a_subclass_is_not_taken_for_its_parent():
    class Lukewarm(calibrant.TemperatureScaling):
        def _logits(self, u):
            return super()._logits(u / 2)

    model, _ = fitted(Lukewarm(), 3)
    with pytest.raises(TypeError, match=r"export\.register"):
        export.program(model)
    export.register(Lukewarm)(export._emit._emitters[calibrant.TemperatureScaling])
    with pytest.raises(ValueError, match="differs from the predictions"):
        export.program(model)


def test_what_is_no_calibrator_is_rejected_by_name():
    with pytest.raises(TypeError, match="int is not a calibrator"):
        export.program(3)


def test_a_calibrated_classifier_names_its_calibrator():
    with pytest.raises(TypeError, match="calibrator_"):
        export.program(calibrant.CalibratedClassifier(None))


def test_members_of_other_packages_are_rejected():
    from sklearn.naive_bayes import GaussianNB

    model, _ = fitted(calibrant.CrossFitted(GaussianNB(), cv=3), 3)
    with pytest.raises(TypeError, match="GaussianNB"):
        export.program(model)


def test_labels_that_cannot_be_written_down_are_rejected():
    model, _ = fitted(calibrant.TemperatureScaling(), 2)
    model.classes_ = np.array([None, (1, 2)], dtype=object)
    with pytest.raises(TypeError, match="strings, booleans or finite numbers can be exported"):
        export.program(model)
