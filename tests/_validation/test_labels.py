"""Labels become column codes; missing and ambiguous labels are reported."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation.labels import (
    check_classes,
    encode_labels,
    is_one_hot,
    raise_if_missing,
    raise_if_other_kind,
    warn_count_from_one,
)
from calibrant.exceptions import DataWarning


def test_integer_and_boolean_labels_are_column_indices():
    assert encode_labels([0, 2], 3)[0].tolist() == [0, 2]
    assert encode_labels([True, False], 2)[0].tolist() == [1, 0]


def test_integer_labels_of_the_native_type_are_not_copied():
    y = np.array([0, 1, 2])
    assert np.shares_memory(encode_labels(y, 3)[0], y)


def test_text_labels_are_matched_by_classes_in_the_order_of_the_columns():
    codes, classes = encode_labels(["dog", "cat"], 3, ["dog", "owl", "cat"])
    assert codes.tolist() == [0, 2]
    assert classes.tolist() == ["dog", "owl", "cat"]


def test_text_labels_without_classes_are_matched_in_sorted_order():
    with pytest.warns(
        DataWarning, match="assumed to be the classes 'cat', 'dog', 'owl', in sorted"
    ):
        codes, classes = encode_labels(["owl", "cat", "dog"], 3)
    assert codes.tolist() == [2, 0, 1]
    assert classes.tolist() == ["cat", "dog", "owl"]


def test_integer_labels_can_be_given_classes():
    assert encode_labels([10, 30], 3, [30, 20, 10])[0].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("labels", "n_classes", "classes", "message"),
    [
        ([0, 3], 3, None, r"Label 3 in row 1 is out of range. .* 0 to 2. .*classes="),
        ([0, -1], 3, None, r"Label -1 in row 1"),
        ([1, 2, 3], 3, None, r"Pass classes=range\(1, 4\) if this is the order of the columns"),
        ([-1, 1], 2, None, r"Pass classes=\[-1, 1\] if this is the order of the columns"),
        ([0, 1, 2], 2, None, r"Pass scores with one column per class"),
        (
            ["cat", "dog"],
            3,
            None,
            r"2 different values \('cat', 'dog'\), but the scores have 3 columns. .*classes=",
        ),
        (["a", "b", "c"], 2, None, r"but the scores have 2 columns. Pass scores with one column"),
        (
            ["cat", "fox"],
            2,
            ["cat", "dog"],
            r"Label 'fox' in row 1 is not among the classes 'cat', 'dog'",
        ),
        ([], 2, None, r"Labels are empty"),
        (None, 2, None, r"got the single value None. Pass one label per row"),
        ([[0, 1]], 2, None, r"got shape \(1, 2\). These rows are one-hot. Pass np.argmax"),
        ([0, 1], 3, ["a", "b"], r"one label for each of the 3 columns of scores, got 2"),
        ([0, 1], 2, ["a", "a"], r"must not contain duplicates"),
    ],
)
def test_bad_labels_are_named_with_the_remedy(labels, n_classes, classes, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(labels, n_classes, classes)


def test_labels_of_another_type_than_the_classes_are_an_error():
    with pytest.raises((TypeError, ValueError), match=r"not among the classes|different types"):
        encode_labels([0, 1], 2, ["a", "b"])


def test_classes_default_to_the_columns():
    assert check_classes(None, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("a,b", r"got the string 'a,b'. For example, pass classes=\['a', 'b'\]"),
        ({"a", "b"}, "a set has no order. Pass a list"),
        ({"a": 0, "b": 1}, "a dict has no order"),
    ],
)
def test_classes_without_an_order_are_rejected(classes, message):
    with pytest.raises(TypeError, match=message):
        check_classes(classes, 2)


def test_classes_of_several_columns_are_rejected_with_their_shape():
    with pytest.raises(ValueError, match=r"an array of shape \(2, 2\)"):
        check_classes([["a", "b"], ["c", "d"]], 2)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, np.nan], r"row 1 is missing \(nan\)"),
        (["a", None, None], r"row 1 and 1 more is missing \(None\)"),
        (["a", float("nan")], r"row 1 is missing \(nan\)"),
        (np.array(["2026-01-01", "NaT"], dtype="M8[D]"), r"row 1 is missing \(NaT\)"),
    ],
    ids=["float", "none", "nan beside text", "date"],
)
def test_the_first_row_without_a_label_is_named(labels, message):
    with pytest.raises(ValueError, match=message):
        raise_if_missing(labels, np.asarray(labels))


def test_a_label_that_reads_nan_is_a_label():
    assert encode_labels(["nan", "b"], 2, ["b", "nan"])[0].tolist() == [1, 0]


def test_whole_floats_below_the_number_of_columns_are_columns_and_it_is_said():
    with pytest.warns(DataWarning, match=r"assumed to be column indices 0\.\.2"):
        codes, classes = encode_labels([2.0, 0.0], 3)
    assert codes.tolist() == [2, 0]
    assert classes.tolist() == [0.0, 1.0, 2.0]


def test_other_floats_are_classes_in_increasing_order_and_it_is_said():
    with pytest.warns(DataWarning, match=r"the classes -1\.0, 1\.0, in this order"):
        assert encode_labels([1.0, -1.0, 1.0], 2)[0].tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"2 different values .*look like scores or a conti"):
        encode_labels([0.5, 1.5], 3)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[1, 0], [0, 1]], True),
        ([[True, False]], True),
        ([[1, 1], [0, 1]], False),
        ([[0.5, 0.5]], False),
        ([[1]], False),
        ([["1", "0"]], False),
    ],
)
def test_one_hot_rows_hold_a_single_one(table, expected):
    assert is_one_hot(np.array(table)) is expected


@pytest.mark.parametrize(
    ("shape", "message"), [((3, 1), r"Pass np\.ravel"), ((2, 3, 4), "are not one-hot")]
)
def test_labels_of_another_shape_are_told_what_to_pass(shape, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(np.ones(shape, dtype=int), 3)


def test_labels_that_seem_to_count_from_one_give_a_warning():
    proba = np.full((20, 2), 0.5)
    with pytest.warns(DataWarning, match=r"0 never occurs, although .* sum to 10 expected rows"):
        warn_count_from_one(np.ones(20, dtype=int), proba)
    warn_count_from_one(np.ones(5, dtype=int), proba[:5])  # too few rows to say


def test_labels_and_classes_that_cannot_be_ordered_together_are_named():
    labels = np.array([(1,), "a"], dtype=object)
    with pytest.raises(TypeError, match="different types"):
        encode_labels(labels, 2, ["a", "b"])


def test_text_and_numbers_are_never_equal():
    raise_if_other_kind(y=np.array([1, 2]), predicted=np.array([1, "none"], dtype=object))
    raise_if_other_kind(y=np.array([True]), predicted=np.array([1.0]))
    raise_if_other_kind(y=np.array([]), predicted=np.array(["a"]))
    with pytest.raises(ValueError, match="predicted contains text, but y contains int64 values"):
        raise_if_other_kind(y=np.array([1, 2]), predicted=np.array(["1", "2"]))
