from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import confidence_on_errors, doubt_on_correct, sharpness

P = np.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])


def test_by_hand():
    assert confidence_on_errors([1, 1, 2], P) == pytest.approx(0.9)
    assert doubt_on_correct([1, 1, 2], P) == pytest.approx((0.5 + 0.3) / 2)
    assert sharpness([1, 1, 2], P) == pytest.approx(np.var([0.9, 0.5, 0.7], ddof=1) * 4 * 9 / 4)


def test_they_are_zero_where_no_row_is_wrong_or_right():
    assert confidence_on_errors([0, 1, 2], P) == 0.0
    assert doubt_on_correct([1, 2, 0], P) == 0.0
    assert sharpness([0], P[:1]) == 0.0


def test_means_of_weighted_rows_are_those_of_repeated_rows():
    repeated = [0, 0, 2]
    for metric in (confidence_on_errors, doubt_on_correct):
        expected = metric(np.array([1, 1, 2])[repeated], P[repeated])
        assert metric([1, 1, 2], P, sample_weight=[2, 0, 1]) == pytest.approx(expected)


def test_sharpness_depends_on_ratios_of_weights():
    plain = sharpness([1, 1, 2], P)
    assert sharpness([1, 1, 2], P, sample_weight=[0.1, 0.1, 0.1]) == pytest.approx(plain)
