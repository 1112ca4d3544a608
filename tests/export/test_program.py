"""Programs as data: checked, serialised, run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant
from calibrant.export import Node, Program, program
from calibrant.export._program import Builder


@pytest.fixture(scope="module")
def tempered():
    scores = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]
    return program(calibrant.TemperatureScaling().fit(scores, [0, 1, 0]))


def test_a_program_is_read_back_as_it_was(tempered):
    again = Program.from_json(tempered.to_json())
    assert again.to_json() == tempered.to_json()
    assert np.array_equal(again([[0.3, 0.7]]), tempered([[0.3, 0.7]]))


def test_float32_scores_give_float32_probabilities(tempered):
    assert tempered(np.array([[0.25, 0.75]], dtype=np.float32)).dtype == np.float32


def test_scores_of_other_columns_are_rejected(tempered):
    with pytest.raises(ValueError, match=r"X has shape \(1, 3\), but the program has 2 classes"):
        tempered([[0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "x"}, "format"),
        ({"schema": 2}, "schema"),
        ({"nodes": {}}, "lists"),
        ({"classes": [0]}, "at least two classes, got 1"),
        ({"inputs": "odds"}, "inputs"),
        (
            {"nodes": [{"op": "eval", "args": [0], "constants": {}}]},
            "the program contains an unknown operation",
        ),
        ({"nodes": [{"op": "log", "args": [1], "constants": {}}]}, "must be earlier values"),
        ({"nodes": [{"op": "log", "args": [], "constants": {}}]}, "expected 1 argument, got 0"),
        ({"nodes": [{"op": "log", "args": ["0"], "constants": {}}]}, "must be integers"),
        (
            {"nodes": [{"op": "log", "args": [0], "constants": {"by": 1}}]},
            "expected the constants none, got by",
        ),
        (
            {"nodes": [{"op": "sum", "args": [0], "constants": {}}]},
            "1 columns, but there are 2 classes",
        ),
        ({"nodes": [7]}, "not a valid program"),
        ({"classes": [0, 0]}, "classes must be distinct"),
        ({"classes": ["a", "\ud800"]}, "surrogates"),
    ],
)
def test_a_damaged_program_is_rejected_with_the_reason(tempered, change, said):
    document = {**json.loads(tempered.to_json()), **change}
    with pytest.raises(ValueError, match=said):
        Program.from_json(json.dumps(document))


def test_text_that_is_not_json_is_rejected():
    with pytest.raises(ValueError, match="not a valid program"):
        Program.from_json("import os")


def test_deeply_nested_text_is_rejected():
    with pytest.raises(ValueError, match="nested too deeply"):
        Program.from_json("[" * 100_000)


def test_nan_is_rejected(tempered):
    text = tempered.to_json().replace('"by": ', '"by": NaN, "x": ')
    with pytest.raises(ValueError, match="NaN is not allowed"):
        Program.from_json(text)


@pytest.mark.parametrize(
    ("op", "constants", "said"),
    [
        ("scale", {"factor": np.ones(3), "offset": np.ones(1)}, "factor must have length"),
        ("affine", {"coef": np.ones((2, 3)), "offset": np.ones(2)}, "coef must have 2 columns"),
        (
            "step",
            {"edges": [1.0, 0.0], "values": [0, 1, 2], "side": "left"},
            "edges must be in increasing order",
        ),
        ("step", {"edges": [0.0], "values": [0.0, 1.0], "side": "up"}, "side"),
        ("interpolate", {"x": [0.0, 0.0], "y": [0.0, 1.0]}, "x must be strictly increasing"),
        ("bumps", {"centers": [0.0], "heights": [], "width": 1.0}, "heights"),
        ("top", {"count": 3}, "between 1 and 2"),
        ("columns", {"columns": np.array([2])}, "numbers from 0 to 1"),
        ("mix", {"weights": [1.0, 1.0], "constant": 0.0}, "weights"),
        ("divide", {"by": 0.0}, "must not be 0"),
        ("divide", {"by": np.nan}, "without NaN"),
        ("clip", {"low": 1.0, "high": 0.0}, "must not exceed"),
        ("admit", {"low": 0.0, "high": 1.0, "slack": -1.0}, "must not be negative"),
        ("step", {"edges": [[0.0]], "values": [0.0, 1.0], "side": "left"}, "list of numbers"),
        ("interpolate", {"x": [0.0, 5e-324], "y": [0.0, 1.0]}, "slopes between the points"),
        ("bumps", {"centers": [0.0], "heights": [1.0], "width": 0.0}, "must be positive"),
        ("bumps", {"centers": [], "heights": [], "width": 1.0}, "centers must not be empty"),
        ("columns", {"columns": np.array([0.5])}, "columns must be"),
        ("constant", {"values": []}, "must not be empty"),
        ("top", {"count": 1.0}, "must be an integer"),
    ],
)
def test_constants_that_do_not_fit_are_rejected(op, constants, said):
    with pytest.raises(ValueError, match=said):
        Builder(2).append(op, (0,), constants)


def test_arguments_that_do_not_fit_are_rejected():
    build = Builder(3)
    two = build.append("top", (0,), {"count": 2})
    with pytest.raises(ValueError, match="must have 1 or 3 columns, got 2"):
        build.append("add", (0, two))
    with pytest.raises(ValueError, match="same number of columns"):
        build.append("mix", (0, two), {"weights": np.zeros(2), "constant": 0.0})
    with pytest.raises(ValueError, match="third argument must have 1 or 2 columns, got 3"):
        build.append("put", (0, two, 0))


@pytest.mark.parametrize(
    "source", ['x"""\nraise SystemExit\n"""', "x)\nf()\n//", "a b", "a..b", "*/"]
)
def test_text_of_a_program_file_is_not_written_into_code(tempered, source):
    document = {**json.loads(tempered.to_json()), "source": source}
    with pytest.raises(ValueError, match="name of a class"):
        Program.from_json(json.dumps(document))


@pytest.mark.parametrize("source", ["", "TemperatureScaling", "package.module.Kalibrátor"])
def test_the_source_is_the_name_of_a_class(tempered, source):
    document = {**json.loads(tempered.to_json()), "source": source}
    assert Program.from_json(json.dumps(document)).source == source


def test_a_short_program_cannot_take_all_memory(tempered):
    doublings = [{"op": "stack", "args": [i, i], "constants": {}} for i in range(40)]
    document = {**json.loads(tempered.to_json()), "nodes": doublings}
    with pytest.raises(
        ValueError, match="16,777,214 columns in total, but at most 10,000,000 are allowed"
    ):
        Program.from_json(json.dumps(document))


def test_wide_values_are_computed_for_few_rows_at_a_time():
    build = Builder(2)
    wide = build.append("stack", (0,) * 20_000)
    build.append("columns", (wide,), {"columns": [0, 1]})
    program = build.program("logits", (0, 1), "")
    rows = np.random.default_rng(0).normal(size=(20_000, 2))  # 6 GB in one block
    assert np.array_equal(program(rows), rows)


def test_entries_are_taken_only_by_values_that_name_columns():
    build = Builder(3)
    three = build.append("constant", (0,), {"values": [3.0]})
    two = build.append("columns", (0,), {"columns": [0, 1]})
    top = build.append("top", (0,), {"count": 1})
    for row, label in [(0, 0), (0, three), (two, top)]:
        with pytest.raises(ValueError, match="must refer to columns"):
            build.append("take", (row, label))
        with pytest.raises(ValueError, match="must refer to columns"):
            build.append("put", (row, label, top))


def test_a_node_must_say_its_width():
    with pytest.raises(ValueError, match="returns 2 columns, but its width is 3"):
        Program("logits", (0, 1), (Node("softmax", (0,), {}, 3),))


def test_the_same_operation_is_written_once():
    build = Builder(3)
    assert build.append("log", (0,)) == build.append("log", (0,))
    assert len(build.nodes) == 1


def test_a_wrong_number_of_columns_is_found_before_bad_sums(rng):
    proba = rng.dirichlet(np.ones(3), 30)
    exported = program(calibrant.Identity().fit(proba, np.arange(30) % 3))
    for scores in (proba[:, :2], proba[:, 0]):
        with pytest.raises(ValueError, match=r"but the program has 3 classes. Pass one column per"):
            exported(scores)
