"""The numbers behind the charts of a report."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.guarantees import clopper_pearson
from calibrant.metrics import (
    MetricAccumulator,
    calibration_curve,
    expected_calibration_error,
    ks_error,
)
from calibrant.metrics.ks import ks_path
from calibrant.notions import as_notion
from calibrant.report import _charts
from calibrant.report._charts import class_rows, ks_graph, reliability, tables_of

NAMES = ("ant", "bee", "cat")


@pytest.fixture
def case(rng):
    before = rng.dirichlet(np.ones(3), 400)
    return rng.integers(3, size=400), np.ones(400), before, 0.5 * before + 1 / 6


def tables(case):
    y, weight, *both = case
    return [tables_of(MetricAccumulator(10).update(y, proba, weight)) for proba in both]


def confidence_path(y, proba):
    return ks_path(next(iter(as_notion("confidence").claims(proba, y, np.ones(len(y))))))


def test_the_tables_of_an_accumulator_are_those_of_the_metric(case):
    y, weight, before, _ = case
    for name, table in tables(case)[0].items():
        expected = calibration_curve(y, before, notion=name, n_bins=10, sample_weight=weight)
        np.testing.assert_allclose(table.outcome, expected.outcome)
        np.testing.assert_allclose(table.score, expected.score)


def test_there_is_a_diagram_of_confidence_and_one_of_every_class(case):
    found = [(one.notion, one.column) for one in reliability(tables(case), NAMES)]
    assert found[0] == ("confidence", None)
    assert sorted(found[1:]) == sorted(
        (notion, k) for notion in ("class-wise", "top-label") for k in range(3)
    )


def test_every_diagram_has_a_caption(case):
    captions = {(one.notion, one.column): one.question for one in reliability(tables(case), NAMES)}
    assert captions["confidence", None] == (
        "The figure compares the confidence and the accuracy of all rows."
    )
    assert captions["top-label", 1] == (
        "The figure compares the confidence and the accuracy of rows predicted as class bee."
    )
    assert captions["class-wise", 2] == (
        "The figure compares the predicted probability and the observed frequency of class cat in "
        "all rows."
    )


def test_the_classes_with_the_largest_part_in_the_error_come_first(case):
    y, _, before, _ = case
    order = [o.column for o in reliability(tables(case), NAMES) if o.notion == "class-wise"]
    errors = [expected_calibration_error(y, before, notion=f"class-{k}", n_bins=10) for k in order]
    assert errors == sorted(errors, reverse=True)


def test_of_many_classes_those_of_the_smallest_errors_are_left_out(case, monkeypatch):
    all_of_them = [o.column for o in reliability(tables(case), NAMES) if o.notion == "class-wise"]
    monkeypatch.setattr(_charts, "MOST_CLASSES", 2)
    kept = [o.column for o in reliability(tables(case), NAMES) if o.notion == "class-wise"]
    assert kept == all_of_them[:2]


def test_a_curve_holds_the_occupied_bins_with_exact_intervals(case):
    y, _, before, _ = case
    curve = reliability(tables(case), NAMES)[0].before
    table = calibration_curve(y, before, n_bins=10)
    some = table.weight[0] > 0
    low, high = clopper_pearson(table.outcome[0][some], table.weight[0][some], 0.05)
    assert curve.count == tuple(table.weight[0][some])
    assert curve.low == pytest.approx(low, abs=1e-5)
    assert curve.high == pytest.approx(high, abs=1e-5)
    assert curve.frequency == pytest.approx(table.mean_outcome[0][some], abs=1e-5)


def test_the_ks_graph_starts_at_zero_and_ends_at_scores_minus_outcomes(case):
    y, _, before, after = case
    graph = ks_graph([confidence_path(y, proba) for proba in (before, after)])
    assert graph.before[0] == 0.0
    expected = before.max(axis=1).mean() - np.mean(before.argmax(axis=1) == y)
    assert graph.before[-1] == pytest.approx(expected, abs=1e-5)
    assert graph.before_error == ks_error(y, before)
    assert graph.after_error == ks_error(y, after)


def test_the_ks_graph_does_not_depend_on_the_order_of_tied_rows(rng):
    proba = np.repeat([[0.6, 0.4], [0.8, 0.2]], 50, axis=0)
    y = rng.integers(2, size=100)
    turned = np.r_[np.arange(50)[::-1], np.arange(50, 100)[::-1]]
    paths = (confidence_path(own, proba) for own in (y, y[turned]))
    one, other = (ks_graph([path, path]) for path in paths)
    assert one.before == other.before
    assert one.before_error == pytest.approx(other.before_error, abs=1e-12)


def test_rows_of_a_class_hold_its_own_errors(case):
    y, _, before, after = case
    row = class_rows(tables(case), np.bincount(y), NAMES)[1]
    assert (row.name, row.rows) == ("bee", int((y == 1).sum()))
    assert row.predicted == int((before.argmax(axis=1) == 1).sum())
    assert row.class_after == pytest.approx(
        expected_calibration_error(y, after, notion="class-1", n_bins=10), abs=1e-6
    )


def test_a_class_that_is_never_predicted_has_no_top_label_error(rng):
    proba = rng.dirichlet(np.ones(3), 50) * [1.0, 1.0, 0.0]
    proba /= proba.sum(axis=1, keepdims=True)
    accumulator = MetricAccumulator(15).update(rng.integers(0, 2, 50), proba)
    tables = tables_of(accumulator)
    row = class_rows([tables, tables], np.array([25.0, 25.0, 0.0]), ["a", "b", "c"])[2]
    assert (row.predicted, row.top_before, row.top_after) == (0, None, None)
    assert row.class_before == 0.0
