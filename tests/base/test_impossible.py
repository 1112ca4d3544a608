from __future__ import annotations

import numpy as np
import pytest

from calibrant import IsotonicCalibration, PlattScaling
from calibrant._data.sample import ArraySample
from calibrant.base._impossible import warn_impossible
from calibrant.exceptions import DataWarning


def test_rows_whose_truth_was_called_impossible_are_counted():
    z = np.array([[0.0, -np.inf], [0.0, 1.0], [0.0, -np.inf]])
    with pytest.warns(DataWarning, match="Name: the true class of 1 of 3 rows has the score -inf"):
        warn_impossible(
            "Name", ArraySample(z, np.array([1, 0, 1]), np.array([1.0, 1.0, 0.0])), "logits"
        )


def test_two_votes_in_a_hundred_may_be_zero():
    p, y = np.tile([0.5, 0.5], (200, 1)), np.ones(200, dtype=int)
    p[:4] = [1.0, 0.0]
    warn_impossible("Name", ArraySample(p, y, np.ones(200)), "proba")
    p[4] = [1.0, 0.0]
    with pytest.warns(DataWarning, match="true class of 5 of 200 rows has the score zero"):
        warn_impossible("Name", ArraySample(p, y, np.ones(200)), "proba")


@pytest.mark.parametrize("n_classes", [2, 40])
@pytest.mark.parametrize(("least", "count"), [(0.0, 0), (-np.inf, 1)])
def test_impossible_rows_are_counted_however_many_classes_there_are(least, count, n_classes):
    z = np.ones((3, n_classes))
    z[1, 1] = least
    sample = ArraySample(z, np.array([0, 1, 0]), np.ones(3))
    assert sample.count_impossible("logits") == count


def test_methods_that_take_no_logarithms_have_nothing_to_say():
    score, y = [0.0, 0.0, 1.0, 0.5], [0, 1, 1, 0]
    IsotonicCalibration().fit(score, y)
    with pytest.warns(DataWarning, match="PlattScaling: the true class of 1 of 4 rows"):
        PlattScaling().fit(score, y)
