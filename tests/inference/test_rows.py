"""Checks of rows for tests and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.inference._rows import check_rows

P = np.array([[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
Y = np.array([0, 1, 1])


def test_rows_without_weights_are_as_they_are():
    proba, y, weight, _ = check_rows(Y, P, None, None, "proba")
    assert proba is P
    assert y.tolist() == [0, 1, 1]
    assert weight.tolist() == [1, 1, 1]


def test_rows_of_weight_zero_are_left_out():
    proba, y, weight, _ = check_rows(Y, P, [2, 0, 1], None, "proba")
    np.testing.assert_array_equal(proba, P[[0, 2]])
    assert (y.tolist(), weight.tolist()) == ([0, 1], [2, 1])


def test_equal_weights_become_one():
    *_, weight, _ = check_rows(Y, P, [0.2, 0.0, 0.2], None, "proba", only_equal="This method")
    assert weight.tolist() == [1, 1]


def test_methods_that_draw_rows_reject_unequal_weights():
    with pytest.raises(ValueError, match=r"This method accepts only equal weights.* np\.repeat"):
        check_rows(Y, P, [2, 1, 1], None, "proba", only_equal="This method")


def test_logits_become_probabilities():
    proba, *_ = check_rows(Y, np.log(P) + 7.0, None, None, "logits")
    np.testing.assert_allclose(proba, P, rtol=1e-12)
