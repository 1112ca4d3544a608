from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, TopScores
from calibrant.base.new_scores import check_new_scores, check_new_top_scores
from calibrant.exceptions import DataWarning


@pytest.fixture
def model(rng):
    proba = rng.dirichlet(np.ones(3), 60)
    return TemperatureScaling().fit(proba, np.arange(60) % 3)


def test_columns_must_be_those_of_the_fit(model):
    with pytest.raises(ValueError, match="2 columns, but TemperatureScaling was fitted with 3"):
        check_new_scores(model, [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"Pass X\[None\]"):
        check_new_scores(model, [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match=r"X has shape \(2,\), .* Pass one column per class"):
        check_new_scores(model, [0.2, 0.3])


@pytest.mark.parametrize("inputs", ["proba", "logits", "log_proba"])
@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_a_wrong_number_of_columns_is_found_before_bad_values(rng, inputs, n_columns):
    proba = rng.dirichlet(np.ones(3), 60)
    scores = proba if inputs == "proba" else np.log(proba)
    model = TemperatureScaling(inputs=inputs).fit(scores, np.arange(60) % 3)
    message = f"X has {n_columns} columns?, but TemperatureScaling was fitted with 3 classes"
    with pytest.raises(ValueError, match=message):
        model.predict_proba(np.column_stack([scores, scores])[:, :n_columns])
    with pytest.raises(ValueError, match=r"X has 60 columns, .* Pass X\.T"):
        model.predict_proba(scores.T)


def test_the_columns_of_chunked_scores_are_counted_before_they_are_read(model, rng):
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="2 columns, but TemperatureScaling was fitted with 3"):
        model.predict_proba(array.from_array(rng.dirichlet(np.ones(2), 9)))


def test_new_scores_of_another_kind_are_converted_and_not_declared(rng):
    proba = rng.dirichlet(np.ones(3), 60)
    logits, y = np.log(proba) + 3.0, np.arange(60) % 3
    with pytest.raises(ValueError, match=r"Pass scipy\.special\.softmax\(z, axis=1\)"):
        TemperatureScaling().fit(proba, y).predict_proba(logits)
    with pytest.raises(ValueError, match=r"Pass np\.log\(p\)"):
        TemperatureScaling(inputs="log_proba").fit(np.log(proba), y).predict_proba(proba)
    with pytest.warns(DataWarning, match=r"If these scores are probabilities, pass np\.log\(p\)"):
        TemperatureScaling(inputs="logits").fit(logits, y).predict_proba(proba)


def test_top_scores_must_be_of_the_classes_of_the_fit(model):
    top = TopScores([[0]], np.log([[0.5]]), n_classes=4)
    with pytest.raises(ValueError, match="4 classes, but TemperatureScaling was fitted with 3"):
        check_new_top_scores(model, top)
