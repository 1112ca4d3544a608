"""A fitted map in words, whatever calibrator it is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant.report._describe import describe
from calibrant.selection.methods import METHODS


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(2), 300)
    return proba, calibrant.datasets.draw_labels(proba, rng=rng)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_described_in_a_sentence(name, data):
    note = describe(calibrant.method(name).fit(*data), ["a", "b"])
    assert note.name
    assert note.text.endswith((".", "]"))
    assert len(note.text) > 20


def test_a_map_without_words_of_its_own_shows_what_it_does_and_what_it_learned(data):
    model = calibrant.PlattScaling().fit(*data)
    text = describe(model, ["a", "b"]).text
    assert text.startswith("Logistic regression on log-odds. Settings: ")
    assert f"coef_ = {model.coef_:.4g}" in text


def test_a_calibrator_of_somebody_else_is_described_by_its_numbers(data):
    model = LogisticRegression().fit(*data)
    text = describe(model, ["a", "b"]).text
    assert text.startswith("The calibrator is a fitted LogisticRegression. Settings: C = 1.0")
    assert f"intercept_ = {model.intercept_[0]:.4g}." in text


def test_a_calibrator_may_have_words_of_its_own(data):
    class Mine(calibrant.Identity):
        def _description(self):
            return "All is well."

    model = Mine().fit(*data)
    assert describe(model, ["a", "b"]).text == "All is well."
    assert model.explain().startswith("Mine. All is well. Fitted on 300 rows of 2 of 2 classes")


def test_tables_name_the_classes(data):
    note = describe(calibrant.VectorScaling().fit(*data), ["cat", "dog"])
    assert [row[0] for row in note.tables[0].rows] == ["cat", "dog"]
    many = [str(k) for k in range(30)]
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(30), 300)
    model = calibrant.MatrixScaling(lam=1.0).fit(proba, rng.integers(30, size=300))
    assert describe(model, many).tables == ()


def test_composites_say_what_they_are_made_of(data):
    lifted = calibrant.MulticlassToBinary(calibrant.HistogramBinning()).fit(*data)
    text = describe(lifted, ["a", "b"]).text
    assert "HistogramBinning is fitted to each of the 2 binary events" in text
    folds = calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=3).fit(*data)
    assert describe(folds, ["a", "b"]).text == (
        "The average of 3 fits of TemperatureScaling, each on different rows."
    )
