"""Sets of classes and hierarchies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    AutoCalibration,
    CalibratedClassifier,
    CrossFitted,
    GroupCalibration,
    HistogramBinning,
    MulticlassToBinary,
    PlattScaling,
    compare,
    load,
    save,
)
from calibrant.datasets import draw_labels
from calibrant.exceptions import DataWarning
from calibrant.export import program
from calibrant.inference import consistency_test, debiased_interval
from calibrant.metrics import expected_calibration_error, ks_error
from calibrant.notions import SetNotion, as_notion
from calibrant.report import summarize

CLASSES = np.array(["cat", "dog", "owl", "car", "bus"])
TREE = {
    "animal": ["mammal", "owl"],
    "mammal": ["cat", "dog"],
    "vehicle": ["car", "bus"],
}


@pytest.fixture
def data(rng):
    proba = rng.dirichlet(np.ones(5), 800)
    softer = proba**0.6 / (proba**0.6).sum(axis=1, keepdims=True)
    return CLASSES[draw_labels(softer, rng=rng)], proba


def test_a_parent_is_the_sum_of_its_children(data):
    _, proba = data
    score = SetNotion(TREE).bound(CLASSES).select(proba).score
    animal, mammal, vehicle = score.T
    assert np.abs(animal - (mammal + proba[:, 2])).max() < 1e-12
    assert np.abs(mammal - proba[:, :2].sum(axis=1)).max() < 1e-12
    assert np.abs(animal + vehicle - 1).max() < 1e-12


def test_metrics_are_those_of_the_binary_problem(data):
    y, proba = data
    is_animal = np.isin(y, ["cat", "dog", "owl"]).astype(int)
    summed = proba[:, :3].sum(axis=1)
    for metric in (expected_calibration_error, ks_error):
        found = metric(y, proba, notion={"animal": ["cat", "dog", "owl"]}, classes=CLASSES)
        assert found == pytest.approx(metric(is_animal, summed, notion="class-1"), abs=1e-12)


def test_reductions_guarantees_tests_and_export_need_nothing_else(data, tmp_path):
    y, proba = data
    sets = {"animal": ["cat", "dog", "owl"], "vehicle": ["car", "bus"]}
    model = MulticlassToBinary(PlattScaling(), notion=sets, classes=CLASSES).fit(proba, y)
    claims = model.predict_claims(proba)
    assert claims.shape == (800, 2)
    one = MulticlassToBinary(PlattScaling(), notion={"pet": ["cat", "dog"]}, classes=CLASSES)
    rows = one.fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(rows[:, :2].sum(axis=1), one.predict_claims(proba)[:, 0])
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    save(one, tmp_path / "m.json")
    np.testing.assert_array_equal(load(tmp_path / "m.json").predict_proba(proba), rows)
    np.testing.assert_allclose(program(one)(proba), rows, atol=1e-12)
    binned = MulticlassToBinary(HistogramBinning(n_bins=5), notion=sets, classes=CLASSES)
    assert "'animal'" in str(binned.fit(proba, y).guarantee(alpha=0.1))
    options = {"notion": sets, "classes": CLASSES}
    assert consistency_test(y, proba, n_resamples=49, rng=0, **options).p_value < 0.05
    assert debiased_interval(y, proba, **options).low > 0


def test_overlapping_levels_leave_rows_unchanged(data):
    y, proba = data
    model = MulticlassToBinary(PlattScaling(), notion=TREE, classes=CLASSES)
    with pytest.warns(DataWarning, match=r"Use predict_claims for the calibrated probabilities"):
        model.fit(proba, y)
    np.testing.assert_array_equal(model.predict_proba(proba), proba)


def test_the_name_restores_the_notion():
    notion = SetNotion({"big, old": ["a+b", "c=d"], "é": ["x"]})
    assert as_notion(notion.name) == notion
    assert as_notion("group-animal=cat+dog") == SetNotion({"animal": ["cat", "dog"]})
    assert notion.title == "group-big, old, é"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({}, "must have names and members"),
        ({"a": []}, "must have names and members"),
        ({"a": ["cow"]}, "cow"),
        ({"a": ["b"], "b": ["a"]}, "contains itself"),
        ({"a": ["cat", "cat"]}, "contains a class twice"),
    ],
)
def test_sets_that_do_not_exist_are_rejected(sets, message, data):
    y, proba = data
    with pytest.raises(ValueError, match=message):
        ks_error(y, proba, notion=sets, classes=CLASSES)


def test_a_bad_name_is_rejected_with_the_right_form():
    with pytest.raises(ValueError, match="group-animal=cat"):
        as_notion("group-animal")
    with pytest.raises(ValueError, match="needs the names of the classes"):
        as_notion("group-a=b").select(np.ones((1, 2)))
    with pytest.raises(ValueError, match="scores have 2 columns"):
        SetNotion(TREE).bound(CLASSES).n_quantities(2)


@pytest.mark.parametrize("notion", [{"pet": ["cat", "dog"]}, "class-cat", "group-pet=cat+dog"])
def test_composites_know_the_names_of_the_classes(notion, rng):
    names, proba = np.array(["dog", "cat", "owl"]), rng.dirichlet(np.ones(3), 60)
    y = names[draw_labels(proba, rng=rng)]
    inner = MulticlassToBinary(PlattScaling(), notion=notion)
    for model in (
        AutoCalibration({"sets": inner}, classes=names),
        CrossFitted(inner, classes=names),
        GroupCalibration(inner, classes=names),
        CalibratedClassifier(GaussianNB(), inner),
    ):
        assert model.fit(proba, y).predict_proba(proba).shape == (60, 3)
    table = compare(y, proba, methods={"sets": inner}, classes=names, cv=2)
    assert "sets" in table.methods
    options = {"calibrator": inner, "classes": names, "n_resamples": 19}
    assert summarize(y, proba, **options).n_classes == 3


def test_members_of_a_set_are_a_list():
    for members in ("cat", 3, None, {"kitten": ["cat"]}):
        with pytest.raises(TypeError, match="set 'pet' must be a list"):
            SetNotion({"pet": members})


def test_a_name_with_the_same_set_twice_is_rejected():
    with pytest.raises(ValueError, match="defines the set 'pet' twice"):
        SetNotion.parse("group-pet=cat,pet=dog")
