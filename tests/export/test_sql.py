"""Queries, run by SQLite and DuckDB."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant
from calibrant import export
from calibrant._kernels.simplex import log_softmax, softmax
from calibrant.export._sql_ops import DIALECTS
from exported import CASES, check, fitted, run_sql

ENGINES = ("sqlite", "duckdb")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize(("calibrator", "n_classes", "inputs"), CASES)
def test_a_query_is_its_calibrator(calibrator, n_classes, inputs, dialect):
    check(lambda p, x: run_sql(p, x, dialect), calibrator, n_classes, inputs)


@pytest.mark.parametrize("inputs", ["proba", "logits", "log_proba"])
def test_a_thousand_classes_fit_into_the_tables_of_sqlite(inputs):
    logits = np.random.default_rng(0).normal(size=(20, 1000))
    scores = {"logits": logits, "log_proba": log_softmax(logits), "proba": softmax(logits)}[inputs]
    model = calibrant.Identity(inputs=inputs).fit(scores, scores.argmax(axis=1))
    proba, _ = run_sql(export.program(model), scores, "sqlite")
    assert np.abs(proba - model.predict_proba(scores)).max() <= 1e-15


HOSTILE = ['x"; DROP TABLE scores; --', "it's \\", "`'); DROP TABLE scores; --"]


@pytest.mark.parametrize("dialect", ENGINES)
def test_hostile_names_of_columns_and_classes_are_quoted(dialect):
    model = calibrant.TemperatureScaling(prior_scale=0.25, classes=HOSTILE)
    model.fit(np.full((6, 3), 1 / 3) + 0.1 * np.eye(3)[[0, 1, 2] * 2] - 0.1 / 3, HOSTILE * 2)
    columns = ['a"b', "c; DROP TABLE scores; --", "d'e\\"]
    proba, labels = run_sql(export.program(model), np.eye(3), dialect, columns)
    assert labels == HOSTILE
    assert np.abs(proba - model.predict_proba(np.eye(3))).max() <= 1e-15


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["a"]}, "must be 2 different names of score columns"),
        ({"columns": ["a", "a"]}, "must be 2 different names of score columns"),
        ({"columns": ["a", "A"]}, "must be 2 different names of score columns"),
        ({"columns": ["a", "b"], "keep": ["CALIBRANT_0"]}, "must not begin"),
        ({"columns": ["a", "b"], "keep": ["id", "ID"]}, "would have the name 'ID'"),
        ({"columns": ["a", "b"], "keep": ["Calibrated_1"]}, "would have the name 'Calibrated_1'"),
        ({"columns": ["a", "b"], "keep": ["calibrated_label"]}, "would have the name"),
        ({"columns": ["a", "b"], "dialect": "duckbd"}, "Did you mean 'duckdb'"),
        ({"columns": ["a", "b"], "keep": ["calibrant_0"]}, "must not begin"),
        ({"columns": ["a", "b\0"]}, "cannot be written"),
        ({"columns": ["a", ""]}, "cannot be written"),
    ],
)
def test_what_makes_no_query_is_rejected(options, said):
    model, _ = fitted(calibrant.Identity(), 2)
    with pytest.raises(ValueError, match=said):
        export.to_sql(model, table="t", **options)


@pytest.mark.parametrize("classes", [["cat", "Cat"], ["label", "other"], ["LABEL", "x"], [1, "1"]])
def test_classes_that_would_share_a_column_are_rejected(classes):
    build = export.Builder(2)
    build.append("softmax", (0,))
    program = build.program("logits", tuple(classes), "")
    with pytest.raises(ValueError, match=r"Two columns .* would have the name .* classes="):
        export.to_sql(program, table="t", columns=["a", "b"])


@pytest.mark.parametrize("label", [True, 2, 2.5])
def test_labels_that_are_no_text_are_values(label):
    model = calibrant.Identity(classes=[0, label]).fit(np.eye(2), np.array([0, label]))
    _, labels = run_sql(export.program(model), np.eye(2), "sqlite")
    assert labels[1] == label


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_that_no_test_executes_say_that_they_are_experimental(dialect):
    model = calibrant.Identity(classes=["a", "b"]).fit([[0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    query = export.to_sql(model, table="t", columns=["p", "q"], dialect=dialect)
    assert query.startswith("-- Experimental: ") is (dialect not in ENGINES)
