from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import check_predictions

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])


@pytest.mark.parametrize(
    ("labels", "scores"),
    [(P, [0, 1, 2, 0]), ([0.9, 0.2], [1, 0]), ([0.9, 0.2], ["yes", "no"]), (P, list("abca"))],
)
def test_truth_and_scores_in_each_others_place_are_named(labels, scores):
    with pytest.raises(ValueError, match="the truth first"):
        check_predictions(labels, scores)


def test_scores_on_their_side_are_named():
    with pytest.raises(ValueError, match=r"y has 4 rows, scores has 3 rows; .* pass scores.T"):
        check_predictions([0, 1, 2, 0], P.T)


def test_certain_forecasts_and_float_labels_are_not_taken_for_each_other():
    assert check_predictions([1, 0], [1.0, 0.0]).y.tolist() == [1, 0]
    with pytest.warns(UserWarning, match="floats"):
        assert check_predictions([1.0, 0.0], [1.0, 0.0]).y.tolist() == [1, 0]
