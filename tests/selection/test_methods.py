"""The table of methods, and functions and pages that use it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import calibrant
from calibrant.base import BaseBinaryCalibrator
from calibrant.selection.methods import METHODS, default_methods, method_of

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "choose-calibrator.md"

DESIGNED = [
    *("identity", "temperature", "ensemble-temperature", "bayesian-temperature", "vector"),
    *("matrix", "dirichlet"),
    *("structured-vector", "structured-matrix", "gp", "platt", "beta", "isotonic", "histogram"),
    *("bbq", "spline", "venn-abers", "canonical", "auto"),
]


def test_every_promised_name_is_there():
    assert set(METHODS) == set(DESIGNED)


@pytest.mark.parametrize("name", METHODS)
def test_a_name_makes_a_new_calibrator_each_time(name):
    one, other = calibrant.method(name), calibrant.method(name)
    assert one is not other
    assert repr(one) == repr(other) == repr(clone(one))
    assert isinstance(one, BaseBinaryCalibrator) == METHODS[name].is_binary


def test_a_name_means_what_it_means_in_compare(rng):
    proba, labels = rng.dirichlet(np.ones(3), 80), rng.integers(3, size=80)
    named = calibrant.compare(labels, proba, methods=["platt"], cv=2)
    given = calibrant.compare(labels, proba, methods={"platt": calibrant.method("platt")}, cv=2)
    np.testing.assert_array_equal(named.mean, given.mean)


def test_a_notion_lifts_a_method_of_one_claim():
    lifted = calibrant.method("histogram", notion="top-label")
    assert repr(lifted) == "MulticlassToBinary(calibrator=HistogramBinning())"
    assert calibrant.method("platt", notion="class-wise").normalize
    with pytest.raises(ValueError, match=r"platt, .* but vector calibrates the whole vector"):
        calibrant.method("vector", notion="top-label")


def test_an_unknown_name_suggests_the_nearest_and_lists_all():
    with pytest.raises(
        ValueError, match=r"Did you mean 'temperature'\? Valid names are auto, identity"
    ):
        calibrant.method("temprature")


def test_every_public_calibrator_has_a_name_or_is_made_of_others():
    named = {type(entry.make()).__name__ for entry in METHODS.values()}
    homes = {"binary", "multiclass"}
    assert {name for name, home in calibrant._HOMES.items() if home in homes} <= named


def test_the_entry_of_a_calibrator_is_found_by_its_type():
    assert method_of(calibrant.VennAbers()).name == "venn-abers"
    assert method_of(calibrant.CrossFitted(calibrant.Identity())) is None


def test_defaults_are_methods():
    assert set(default_methods()) < set(METHODS)


def test_the_manual_lists_the_methods_as_they_are():
    rows = [
        f"| `{entry.name}` | `{type(entry.make()).__name__}` | {entry.help} |"
        for entry in METHODS.values()
    ]
    listed = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert listed == rows
