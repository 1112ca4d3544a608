"""Columns that define groups."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.group_columns import GroupLevels, as_columns, cut_groups, name_groups
from calibrant._data.sample import ArraySample


def sample(*columns, weight=None):
    n_rows = len(columns[0])
    weight = np.ones(n_rows) if weight is None else np.array(weight)
    rows = ArraySample(np.full((n_rows, 2), 0.5), np.zeros(n_rows, dtype=int), weight)
    rows.columns = columns
    return rows


def test_names_of_groups_are_text_and_missing_values_have_no_number():
    rows = sample(np.array([2.0, np.nan, 10.0]), np.array(["b", None, "a"], dtype=object))
    levels = GroupLevels.of(rows)
    assert [names.tolist() for names in levels.names] == [["10", "2"], ["a", "b"]]
    assert levels.n_groups == 4
    assert levels.codes(rows.columns).tolist() == [[1, 3], [-1, -1], [0, 2]]
    assert levels.codes([np.array([2, 7]), np.array(["a", "z"])]).tolist() == [[1, 2], [-1, -1]]


def test_rows_without_weight_define_no_groups():
    levels = GroupLevels.of(sample(np.array(["a", "b"]), weight=[1.0, 0.0]))
    assert levels.names[0].tolist() == ["a"]
    assert GroupLevels.of(ArraySample(np.ones((1, 2)), np.zeros(1), np.ones(1))).names == ()


def test_combinations_of_columns_are_groups_by_name():
    columns = as_columns({"site": ["x", "y", "x"], "half": [1, 1, 2]})
    assert list(cut_groups(columns)) == ["site=x, half=1", "site=x, half=2", "site=y, half=1"]
    assert name_groups([3, 1]).tolist() == ["3", "1"]
    with pytest.raises(ValueError, match="by has no columns"):
        as_columns({})
