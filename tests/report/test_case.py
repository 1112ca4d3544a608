"""What a report is written from."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant._data.read import as_sample
from calibrant.report import _case, summarize
from calibrant.report._case import Case, rows_to_test
from calibrant.report._rows import DrawnRows, ReportRows


@pytest.fixture
def rows(rng):
    proba = rng.dirichlet(np.ones(3), 50)
    return DrawnRows(proba, proba, rng.integers(3, size=50), np.ones(50))


def case_of(rows, tested, n_rows=50):
    sample, _ = as_sample(np.full((n_rows, 2), 0.5), np.zeros(n_rows, dtype=int))
    return Case(None, (), ReportRows(sample, None), None, None, rows, tested)


def test_tests_use_fewer_rows_if_weights_are_not_integers(rows, monkeypatch):
    monkeypatch.setattr(_case, "_TESTED_ROWS", 40)
    monkeypatch.setattr(_case, "_TESTED_WEIGHTED_ROWS", 20)
    assert len(rows_to_test(rows, 0).y) == 40
    assert len(rows_to_test(rows._replace(weight=np.full(50, 0.5)), 0).y) == 20


def test_a_part_is_tested_if_rows_were_drawn_twice_or_once(rows):
    assert not case_of(rows, rows).is_part_tested
    assert case_of(rows, rows.draw(40, 0)).is_part_tested
    assert case_of(rows, rows, n_rows=60).is_part_tested


def test_the_bias_of_an_error_is_that_of_the_rows_to_test(report, data, metric, monkeypatch):
    proba, labels = data
    assert "rows" not in metric(report, "conf_ece").note
    monkeypatch.setattr(_case, "_TESTED_ROWS", 200)
    some = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert metric(some, "conf_ece").note.endswith("for 200 rows, and smaller for all rows.")
