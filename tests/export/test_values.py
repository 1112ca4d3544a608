"""Values of a program compute what NumPy computes with the same formula."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.export import Builder
from calibrant.export._values import Value, stack

ROWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])


def evaluate(formula):
    """The value of a formula of three columns."""
    build = Builder(3)
    result = formula(Value(build, 0))
    build.last((result if result.width == 3 else stack([result] * 3)).number)
    return build.program("proba", (0, 1, 2), "").run(ROWS)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: x + x,
        lambda x: x - x * 0.5,
        lambda x: 1.0 - x,
        lambda x: x * x,
        lambda x: x / 4.0,
        lambda x: x / (x + x).clip(0.25, 9.0),
        lambda x: x * (x > x * 0.5),
    ],
    ids=["add", "subtract", "rsub", "multiply", "divide", "quotient", "greater"],
)
def test_arithmetic_is_that_of_arrays(formula):
    np.testing.assert_array_equal(evaluate(formula), formula(ROWS))


def test_rows_are_summed_and_normalized():
    np.testing.assert_allclose(evaluate(lambda x: (x * 3.0).sum()), 3.0)
    half = evaluate(lambda x: (x > x.fill(0.4, 0.4, 0.4)).normalize())
    np.testing.assert_allclose(half, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    empty = evaluate(lambda x: (x * 0.0).normalize())
    np.testing.assert_allclose(empty, 1 / 3)


def test_columns_are_chosen_by_rank_and_replaced():
    np.testing.assert_array_equal(evaluate(lambda x: x.max())[:, 0], ROWS.max(axis=1))
    np.testing.assert_array_equal(evaluate(lambda x: x.column(1))[:, 0], ROWS[:, 1])
    put = evaluate(lambda x: x.put(x.top(1), x.fill(9.0)))
    np.testing.assert_array_equal(put, np.where(ROWS.max(axis=1)[:, None] == ROWS, 9.0, ROWS))


def test_one_column_and_one_value_need_no_operation():
    build = Builder(2)
    column = Value(build, 0).column(1)
    assert column.column(0) is column
    assert stack([column]) is column
