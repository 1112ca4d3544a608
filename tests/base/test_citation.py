"""Sentences for a methods section, and who is cited."""

from __future__ import annotations

import re

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant.base import Citation, Reference
from calibrant.testing import make_data
from calibrators import COMPOSED, LIFTED, ONE_CLAIM, WHOLE_VECTOR


def fitted(calibrator):
    X, y = make_data(calibrator, 40)
    return clone(calibrator).fit(X, y)


def test_a_sentence_says_method_source_rows_classes_and_version():
    model = fitted(calibrant.TemperatureScaling())
    text = model.cite()
    sentence, blank, title, reference = text.split("\n")
    assert sentence == (
        f"Probabilities were calibrated with Calibrant {calibrant.__version__}. The calibrator was "
        f"fitted on 40 rows of {model.n_classes_} classes. The method is temperature scaling "
        "(Guo et al. 2017)."
    )
    assert (blank, title) == ("", "References")
    assert reference == (
        "- Guo et al. (2017), On calibration of modern neural networks, ICML, arXiv:1706.04599."
    )


@pytest.mark.parametrize("calibrator", [*WHOLE_VECTOR, *ONE_CLAIM], ids=repr)
def test_the_docstring_of_a_method_names_who_is_cited_for_it(calibrator):
    for reference in calibrator.citation.references:
        first_author = re.match(r"\w+", reference.authors)[0]
        assert first_author in type(calibrator).__doc__
        assert str(reference.year) in type(calibrator).__doc__
    assert calibrator.citation.method != type(calibrator).__name__


@pytest.mark.parametrize("calibrator", LIFTED[:2], ids=repr)
def test_a_reduction_cites_what_it_lifts_and_names_the_notion(calibrator):
    text = fitted(calibrator).cite()
    assert calibrator.calibrator.citation.method in text
    assert f" of the binary events of {calibrator.notion} calibration " in text
    assert "arXiv:2107.08353" in text


def test_a_stack_cites_the_members_that_count_each_once():
    model = fitted(COMPOSED[-1])
    text = model.cite()
    assert text.count("Wolpert (1992)") == 1
    for member in model.members_.values():
        for reference in getattr(member, "citation", Citation("")).references:
            assert text.count(reference.full) == 1


def test_maps_of_folds_are_counted():
    text = fitted(calibrant.CrossFitted(calibrant.TemperatureScaling(), cv=3)).cite()
    assert "the average of 3 cross-fitted fits of temperature scaling (Guo et al. 2017)" in text


def test_a_loaded_calibrator_can_be_cited(tmp_path):
    model = fitted(calibrant.StructuredScaling("vector"))
    calibrant.save(model, tmp_path / "model.json")
    assert calibrant.load(tmp_path / "model.json").cite() == model.cite()
    assert "structured vector scaling (Berta" in model.cite()


def test_weights_count_as_rows():
    model = calibrant.Identity().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1], [1500, 1500])
    assert "fitted on 3,000 rows of 2 classes" in model.cite()


def test_a_classifier_of_others_inside_is_called_by_its_class():
    inside = calibrant.CrossFitted(GaussianNB(), cv=3)
    assert "cross-fitted fits of GaussianNB" in fitted(inside).cite()


def test_a_calibrator_of_your_own_is_called_by_its_class_until_it_says_more():
    class Own(calibrant.base.BaseCalibrator):
        def _fit(self, sample): ...
        def _log_proba(self, u): ...

    class Cited(Own):
        citation = Citation("scaling of our own", (Reference("Doe", 2026, "Own", "arXiv:1"),))

    assert Own().citation == Citation("Own")
    assert Cited().citation.references[0].short == "Doe 2026"


def test_an_unfitted_calibrator_has_nothing_to_cite():
    with pytest.raises(NotFittedError):
        calibrant.TemperatureScaling().cite()
