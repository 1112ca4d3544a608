"""Descriptions of fitted calibrators."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from calibrant import CrossFitted, IsotonicCalibration, PlattScaling, TemperatureScaling
from calibrant.base.description import describe_members

SCORES, LABELS = np.linspace(0.05, 0.95, 40), np.arange(40) % 3 // 2


def test_settings_and_few_numbers_are_said_and_what_is_about_data_is_not():
    text = PlattScaling(inputs="proba").fit(SCORES, LABELS).explain()
    assert "target_smoothing = True" in text
    assert "coef_ = " in text
    assert "class_weights_" not in text
    assert "inputs" not in text
    steps = IsotonicCalibration().fit(SCORES, np.arange(40) % 7 / 7 < SCORES)
    assert len(steps.edges_) > 4
    assert "Fitted:" not in steps.explain()


def test_each_part_has_a_line_and_many_are_counted():
    parts = [TemperatureScaling(prior_scale=1.0).fit(SCORES, LABELS) for _ in range(7)]
    lines = describe_members(parts)
    assert len(lines) == 6
    assert lines[-1] == "  2 more"


def test_estimators_of_others_are_explained_by_their_settings():
    model = CrossFitted(KNeighborsClassifier(15), cv=2).fit(SCORES, LABELS)
    head, *lines = model.explain().splitlines()
    assert head.startswith("CrossFitted. The average of 2 fits of KNeighborsClassifier")
    assert len(lines) == 2
    assert lines[0].startswith("  KNeighborsClassifier. Settings: ")


def test_a_map_of_one_claim_says_what_becomes_of_probabilities():
    text = PlattScaling().fit(SCORES, LABELS).explain()
    assert "A probability of 0.1 becomes " in text
    assert text.endswith("Expect a smaller reduction on new rows.")
