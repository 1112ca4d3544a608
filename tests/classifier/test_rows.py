"""Rows of all containers that a classifier accepts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from calibrant.classifier._rows import n_rows, params_of_rows, take_rows

ROWS = [slice(1, 3), np.array([3, 0])]


@pytest.mark.parametrize("rows", ROWS, ids=["slice", "indices"])
@pytest.mark.parametrize("kind", ["array", "list", "csr", "pandas", "polars", "pyarrow"])
def test_rows_come_in_the_container_that_they_were_in(kind, rows):
    values = np.arange(8.0).reshape(4, 2)
    data, back = _in_container(kind, values)
    taken = take_rows(data, rows)
    assert type(taken) is type(data)
    assert (n_rows(data), n_rows(taken)) == (4, 2)
    np.testing.assert_array_equal(back(taken), values[rows])


def _in_container(kind, values):
    if kind == "array":
        return values, np.asarray
    if kind == "list":
        return values.tolist(), np.asarray
    if kind == "csr":
        return sparse.csr_array(values), lambda matrix: matrix.toarray()
    package = pytest.importorskip(kind)
    columns = {"a": values[:, 0], "b": values[:, 1]}
    if kind == "pyarrow":
        return package.table(columns), lambda table: np.column_stack(list(table.columns))
    return package.DataFrame(columns), lambda frame: frame.to_numpy()


def test_parameters_with_a_value_for_each_row_follow_the_rows():
    per_row, by_list, other = np.arange(4), list("abcd"), np.arange(3)
    given = {"w": per_row, "l": by_list, "o": other, "s": "abcd", "n": 4, "z": np.array(4.0)}
    given["m"], given["none"] = dict.fromkeys(range(4)), None
    taken = params_of_rows(given, 4, np.array([2, 0]))
    assert taken["w"].tolist() == [2, 0]
    assert taken["l"] == ["c", "a"]
    for name in ("o", "s", "n", "z", "m", "none"):
        assert taken[name] is given[name]
