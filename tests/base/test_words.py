"""Words about fitted calibrators."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from calibrant import CrossFitted, IsotonicCalibration, PlattScaling, TemperatureScaling
from calibrant.base._words import FEW_NUMBERS, explain_map, list_parts

SCORES, LABELS = np.linspace(0.05, 0.95, 40), np.arange(40) % 3 // 2


def test_settings_and_few_numbers_are_said_and_what_is_about_data_is_not():
    said = PlattScaling(inputs="proba").fit(SCORES, LABELS).explain()
    assert "target_smoothing = True" in said
    assert "coef_ = " in said
    assert "class_weights_" not in said
    assert "inputs" not in said
    steps = IsotonicCalibration().fit(SCORES, np.arange(40) % 7 / 7 < SCORES)
    assert len(steps.edges_) > FEW_NUMBERS
    assert "Fitted" not in steps.explain()


def test_each_part_has_a_line_and_many_are_counted():
    parts = [TemperatureScaling(prior_scale=1.0).fit(SCORES, LABELS) for _ in range(7)]
    lines = list_parts(parts)
    assert len(lines) == 6
    assert lines[-1] == "  2 others"


def test_estimators_of_others_are_explained_by_their_docstring():
    model = CrossFitted(KNeighborsClassifier(15), cv=2).fit(SCORES, LABELS)
    head, *lines = model.explain().splitlines()
    assert head.startswith("CrossFitted: One map per fold, their predictions averaged.")
    assert len(lines) == 2
    assert lines[0].startswith("  KNeighborsClassifier: ")
    assert explain_map(model.calibrators_[0]).startswith("KNeighborsClassifier: ")
