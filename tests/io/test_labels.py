"""Labels of files: by name, by place, and never silently wrong."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from calibrant.io import open_scores


@pytest.fixture
def labels_of(tmp_path):
    """Labels and classes of a file with these columns of scores and these labels."""

    def read(columns, labels, **said):
        path = tmp_path / "data.csv"
        score = ",".join(["0.5", "0.5", *["0"] * (len(columns) - 2)])
        path.write_text(
            ",".join([*columns, "y"]) + "\n" + "".join(f"{score},{label}\n" for label in labels)
        )
        file = open_scores(path, label="y", **said)
        return file.load().labels.tolist(), file.classes.tolist(), list(file.guesses)

    return read


def test_labels_are_matched_to_the_names_of_the_columns(labels_of):
    assert labels_of(["p_b", "p_a"], ["a", "b", "a"], proba="p_*")[:2] == (
        ["a", "b", "a"],
        ["b", "a"],
    )


def test_whole_numbers_are_matched_to_columns_called_by_numbers(labels_of):
    assert labels_of(["p_2", "p_1"], [1, 2, 1], proba="p_*")[:2] == ([1, 2, 1], [2, 1])
    with pytest.raises(
        ValueError, match=r"Label '0' in row 1 is not among the classes 2, 1. Pass classes="
    ):
        labels_of(["p_2", "p_1"], [1, 0], proba="p_*")


def test_whole_numbers_are_places_among_columns_called_by_words(labels_of):
    assert labels_of(["p_b", "p_a"], [0, 1], proba="p_*")[:2] == (["b", "a"], ["b", "a"])


@pytest.mark.parametrize("columns", [["p1", "p0"], ["True", "False"], ["p(1)", "p(0)"]])
def test_whole_numbers_are_matched_to_columns_that_hold_them_as_of_a_data_frame(columns, labels_of):
    labels, classes, notes = labels_of(columns, [0, 1, 1], proba=",".join(columns))
    assert (labels, classes, notes) == ([0, 1, 1], [1, 0], [])


def test_columns_that_may_count_from_one_are_taken_by_their_places(labels_of):
    labels, classes, _ = labels_of(["p1", "p2", "p3"], [0, 1, 2], proba="p1,p2,p3")
    assert (labels, classes) == (["p1", "p2", "p3"], ["p1", "p2", "p3"])


def test_given_classes_name_the_columns(labels_of):
    assert labels_of(["p_0", "p_1"], ["x", "y"], proba="p_*", classes=("y", "x"))[:2] == (
        ["x", "y"],
        ["y", "x"],
    )


def test_words_that_match_no_column_are_asked_for(labels_of):
    with pytest.raises(ValueError, match="The labels are x, y, but the score columns are 1, 2"):
        labels_of(["s1", "s2"], ["x", "y"], proba="s*")


def test_what_all_columns_begin_and_end_with_is_no_name(labels_of):
    columns = ["score_zebra_now", "score_ape_now"]
    assert labels_of(columns, ["ape", "zebra"], proba=",".join(columns))[:2] == (
        ["ape", "zebra"],
        ["zebra", "ape"],
    )


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["01", "02", "01"], ("01", "02")),
        (["True", "False", "True"], ("True", "False")),
        (["2020-01-01", "2020-01-02", "2020-01-01"], ("2020-01-01", "2020-01-02")),
        (["1.0", "2.0", "1.0"], ("1", "2")),
        ([" a", "b ", " a"], ("a", "b")),
    ],
)
def test_labels_of_any_spelling_are_found_among_given_classes(labels, classes, labels_of):
    read, named, _ = labels_of(["s1", "s2"], labels, proba="s*", classes=classes)
    assert [named.index(label) for label in read] == [0, 1, 0]


def test_a_word_that_matches_nothing_is_an_error(labels_of):
    with pytest.raises(ValueError, match="Label 'c' in row 2 is not among the classes a, b"):
        labels_of(["p_a", "p_b"], ["a", "b", "c"], proba="p_*")
    with pytest.raises(ValueError, match="not among the classes"):
        labels_of(["s1", "s2"], ["x", "y", "z"], proba="s*")


def test_a_class_that_never_occurs_is_fine(labels_of):
    assert labels_of(["p_a", "p_b", "p_c"], ["a", "a"], proba="p_*")[1] == ["a", "b", "c"]


def test_one_column_is_the_probability_of_class_one(tmp_path):
    path = tmp_path / "binary.csv"
    path.write_text("p,y\n0.2,0\n0.9,1\n")
    file = open_scores(path, label="y", proba="p")
    np.testing.assert_allclose(file.load().scores, [[0.8, 0.2], [0.1, 0.9]])
    assert file.classes.tolist() == [0, 1]


@pytest.mark.parametrize("labels", [[-1, 1], [1, 2], ["no", "yes"]])
def test_labels_of_one_score_column_are_asked_for_as_negative_and_positive(labels, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("p,y\n" + "".join(f"0.25,{label}\n" for label in labels))
    with pytest.raises(ValueError, match="one score column, so pass classes= with the negative"):
        open_scores(path, proba="p", label="y").load()
    file = open_scores(path, proba="p", label="y", classes=tuple(map(str, labels)))
    assert file.load().labels.tolist() == labels
