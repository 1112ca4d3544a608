from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import check_predictions

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        (P, [0, 1, 2, 0]),
        ([0.9, 0.2], [1, 0]),
        ([0.9, 0.2], ["yes", "no"]),
        (P, list("abca")),
        (P, np.eye(3)[[0, 1, 2, 0]]),
    ],
)
def test_swapped_labels_and_scores_are_named(labels, scores):
    with pytest.raises(
        ValueError, match=r"look like labels. Swap the two arguments. Metrics take \(y_true"
    ):
        check_predictions(labels, scores)


def test_transposed_scores_are_named():
    message = r"labels have 4 rows, but the scores have 3 rows. .*transposed. Pass scores.T"
    with pytest.raises(ValueError, match=message):
        check_predictions([0, 1, 2, 0], P.T)


def test_one_score_per_row_with_three_labels_asks_for_one_column_per_class():
    with pytest.raises(ValueError, match=r"labels have 3 different values. Pass one column per"):
        check_predictions([0, 1, 2, 0], P.max(axis=1))


@pytest.mark.parametrize("labels", [[0, 1, 2, 0], list("abca")])
def test_a_missing_column_is_found_by_the_labels_and_not_by_the_sums(labels):
    with pytest.raises(ValueError, match=r"Pass scores with one column per class"):
        check_predictions(labels, P[:, :2])


def test_a_missing_column_that_no_label_shows_is_suggested():
    with pytest.raises(ValueError, match=r"sums to 0.9 instead of 1. Add the missing column"):
        check_predictions([0, 1, 1, 0], P[:, :2])


def test_certain_forecasts_and_float_labels_are_not_taken_for_each_other():
    assert check_predictions([1, 0], [1.0, 0.0]).y.tolist() == [1, 0]
    with pytest.warns(UserWarning, match="floats"):
        assert check_predictions([1.0, 0.0], [1.0, 0.0]).y.tolist() == [1, 0]
