"""Arrays of more than two axes, one of which holds the classes."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import flatten_predictions, map_scores
from calibrant._validation._layouts import class_axes, raise_if_deep


def test_two_axes_are_left_as_they_are(rng):
    scores, labels = rng.normal(size=(5, 3)), np.arange(5) % 3
    flat = flatten_predictions(labels, scores)
    np.testing.assert_array_equal(flat.y_prob, scores)
    np.testing.assert_array_equal(flat.y_true, labels)
    np.testing.assert_array_equal(map_scores(np.tanh, scores), np.tanh(scores))


@pytest.mark.parametrize("axis", [1, 2, -1, -2])
def test_mapping_keeps_the_layout(axis, rng):
    scores = rng.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(map_scores(np.exp, scores, class_axis=axis), np.exp(scores))


def test_the_axes_that_may_hold_the_classes_leave_the_shape_of_the_labels():
    assert class_axes((2, 4, 5), (2, 3, 4, 5)) == [1]
    assert class_axes((2, 3), (2, 3, 3)) == [1, 2]
    assert class_axes((2,), (2, 3, 4)) == []


def test_predictions_that_cannot_be_flattened_raise(rng):
    scores, labels = rng.normal(size=(2, 3, 4)), np.zeros((2, 4), dtype=int)
    with pytest.raises(
        ValueError, match=r"Every label is ignored, because it equals ignore_label=0. Pass an"
    ):
        flatten_predictions(labels, scores, ignore_label=0)
    with pytest.raises(ValueError, match="at least two axes, one for cases and one for classes"):
        flatten_predictions([0], [0.5])
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        flatten_predictions(labels, scores, class_axis=5)
    with pytest.raises(ValueError, match=r"array with the shape of its argument, \(8, 3\), got"):
        map_scores(lambda rows: rows[:, 0], scores)


def test_only_scores_of_more_axes_than_two_with_labels_of_one_fewer_are_deep(rng):
    raise_if_deep(np.zeros(4), np.zeros((4, 3)))
    raise_if_deep(np.zeros(4), np.zeros((4, 3, 2)))
    with pytest.raises(ValueError, match="class_axis=1"):
        raise_if_deep(np.zeros((4, 2)), np.zeros((4, 3, 2)))
