from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from calibrant import metrics
from calibrant.inference._statistics import as_metric, binned_options, metric_name
from calibrant.metrics import expected_calibration_error, ks_error


def test_binned_errors_are_recognised_by_name_as_function_and_as_partial():
    assert binned_options("cw_ece") == {"notion": "class-wise"}
    assert (
        binned_options("expected_calibration_error")
        == binned_options(expected_calibration_error)
        == {}
    )
    assert binned_options(partial(expected_calibration_error, norm=2)) == {"norm": 2}


def test_other_metrics_are_not_taken_for_binned_errors():
    for metric in ("ks_error", ks_error, partial(ks_error, notion="rank-2"), lambda y, p: 0.0):
        assert binned_options(metric) is None


def test_every_metric_can_be_named():
    y, proba = np.array([0, 1, 1]), np.array([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]])
    for name in set(metrics.__all__) - {"MetricAccumulator", "calibration_curve", "scorer"}:
        assert as_metric(name)(y, proba) == getattr(metrics, name)(y, proba)
    assert as_metric("tl_ece")(y, proba) == expected_calibration_error(y, proba, notion="top-label")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown metric 'ECE'; .* conf_ece, cw_ece"):
        as_metric("ECE")


def test_names_to_show():
    assert metric_name("cw_ece") == "cw_ece"
    assert metric_name(partial(ks_error, notion="rank-2")) == metric_name(ks_error) == "ks_error"
