"""`compare`: cross-validation, tables and intervals."""

from __future__ import annotations

import json
import sys
import tracemalloc

import numpy as np
import pytest

import calibrant
from calibrant import TemperatureScaling, compare, metrics
from calibrant._data.fold_plan import HeldOut
from calibrant._data.folds import as_folds
from calibrant._data.sample import ArraySample
from calibrant._kernels.simplex import softmax
from calibrant._output.numbers import format_number
from calibrant.datasets import digits_predictions
from calibrant.metrics.registry import as_metric
from calibrant.selection._held_out import sum_held_out


@pytest.fixture(scope="module")
def data():
    return digits_predictions()


@pytest.fixture(scope="module")
def result(data):
    return compare(
        data.val_labels,
        data.val_proba,
        methods=["temperature", "platt"],
        metrics=["log_loss", "accuracy"],
    )


def _calibrated(rng, n_rows, n_classes=3):
    logits = rng.normal(scale=1.5, size=(n_rows, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = np.exp(logits - logits.max(axis=1, keepdims=True))
    return labels, proba / proba.sum(axis=1, keepdims=True)


def test_the_uncalibrated_scores_come_first(result):
    assert result.methods == ("uncalibrated", "temperature", "platt")
    assert result.gains["data", "uncalibrated", "log_loss"].gain == 0.0


def test_means_and_spreads_are_those_of_the_folds(result, data):
    folds = as_folds(5, data.val_proba, data.val_labels, np.ones(len(data.val_labels)), None)
    losses = []
    for fold in folds:
        fitted = TemperatureScaling().fit(data.val_proba[fold.fit], data.val_labels[fold.fit])
        losses.append(
            metrics.log_loss(
                data.val_labels[fold.held_out], fitted.predict_proba(data.val_proba[fold.held_out])
            )
        )
    assert result.mean[0, 1, 0] == pytest.approx(np.mean(losses), rel=1e-9)
    assert result.spread[0, 1, 0] == pytest.approx(np.std(losses, ddof=1), rel=1e-9)


def test_ranks_know_that_accuracy_is_better_when_greater(result):
    accuracy = result.mean[0, :, 1]
    assert result.ranks[0, accuracy.argmax(), 1] < result.ranks[0, accuracy.argmin(), 1]
    assert result.ranks[0, result.mean[0, :, 0].argmin(), 0] == 1


def test_the_interval_contains_the_gain_and_excludes_zero(result):
    gain = result.gains["data", "temperature", "log_loss"]
    assert 0 < gain.low < gain.gain < gain.high
    assert gain.before - gain.after == pytest.approx(gain.gain)


def test_a_row_of_weight_two_counts_twice_in_means_and_not_in_errors(data):
    y, p = data.val_labels[:150], data.val_proba[:150]
    weight = np.arange(150) % 3 + 1
    copies = np.repeat(np.arange(150), weight)
    options = {"methods": {"t": TemperatureScaling()}, "metrics": ["log_loss"]}
    weighted = compare(y, p, sample_weight=weight, **options)
    repeated = compare(y[copies], p[copies], **options)
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-6)
    errors = [
        actual.gains["data", "t", "log_loss"].standard_error for actual in (weighted, repeated)
    ]
    assert errors[0] > errors[1]


def test_every_form_holds_the_same_numbers(result):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    plain = json.loads(json.dumps(result.to_dict()))
    assert (
        frame.loc[("data", "temperature"), "log_loss"]
        == plain["results"][1]["log_loss"]
        == result.mean[0, 1, 0]
    )
    assert f"| temperature | {format_number(result.mean[0, 1, 0])} " in result.to_markdown()
    assert str(result) == result.to_markdown()


def test_several_sets_are_ranked_together(rng):
    sets = {name: _calibrated(rng, 200) for name in ("a", "b", "c")}
    labels, scores = ({name: pair[i] for name, pair in sets.items()} for i in (0, 1))
    result = compare(
        labels,
        {k: v**3 / (v**3).sum(axis=1, keepdims=True) for k, v in scores.items()},
        methods=["temperature"],
    )
    assert result.mean.shape == (3, 2, 5)
    assert result.friedman["log_loss"].average_ranks == (2.0, 1.0)
    assert result.critical_difference == pytest.approx(
        1.1316, abs=1e-3
    )  # 1.960 sqrt(2 * 3 / (6 * 3))
    assert "Critical difference" in result.to_markdown()


def test_logits_and_labels_by_name(rng):
    labels, proba = _calibrated(rng, 200)
    names = np.array(["x", "y", "z"])
    result = compare(
        names[labels], np.log(proba) * 2, inputs="logits", classes=names, methods=["temperature"]
    )
    assert result.gains["data", "temperature", "log_loss"].gain > 0


def test_your_own_metric_and_calibrator_take_part(data):
    own = {"top": lambda y, p: float(p.max(axis=1).mean())}
    result = compare(
        data.val_labels,
        data.val_proba,
        methods={"mine": calibrant.StructuredScaling("vector")},
        metrics=own,
    )
    assert result.metrics == ("top",)
    assert result.mean[0, 1, 0] < result.mean[0, 0, 0]


def test_asking_for_a_bar_changes_nothing_and_without_a_terminal_needs_no_rich(
    result, data, monkeypatch
):
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    again = compare(
        data.val_labels,
        data.val_proba,
        methods=["temperature", "platt"],
        metrics=["log_loss", "accuracy"],
        progress=True,
    )
    np.testing.assert_array_equal(again.mean, result.mean)


def test_a_bar_that_no_terminal_shows_needs_no_package(data, monkeypatch):
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    given = {"methods": ["temperature"], "metrics": ["log_loss"], "cv": 2}
    compare(data.val_labels[:50], data.val_proba[:50], progress=True, **given)


def test_a_method_with_an_odd_name_stays_in_its_cell(data):
    given = {"methods": {"a|b": TemperatureScaling()}, "metrics": ["log_loss"], "cv": 2}
    table = compare(data.val_labels[:50], data.val_proba[:50], **given).to_markdown()
    assert "| a\\|b |" in table


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_judging_takes_the_memory_of_the_predictions(dtype, rng):
    proba = softmax(rng.normal(size=(200_000, 20))).astype(dtype)
    y = rng.integers(0, 20, len(proba))
    actual = TemperatureScaling().fit(proba[:1000], y[:1000])
    held_out = HeldOut(0, ArraySample(proba, y, np.ones(len(y))), np.zeros(len(y), dtype=int))
    names = ("log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece", "ks")
    judges = [as_metric(name) for name in (*names, metrics.cutoff_calibration_error)]
    tracemalloc.start()
    sum_held_out([[actual]], judges, "proba", held_out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * proba.size * 8  # probabilities are evaluated in float64


def test_unknown_names_are_rejected_with_those_that_are_known(data):
    message = r"Unknown method 'magic'. Valid names are auto, identity"
    with pytest.raises(ValueError, match=message):
        compare(data.val_labels, data.val_proba, methods=["magic"])
    with pytest.raises(ValueError, match=r"Unknown metric 'xyz'. Valid names are log_loss"):
        compare(data.val_labels, data.val_proba, metrics=["xyz"])
    with pytest.raises(ValueError, match="y_true must be a dict with the same names"):
        compare(data.val_labels, {"a": data.val_proba})


def test_one_row_cannot_be_compared():
    with pytest.raises(ValueError, match="fewer than two rows with positive weight"):
        compare([0], [[0.5, 0.5]])


@pytest.mark.slow
def test_intervals_of_nested_cross_validation_cover_the_true_gain():
    """For calibrated scores the interval covers the true gain, which is slightly below zero.

    The true gain of a simulation is the mean gain of its fitted calibrators on the distribution
    itself, whose probabilities are known. With 1,000 simulations, the standard error of a coverage
    of 93% is 0.8%.
    """
    n_simulations, n_rows = 1000, 200
    methods = {
        "temperature": TemperatureScaling(),
        "structured-vector": calibrant.StructuredScaling("vector"),
    }
    _, reference = _calibrated(np.random.default_rng(0), 1000)
    covered, claimed = np.zeros(2), np.zeros(2)
    expected = np.zeros((n_simulations, 2))
    intervals = np.zeros((n_simulations, 2, 2))
    for i in range(n_simulations):
        labels, proba = _calibrated(np.random.default_rng(1000 + i), n_rows)
        result = compare(labels, proba, methods=methods, metrics=["log_loss"], random_state=i)
        for m, (name, method) in enumerate(methods.items()):
            gain = result.gains["data", name, "log_loss"]
            intervals[i, m] = gain.low, gain.high
            for fold in as_folds(5, proba, labels, np.ones(n_rows), i)[:1]:
                q = method.fit(proba[fold.fit], labels[fold.fit]).predict_proba(reference)
                expected[i, m] = np.sum(reference * np.log(q / reference)) / len(reference)
    true = expected.mean(axis=0)
    covered = ((intervals[:, :, 0] <= true) & (true <= intervals[:, :, 1])).mean(axis=0)
    claimed = (intervals[:, :, 0] > 0).mean(axis=0)
    assert (true < 0).all()
    assert (covered >= 0.93).all()
    assert (claimed <= 0.04).all()
