"""Programs of calibrated classifiers: one for each fit, and one for their average."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier
from calibrant.export._average import average_of


@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), DecisionTreeClassifier(random_state=0), LogisticRegression(max_iter=1000)],
    ids=["probabilities", "zeros", "logits"],
)
@pytest.mark.parametrize("ensemble", ["auto", True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_programs_of_a_classifier_give_its_probabilities(estimator, ensemble, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[: 50 * n_classes], y[: 50 * n_classes]
    model = CalibratedClassifier(estimator, "structured-vector", ensemble=ensemble).fit(X, y)
    average = average_of(model)
    fits = zip(average.programs, model.estimators_, strict=True)
    results = [program.run(scores_of(model, fitted, X)) for program, fitted in fits]
    proba = np.tensordot(average.weights, results, axes=1)
    if average.last is not None:
        proba = average.last.run(proba)
    assert len(average.all_programs) == len(model.estimators_) + (ensemble == "auto")
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9)


def scores_of(model, fitted, X):
    """Scores as converters write them: log-odds of two classes next to their opposite."""
    scores = getattr(fitted, model.score_method_)(X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
