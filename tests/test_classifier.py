"""`CalibratedClassifier`: scikit-learn's own checks for every calibrator, and what they do not cover."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant
from calibrant import CalibratedClassifier
from calibrators import ALL

# The checks feed separable data, on which unpenalised maps have no finite optimum and say so.
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.ConvergenceWarning")

_CALIBRATORS = [*ALL, calibrant.CrossFitted(calibrant.TemperatureScaling()), None]


@parametrize_with_checks([CalibratedClassifier(LogisticRegression(), calibrator) for calibrator in _CALIBRATORS])
def test_scikit_learn_checks_hold_for_every_calibrator(estimator, check):
    check(estimator)
