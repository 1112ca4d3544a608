"""Fitted attributes of a file: their shapes, their ranges, and what they refer to."""

from __future__ import annotations

import numpy as np
import pytest

import calibrators
from calibrant import TemperatureScaling
from calibrant.base import BaseCalibrator, FittedValue
from calibrant.io._registry import CALIBRATORS, registered
from calibrant.io._shapes import References, check_fitted_values, mentioned_names
from calibrant.testing import make_data


@pytest.mark.parametrize(
    "calibrator", calibrators.ALL + calibrators.COMPOSED, ids=lambda c: repr(c)[:60]
)
def test_what_a_fit_leaves_behind_is_what_is_expected(calibrator):
    scores, labels = make_data(calibrator, 120)
    made = calibrator.fit(scores, labels)
    fitted = {k: v for k, v in vars(made).items() if k.endswith("_") and not k.startswith("_")}
    check_fitted_values(type(made).__name__, made, fitted)
    for part in made._members():
        check_fitted_values(type(part).__name__, part, {})


@pytest.mark.parametrize("cls", [registered()[name] for name in CALIBRATORS], ids=CALIBRATORS)
def test_every_name_that_is_declared_is_one_that_a_fit_sets(cls):
    needed = {"calibrator": TemperatureScaling()} if "calibrator" in cls._get_param_names() else {}
    assert set(cls(**needed).fitted_values) <= mentioned_names(cls)


class Shrunk(BaseCalibrator):
    """A calibrator of others, which declares one of its two fitted attributes."""

    def __init__(self, *, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    @property
    def fitted_values(self):
        return {"share_": FittedValue((), 0.0, 1.0)}

    def _fit(self, sample):
        rows = sample.rows("this method")
        self.share_, self.prior_ = 0.5, np.ones(rows.u.shape[1])

    def _log_proba(self, u):
        return u


def test_what_others_declare_is_checked_and_what_they_do_not_is_left_alone():
    fitted = {"classes_": np.arange(3), "n_classes_": 3, "prior_": "anything"}
    check_fitted_values("Shrunk", Shrunk(), {**fitted, "share_": 0.25})
    with pytest.raises(ValueError, match=r"Shrunk\.share_ must be between 0 and 1"):
        check_fitted_values("Shrunk", Shrunk(), {**fitted, "share_": 1.5})


def test_what_every_fit_leaves_behind_is_checked_of_calibrators_of_others_too():
    with pytest.raises(ValueError, match="n_classes_ is 4, but classes_ has 3 labels"):
        check_fitted_values("Shrunk", Shrunk(), {"classes_": np.arange(3), "n_classes_": 4})


def test_attributes_that_no_method_knows_are_rejected():
    with pytest.raises(
        ValueError, match="'warmth_' is not a fitted attribute of TemperatureScaling"
    ):
        check_fitted_values("TemperatureScaling", TemperatureScaling(), {"warmth_": 1.0})


def test_parts_of_parts_count_each_time():
    references = References()
    references.close()
    for _ in range(9):
        references.refer(len(references.costs) - 1)
        references.refer(len(references.costs) - 1)
        references.close()
    assert references.costs[-1] == 2**10 - 1
    references.refer(9)
    references.refer(9)
    with pytest.raises(
        ValueError, match="would run 2,047 calibrators, but at most 1,200 are allowed"
    ):
        references.close()
