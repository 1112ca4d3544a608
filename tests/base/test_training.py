"""What a fit remembers of its data."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import MulticlassToBinary, PlattScaling, TemperatureScaling
from calibrant._data.sample import summary_places
from calibrant.metrics import log_loss


def data(rng, n_samples, n_classes=3):
    logits = rng.normal(size=(n_samples, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return 3.0 * logits, labels


def test_logits_and_weights_are_summarised_as_given(rng):
    logits, labels = data(rng, 400)
    weight = rng.integers(0, 3, 400).astype(float)
    model = TemperatureScaling(inputs="logits").fit(logits, labels, sample_weight=weight)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert model.training_.n_samples == weight.sum()
    assert model.training_.n_rows == np.count_nonzero(weight)
    assert model.training_.log_loss_before == pytest.approx(
        log_loss(labels, proba, sample_weight=weight), rel=1e-12
    )
    after = log_loss(labels, model.predict_proba(logits), sample_weight=weight)
    assert model.training_.log_loss_after == pytest.approx(after, rel=1e-12)


@pytest.mark.parametrize("prior_scale", [None, 0.5])
@pytest.mark.parametrize("change", ["", "wrong by far", "impossible", "sharper"])
def test_losses_that_a_fit_met_on_its_way_are_those_of_its_predictions(rng, change, prior_scale):
    logits, labels = data(rng, 300)
    if change == "wrong by far":
        logits[0], labels[0] = [60.0, 0.0, 0.0], 1  # beyond the floor of the log-loss
    if change == "impossible":
        logits[labels != 2, 2] = -np.inf
    model = TemperatureScaling(prior_scale, inputs="logits", eps=1e-6)
    model.fit(0.1 * logits if change == "sharper" else logits, labels)
    if change == "sharper":
        logits = 0.1 * logits
    before = log_loss(labels, logits, inputs="logits")
    assert model.training_.log_loss_before == pytest.approx(before, rel=1e-12)
    after = log_loss(labels, model.predict_proba(logits))
    assert model.training_.log_loss_after == pytest.approx(after, rel=1e-12)


def test_many_rows_are_sampled_evenly(rng):
    logits, labels = data(rng, 100_000)
    training = TemperatureScaling(inputs="logits").fit(logits, labels).training_
    assert training.n_samples == 100_000
    assert training.n_rows == len(summary_places(100_000, 3)) == 2**13 // 3
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    losses = -np.log(proba[np.arange(len(labels)), labels])
    four_errors = 4 * losses.std() / np.sqrt(training.n_rows)
    assert training.log_loss_before == pytest.approx(log_loss(labels, proba), abs=four_errors)


def test_a_class_never_seen_has_no_weight(rng):
    logits, labels = data(rng, 200)
    training = (
        TemperatureScaling(inputs="logits").fit(logits[labels != 1], labels[labels != 1]).training_
    )
    assert training.class_weights[1] == 0
    assert training.to_dict()["class_weights"] == list(training.class_weights)


def test_the_parts_of_a_reduction_have_no_summary_of_their_own(rng):
    logits, labels = data(rng, 200)
    model = MulticlassToBinary(PlattScaling(), inputs="logits").fit(logits, labels)
    assert model.training_.n_rows == 200
    assert not any("training_" in vars(part) for part in model.calibrators_)
