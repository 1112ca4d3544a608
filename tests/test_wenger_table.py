"""Table 2 of Wenger et al. 2020: one-vs-rest isotonic and temperature scaling on their MNIST
predictions."""

from __future__ import annotations

import numpy as np
import pytest
import wenger_table2

TOLERANCE = {
    "adaboost": 0.02,
    "xgboost": 0.005,
    "randomforest": 0.01,
}  # the spread over random splits


@pytest.mark.parametrize("model", TOLERANCE)
def test_isotonic_and_temperature_reach_the_published_errors(model, real_data):
    file = real_data(f"mnist_{model}_pycalib")
    chosen = {
        name: c
        for name, c in wenger_table2.methods().items()
        if name in ("isotonic", "temperature")
    }
    measured = wenger_table2.table(file["probs"].astype(np.float64), file["labels"], chosen)
    published = {name: wenger_table2.PUBLISHED[model][name] for name in chosen}
    assert measured == pytest.approx(published, abs=TOLERANCE[model])


def test_the_temperature_of_log_probabilities_is_another_method(real_data):
    file = real_data("mnist_adaboost_pycalib")
    chosen = {"temperature, log p": wenger_table2.methods()["temperature, log p"]}
    measured = wenger_table2.table(file["probs"].astype(np.float64), file["labels"], chosen)
    assert measured["temperature, log p"] == pytest.approx(0.133, abs=0.01)
