from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import arrange_as_fitted, match_columns, match_labels, order_of
from calibrant._validation._columns import categories_of, classes_of, column_names


@pytest.mark.parametrize(
    ("names", "classes", "expected"),
    [
        (["b", "a"], ["a", "b"], [1, 0]),
        (["p_b", "p_a"], ["a", "b"], [1, 0]),
        (["prob.x_b", "prob.x_a"], ["a", "b"], [1, 0]),
        (["x_b", "x_a"], ["x_a", "x_b"], [1, 0]),
        (["2", "0", "1"], [0, 1, 2], [1, 2, 0]),
        ([2, 0, 1], [0.0, 1.0, 2.0], [1, 2, 0]),
        (["f", "g"], ["a", "b"], None),
        (["p_1", "p_2"], [0, 1], None),
        (["a", "b", "c"], ["a", "b"], None),
    ],
)
def test_columns_are_found_by_name_with_and_without_a_prefix(names, classes, expected):
    order = order_of(names, classes)
    assert (order if order is None else order.tolist()) == expected


def test_some_names_that_are_classes_beside_some_that_are_not_are_a_contradiction():
    with pytest.raises(
        ValueError,
        match="The column name 'c' is not one of the classes a, b, although the column name 'a'",
    ):
        order_of(["a", "c"], ["a", "b"])


@pytest.mark.parametrize(
    ("names", "labels", "expected"),
    [
        (["b", "a"], ["a"], ["b", "a"]),
        (["p_3", "p_1"], [1], [1, 3]),
        (["p_3", "p_1"], [1.0], [1.0, 3.0]),
        (["x", "y"], ["a", "b"], None),
        (["cat", "dog"], [0, 1], None),
    ],
)
def test_columns_name_the_classes_of_labels_that_are_among_them(names, labels, expected):
    found = classes_of(names, np.array(labels))
    assert (found if found is None else found.tolist()) == expected


def test_arrays_and_columns_without_names_have_none():
    pandas = pytest.importorskip("pandas")
    assert column_names(np.eye(2)) is None
    assert column_names([[0.5, 0.5]]) is None
    assert column_names(pandas.DataFrame(np.eye(2))) is None
    assert column_names(pandas.Series([0.5], name="a")) is None
    assert column_names(pandas.DataFrame(np.eye(2), columns=[1, 0])) == [1, 0]


def test_only_categories_whose_order_was_declared_count():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    declared = pandas.Categorical(["b", "a"], categories=["b", "a"])
    assert categories_of(declared).tolist() == ["b", "a"]
    assert categories_of(pandas.Series(declared)).tolist() == ["b", "a"]
    enum = polars.Series(["b", "a"], dtype=polars.Enum(["b", "a"]))
    assert categories_of(enum).tolist() == ["b", "a"]
    assert categories_of(polars.Series(["b", "a"], dtype=polars.Categorical)) is None
    assert categories_of(["b", "a"]) is None


def test_columns_that_are_in_order_are_not_copied():
    pandas = pytest.importorskip("pandas")
    table = np.eye(2)
    frame = pandas.DataFrame(table, columns=["a", "b"], copy=False)
    names = np.array(["a", "b"], dtype=object)
    assert np.shares_memory(arrange_as_fitted(frame, names, names), table)


def test_names_of_columns_match_labels_as_text_and_nothing_is_raised():
    assert match_labels(["p_b", "p_a"], {"a"}) == ["b", "a"]
    assert match_labels(["p_b", "p_a"], {"a", "c"}) is None
    assert match_columns(["a", "c"], ["a", "b"]) is None
