from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from calibrant import compare, inference, metrics
from calibrant.metrics import Metric, expected_calibration_error, ks_error
from calibrant.metrics import registry as registry
from calibrant.metrics.registry import METRICS, as_metric, metric_label

Y = np.array([0, 1, 1, 0] * 10)
PROBA = np.array([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4], [0.9, 0.1]] * 10)

# Names that version 0.1.0 accepted.
OLD_NAMES = [
    *("log_loss", "brier_score", "accuracy", "conf_ece", "cw_ece", "tl_ece", "mce", "ks"),
    *("ks_error", "expected_calibration_error", "kde_calibration_error", "confidence_on_errors"),
    *("kernel_calibration_error", "smooth_calibration_error", "doubt_on_correct", "sharpness"),
]


def gap_of_class_one(y, p):
    """A metric of a user."""
    return abs(float(np.mean(y == 1) - np.mean(p[:, 1])))


def test_the_exported_metrics_are_those_of_the_table():
    functions = {metric.function for metric in METRICS.values()}
    assert {getattr(metrics, name) for name in registry.__all__} == functions
    assert set(registry.__all__) <= set(METRICS)
    assert set(registry.__all__) < set(metrics.__all__)


@pytest.mark.parametrize("name", OLD_NAMES)
def test_every_old_name_works_wherever_a_metric_is_named(name):
    assert np.isfinite(as_metric(name)(Y, PROBA))
    metrics.scorer(name)
    result = compare(Y, PROBA, methods=[], metrics=[name])
    assert result.metrics == (name,)
    if as_metric(name).binned_options is None:
        result = inference.bootstrap_interval(name, Y, PROBA, n_resamples=2, rng=0)
        assert result.quantity == name
    result = inference.consistency_test(Y, PROBA, name, 2, rng=0)
    assert result.test == f"consistency test, {name}"


def test_a_function_of_the_user_works_wherever_a_name_does():
    result = compare(Y, PROBA, methods=[], metrics=[gap_of_class_one, "log_loss"])
    assert result.metrics == ("gap_of_class_one", "log_loss")
    named = compare(Y, PROBA, methods=[], metrics={"gap": gap_of_class_one, "loss": "log_loss"})
    assert named.metrics == ("gap", "loss")
    assert (named.mean == result.mean).all()
    interval = inference.bootstrap_interval(gap_of_class_one, Y, PROBA, n_resamples=9, rng=0)
    assert interval.estimate == gap_of_class_one(Y, PROBA)
    test = inference.consistency_test(Y, PROBA, gap_of_class_one, 9, rng=0)
    assert test.statistic == gap_of_class_one(Y, PROBA)


def test_a_metric_of_the_user_has_a_direction():
    sure = Metric("sure", lambda y, p: float(p.max(axis=1).mean()), greater_is_better=True)
    scores = {"a": PROBA, "b": PROBA}
    result = compare({"a": Y, "b": Y}, scores, methods=["temperature"], metrics=[sure], cv=2)
    assert result.greater_is_better == {"sure"}
    best = result.mean[:, :, 0].argmax(axis=1)
    assert (result.ranks[[0, 1], best, 0] == 1).all()


def test_directions_are_known_of_names_functions_and_partials():
    assert as_metric("accuracy").better == "higher"
    assert as_metric(metrics.accuracy).better == "higher"
    assert as_metric(partial(metrics.accuracy)).greater_is_better
    assert as_metric("log_loss").better == as_metric(gap_of_class_one).better == "lower"
    assert as_metric("confidence_on_errors").better == "neither"


def test_binned_errors_are_recognised_by_name_as_function_and_as_partial():
    assert as_metric("cw_ece").binned_options == {"notion": "class-wise"}
    assert as_metric("expected_calibration_error").binned_options == {}
    assert as_metric(expected_calibration_error).binned_options == {}
    assert as_metric(partial(expected_calibration_error, norm=2)).binned_options == {"norm": 2}


def test_other_metrics_are_not_taken_for_binned_errors():
    for metric in ("ks_error", ks_error, partial(ks_error, notion="rank-2"), lambda y, p: 0.0):
        assert as_metric(metric).binned_options is None
    assert as_metric(partial(expected_calibration_error, Y)).binned_options is None


def test_every_exported_metric_can_be_named():
    for name in registry.__all__:
        named, exported = as_metric(name)(Y, PROBA), getattr(metrics, name)(Y, PROBA)
        np.testing.assert_equal(named, exported)  # a slope that is not determined is NaN
    expected = expected_calibration_error(Y, PROBA, notion="top-label")
    assert as_metric("tl_ece")(Y, PROBA) == expected


def test_an_unknown_name_is_an_error_that_lists_the_known_ones_and_suggests_the_nearest():
    with pytest.raises(
        ValueError, match=r"Unknown metric 'xyz'. Valid names are log_loss, brier_score"
    ):
        as_metric("xyz")
    with pytest.raises(ValueError, match=r"Did you mean 'ks_error'\? Valid names are .*cw_ece"):
        as_metric("ks_eror")
    with pytest.raises(TypeError, match="A metric must be a name, a function"):
        as_metric(3)


def test_names_to_show():
    assert metric_label("cw_ece") == "cw_ece"
    assert metric_label(partial(ks_error, notion="rank-2")) == metric_label(ks_error) == "ks_error"
    assert Metric("mine", gap_of_class_one).title == "mine"
