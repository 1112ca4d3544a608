from __future__ import annotations

import numpy as np
import pytest

from calibrant.label_shift._frequencies import check_frequencies, frequency_ratio, reweight


def test_rounded_frequencies_are_made_to_sum_to_one():
    assert check_frequencies([0.333, 0.333, 0.333], "target", 3).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"target must be frequencies .* Pass target=counts"):
        check_frequencies([3, 4, 3], "target", 3)


def test_the_ratio_of_a_class_that_is_absent_from_both_is_zero():
    assert frequency_ratio(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])).tolist() == [
        *(2.0, 2 / 3, 0.0)
    ]
    with pytest.raises(ValueError, match="Class 1 has frequency zero in the source"):
        frequency_ratio(np.array([0.5, 0.5]), np.array([1.0, 0.0]))


def test_rows_are_divided_by_their_sum():
    rows = reweight(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([3.0, 1.0]))
    assert rows.tolist() == [[0.75, 0.25], [0.0, 1.0]]
