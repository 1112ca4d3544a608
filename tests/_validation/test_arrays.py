from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import as_array


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.5, 0.5], [1.0]], "Row 1 has 1 value, but row 0 has 2 values"),
        ([[0.5, 0.5], 1.0], "Row 1 has a single value without a list, but row 0 has 2 values"),
        ([1.0, [0.5, 0.5]], "Row 1 has 2 values, but row 0 has a single value without a list"),
    ],
)
def test_ragged_rows_are_named(rows, message):
    with pytest.raises(ValueError, match=message):
        as_array(rows)


def test_what_has_no_order_is_rejected():
    with pytest.raises(TypeError, match="The rows of a set have no order"):
        as_array({1, 2})


def test_arrow_tables_become_arrays():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [0.5, 0.25], "b": [0.5, 0.75]})
    np.testing.assert_array_equal(as_array(table), [[0.5, 0.5], [0.25, 0.75]])
