"""Scores of questions with different numbers of options."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant import (
    AutoCalibration,
    CrossFitted,
    IsotonicCalibration,
    MulticlassToBinary,
    OptionScores,
    TemperatureScaling,
    VectorScaling,
    compare,
    evaluate,
    method,
)
from calibrant.metrics import registry


def ragged(rng, n_rows=400, temperature=2.0):
    """Overconfident scores of 2 to 5 options, and labels."""
    counts = rng.integers(2, 6, n_rows)
    logits = rng.normal(size=(n_rows, 5)) * 2
    logits[np.arange(5) >= counts[:, None]] = np.nan
    proba = np.where(np.isnan(logits), 0, np.exp(logits / temperature))
    proba /= proba.sum(axis=1, keepdims=True)
    labels = (proba.cumsum(axis=1) < rng.random(n_rows)[:, None]).sum(axis=1)
    return OptionScores(logits, counts), np.minimum(labels, counts - 1)


METHODS = ["temperature", "vector", "structured-vector", "structured-matrix", "dirichlet"]
METHODS += ["isotonic", "bayesian-temperature", "ensemble-temperature", "platt", "identity"]


@pytest.mark.parametrize("name", METHODS)
def test_absent_options_have_probability_zero_after_calibration(rng, name):
    options, labels = ragged(rng)
    model = CrossFitted(method(name), cv=3, inputs="log_proba").fit(options, labels)
    proba = model.predict_proba(options)
    assert (proba[~options.is_present] == 0).all()
    assert (proba[options.is_present] > 0).mean() > 0.99
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isneginf(model.predict_log_proba(options)[~options.is_present]).all()
    assert (model.predict(options) < options.n_options).all()


def test_stack_improves_ragged_scores_and_is_not_worse_than_temperature(rng):
    options, labels = ragged(rng, 1500)
    new, new_labels = ragged(rng, 1500)
    auto = AutoCalibration(inputs="log_proba").fit(options, labels)
    temperature = TemperatureScaling(inputs="log_proba").fit(options, labels)
    losses = [
        evaluate(new_labels, scores).log_loss
        for scores in (new, auto.predict_proba(new), temperature.predict_proba(new))
    ]
    assert (auto.predict_proba(new)[~new.is_present] == 0).all()
    assert losses[1] < losses[0] - 0.05
    assert losses[1] < losses[2] + 0.005


def test_temperature_is_that_of_the_likelihood_over_present_options(rng):
    options, labels = ragged(rng, 1000, temperature=4.0)
    rows = np.arange(len(labels))

    def loss(temperature):
        scaled = np.exp(options.log_proba / temperature)
        return -np.log(scaled[rows, labels] / scaled.sum(axis=1)).mean()

    best = minimize_scalar(loss, bounds=(1, 10), method="bounded", options={"xatol": 1e-8}).x
    fitted = TemperatureScaling(inputs="log_proba").fit(options, labels).temperature_
    assert fitted == pytest.approx(best, rel=1e-4)


def test_reduction_keeps_absent_options(rng):
    options, labels = ragged(rng)
    for notion in ("confidence", "top-label", "class-wise"):
        model = MulticlassToBinary(IsotonicCalibration(), notion=notion, inputs="log_proba")
        proba = model.fit(options, labels).predict_proba(options)
        assert (proba[~options.is_present] == 0).all()


def test_metrics_of_options_are_those_of_their_probabilities(rng):
    options, labels = ragged(rng)
    assert evaluate(labels, options) == evaluate(labels, options.proba)
    assert evaluate(labels, options, inputs="log_proba").log_loss == pytest.approx(
        evaluate(labels, options.proba).log_loss
    )
    for metric in registry.METRICS.values():
        expected = metric.function(labels, options.proba)
        assert metric.function(labels, options) == expected, metric.function.__name__


def test_groups_of_options(rng):
    options, labels = ragged(rng)
    groups = evaluate(labels, options, by=np.arange(len(labels)) % 2)
    assert groups["0"].evaluation.n_samples == 200


def test_plots_accept_options(rng):
    pytest.importorskip("matplotlib").use("Agg")
    from calibrant.plots import CumulativeDisplay, ReliabilityDisplay

    options, labels = ragged(rng)
    for display in (ReliabilityDisplay, CumulativeDisplay):
        assert display.from_predictions(labels, options).plot() is not None


def test_comparison_of_calibrators_on_options(rng):
    options, labels = ragged(rng, 200)
    with pytest.raises(ValueError, match="inputs='log_proba'"):
        compare(labels, options)
    result = compare(labels, options, methods=["temperature"], inputs="log_proba", cv=2)
    assert "temperature" in str(result)


def test_calibrators_of_probabilities_are_told_the_fix(rng):
    options, labels = ragged(rng, 50)
    with pytest.raises(ValueError, match=r"TemperatureScaling\(\.\.\., inputs='log_proba'\)"):
        TemperatureScaling().fit(options, labels)


def test_questions_with_fewer_options_than_at_fit(rng):
    options, labels = ragged(rng)
    model = VectorScaling(inputs="log_proba").fit(options, labels)
    few = OptionScores([[-1.0, -2.0]])
    proba = model.predict_proba(few)
    assert proba.shape == (1, 5)
    assert (proba[0, 2:] == 0).all()
    with pytest.raises(ValueError, match=r"up to 6 options.*at most 5"):
        model.predict_proba(OptionScores(np.zeros((1, 6))))


def test_rows_can_be_selected_and_shown(rng):
    options, _ = ragged(rng, 20)
    assert len(options[:5]) == 5
    np.testing.assert_array_equal(options[[3, 1]].proba, options.proba[[3, 1]])
    assert repr(OptionScores(np.zeros((3, 4)))) == "OptionScores(3 rows, 4 options)"
    assert "2 to 5 options" in repr(options)
    assert options.shape == (20, 5)


def test_present_options_keep_a_positive_probability():
    options = OptionScores([[0.0, -5000.0, 0.0], [0.0, -np.inf, 0.0]], [2, 3])
    assert options.proba[0, 1] > 0
    assert options.proba[0, 2] == 0
    assert options.proba[1, 1] > 0


@pytest.mark.parametrize(
    ("scores", "counts", "message"),
    [
        ([0.0, 1.0], None, r"shape \(n, K\).*from_rows"),
        ([[0.0]], None, r"log_proba must have 2 to .* columns, one per option, got shape \(1, 1\)"),
        ([[0.0, 1.0]], [3], r"n_options\[0\] is 3"),
        ([[0.0, 1.0]], [0], "between 1 and 2"),
        ([[0.0, 1.0]], [1.5], "1 integers"),
        ([[0.0, np.nan]], None, r"log_proba\[0, 1\] is nan"),
        ([[0.0, np.inf]], None, "NaN and"),
        ([[-np.inf, 0.0]], [1], "All options of row 0"),
    ],
)
def test_wrong_options_are_errors(scores, counts, message):
    with pytest.raises(ValueError, match=message):
        OptionScores(scores, counts)


def test_labels_of_absent_options_are_errors():
    options = OptionScores.from_rows([[0, 1, 2], [0, 1]])
    with pytest.raises(ValueError, match="label of row 1 is 2, but its question has 2 options"):
        evaluate([0, 2], options)
    with pytest.raises(TypeError, match=r"Pass scores\.proba"):
        np.asarray(options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("name", "temperature", "auto"),
    [
        ("llm_emotion_llama-2-13b-task-icl1", 0.100, 0.247),
        ("llm_emotion_mistral-7b-v0.1-task-icl1", 0.004, 0.145),
    ],
)
def test_gains_on_real_option_logits(real_data, name, temperature, auto):
    data = real_data(name)
    options, labels = OptionScores(data["logits"].astype(np.float64)), data["labels"]
    gains = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        fit, test = order[:300], order[300:4300]
        before = evaluate(labels[test], options[test]).log_loss
        models = (TemperatureScaling(inputs="log_proba"), AutoCalibration(inputs="log_proba"))
        after = [m.fit(options[fit], labels[fit]).predict_proba(options[test]) for m in models]
        gains.append([before - evaluate(labels[test], proba).log_loss for proba in after])
    # Three splits of 300 calibration rows: their standard deviation is below 0.01.
    np.testing.assert_allclose(np.mean(gains, axis=0), [temperature, auto], atol=0.015)
