"""Error messages for keywords of other packages."""

from __future__ import annotations

import inspect

import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from calibrant import CalibratedClassifier


def test_the_keyword_of_scikit_learn_is_answered_with_the_argument():
    with pytest.raises(TypeError, match=r"CalibratedClassifier\(estimator, 'isotonic'\)"):
        CalibratedClassifier(LogisticRegression(), method="isotonic")
    with pytest.raises(TypeError, match=r"AutoCalibration\(random_state=0\)"):
        CalibratedClassifier(LogisticRegression(), random_state=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'methd'"):
        CalibratedClassifier(LogisticRegression(), methd="isotonic")


def test_the_signature_of_the_classifier_names_its_parameters():
    parameters = list(inspect.signature(CalibratedClassifier).parameters)
    assert parameters[:2] == ["estimator", "calibrator"]
    assert clone(CalibratedClassifier(GaussianNB())).get_params()["ensemble"] is not None
