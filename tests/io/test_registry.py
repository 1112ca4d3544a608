"""Calibrators that others write are saved and loaded by a name that they register."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant
from calibrant.base import BaseBinaryCalibrator, BaseCalibrator, Calibrator
from calibrant.io import _registry, register
from calibrant.testing import check_calibrator, make_data


class Softened(BaseCalibrator):
    """A mixture with the class frequencies, as somebody else would write it."""

    def __init__(self, share=0.2, *, inputs="proba", classes=None):
        self.share = share
        self.inputs = inputs
        self.classes = classes

    def _fit(self, sample):
        rows = sample.rows("this method")
        u, y, weight = rows.u, rows.y, rows.weight
        self.rate_ = np.bincount(y, weight, minlength=u.shape[1]) / weight.sum()

    def _log_proba(self, u):
        proba = np.exp(u - np.logaddexp.reduce(u, axis=1)[:, None])
        return np.log((1 - self.share) * proba + self.share * self.rate_)


class Halved(BaseBinaryCalibrator):
    def __init__(self, *, inputs="proba", classes=None):
        self.inputs = inputs
        self.classes = classes

    def _fit(self, claim):
        self.rate_ = float(claim.weight @ claim.hits / claim.weight.sum())

    def _predict(self, score):
        return (score + self.rate_) / 2


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    monkeypatch.setattr(_registry, "_external", {})


def there_and_back(calibrator, tmp_path):
    calibrant.save(calibrator, tmp_path / "model.json")
    return calibrant.load(tmp_path / "model.json")


def test_the_example_keeps_what_every_calibrator_must():
    check_calibrator(Softened())
    check_calibrator(Halved())


@pytest.mark.parametrize(
    "calibrator",
    [
        Softened(0.3),
        calibrant.CrossFitted(Softened(), cv=3),
        calibrant.MulticlassToBinary(Halved(), "class-wise", normalize=True),
        calibrant.AutoCalibration({"mine": Softened()}, cv=3),
    ],
    ids=repr,
)
def test_a_registered_calibrator_comes_back_alone_and_inside_others(calibrator, tmp_path):
    register(Softened, name="acme.Softened")
    register(Halved)
    X, y = make_data(calibrator)
    before = calibrator.fit(X, y)
    after = there_and_back(before, tmp_path)
    assert type(after) is type(before)
    assert repr(after) == repr(before)
    np.testing.assert_array_equal(after.predict_proba(X), before.predict_proba(X))


def test_the_file_holds_the_registered_name_and_no_path(tmp_path):
    register(Softened, name="acme.Softened")
    calibrant.save(Softened().fit(*make_data(Softened())), tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert json.loads(text)["models"][-1]["class"] == "acme.Softened"
    assert __name__ not in text


def test_a_name_that_nobody_registered_is_rejected_with_what_to_do(tmp_path, monkeypatch):
    register(Softened, name="acme.Softened")
    calibrant.save(Softened().fit(*make_data(Softened())), tmp_path / "model.json")
    monkeypatch.setattr(_registry, "_external", {})
    with pytest.raises(
        ValueError, match=r"calibrant\.io\.register\(TheClass, name='acme.Softened'\)"
    ):
        calibrant.load(tmp_path / "model.json")


def test_register_can_decorate_a_class():
    @register
    class Mine(Softened):
        pass

    assert Mine.__name__ == "Mine"
    assert _registry.registered()["Mine"] is Mine


@pytest.mark.parametrize("name", ["TemperatureScaling", "TrainingSummary", "AutoCalibration"])
def test_the_names_of_this_package_are_taken(name):
    with pytest.raises(ValueError, match="is already the name of another calibrator"):
        register(Softened, name=name)


def test_a_class_of_the_same_name_as_ours_needs_another_name():
    class TemperatureScaling(Softened):
        pass

    with pytest.raises(ValueError, match=r"name='my_package\.TemperatureScaling'"):
        register(TemperatureScaling)
    register(TemperatureScaling, name="acme.TemperatureScaling")


def test_a_name_belongs_to_one_class_and_a_class_to_one_name():
    register(Softened, name="acme.Softened")
    register(Softened, name="acme.Softened")  # again is no harm
    with pytest.raises(ValueError, match="already the name of another calibrator"):
        register(Halved, name="acme.Softened")
    with pytest.raises(ValueError, match=r"already registered as 'acme.Softened'"):
        register(Softened, name="acme.Other")


def test_a_definition_that_is_run_again_replaces_the_first():
    def define():
        class Again(Softened):
            pass

        return Again

    first, second = define(), define()
    register(first)
    register(second)
    assert _registry.registered()["Again"] is second


@pytest.mark.parametrize("name", ["", "a b", "../x", "a..b", ".a", "x" * 300, 3])
def test_names_are_words_with_dots(name):
    with pytest.raises(ValueError, match="identifiers that are separated by dots"):
        register(Softened, name=name)


@pytest.mark.parametrize("cls", [dict, Softened(), BaseCalibrator, Calibrator, "Softened"])
def test_only_calibrators_that_can_be_made_are_registered(cls):
    with pytest.raises(TypeError, match=r"concrete subclass of calibrant\.base\.Calibrator"):
        register(cls, name="acme.X")
