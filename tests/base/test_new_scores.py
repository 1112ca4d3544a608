from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, TopScores
from calibrant.base._new_scores import check_new_scores, check_new_top_scores


@pytest.fixture
def model(rng):
    proba = rng.dirichlet(np.ones(3), 60)
    return TemperatureScaling().fit(proba, np.arange(60) % 3)


def test_columns_must_be_those_of_the_fit(model):
    with pytest.raises(ValueError, match="2 columns, but TemperatureScaling was fitted with 3"):
        check_new_scores(model, [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"pass X\[None\]"):
        check_new_scores(model, [0.2, 0.3, 0.5])


def test_top_scores_must_be_of_the_classes_of_the_fit(model):
    top = TopScores([[0]], np.log([[0.5]]), n_classes=4)
    with pytest.raises(ValueError, match="4 classes, but TemperatureScaling was fitted with 3"):
        check_new_top_scores(model, top)
