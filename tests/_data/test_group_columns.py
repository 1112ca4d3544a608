"""Columns that define groups."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.group_columns import (
    GroupLevels,
    as_columns,
    cut_groups,
    group_name,
    name_groups,
)
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


def test_names_of_groups_do_not_depend_on_other_rows_or_on_the_type_of_the_column():
    pd = pytest.importorskip("pandas")
    day, hour = "2024-01-01", "2024-02-01T05:00"
    dates = np.array([day, hour], dtype="M8[ns]")
    names = GroupLevels.of(sample(dates)).names[0].tolist()
    assert names == ["2024-01-01", "2024-02-01T05:00:00"]
    for column in (
        dates[:1],
        dates.astype("M8[s]"),
        dates.astype("M8[us]").astype(object),
        pd.Series(dates),
    ):
        levels = GroupLevels((np.array(names),))
        assert levels.codes([as_columns(column)["group"]])[0].tolist() == [0]
    assert group_name(pd.Timestamp(day)) == group_name(np.datetime64(day)) == day
    assert group_name(1.0) == group_name(1) == "1"


def test_missing_values_of_all_types_form_one_group():
    pd = pytest.importorskip("pandas")
    text = pd.Series(["a", None, "b"], dtype="string")
    flags = pd.Series([True, None, False], dtype="boolean")
    for column in (text, flags, ["a", np.nan, "b"], [1.0, None, 2]):
        part = as_columns(column)["group"]
        assert list(cut_groups({"group": part}))[-1] == "missing"
        assert GroupLevels.of(sample(part)).codes([part])[1].tolist() == [-1]
    counts = pd.Series([1, None, 2], dtype="Int64")
    assert list(cut_groups(as_columns(counts))) == ["1", "2", "missing"]


def test_combinations_whose_text_is_equal_stay_separate_groups():
    columns = as_columns({"a": ["x, b=1", "x"], "b": ["1", "1, b=1"]})
    assert list(cut_groups(columns)) == ["a='x', b='1, b=1'", "a='x, b=1', b='1'"]
