"""What may be said of the best few classes, and what may not."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, TopScores, load, save


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([[0, 1]], [[-1.0]], 3), "must have the same shape"),
        (([[0, 0]], [[-1.0, -2.0]], 3), "twice"),
        (([[0, 1]], [[2.0, 1.0]], 3), "rest='unknown'"),
        (([[0, 1]], [[np.nan, -1.0]], 3), "nan"),
        (([[0, 1]], [[-np.inf, -np.inf]], 3), "all -inf"),
        (([[0, 1]], [-1.0, -2.0], 3), "shape"),
        (([[0, 1]], [[-1.0, -2.0]]), "The number of classes is unknown"),
        (([[0, 1]], [[-1.0, -2.0]], 1), "at least 2"),
    ],
)
def test_top_scores_that_cannot_be_are_rejected(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        TopScores(*arguments)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("none", "rest must be 'complement', 'unknown' or an array"),
        ([-1.0, -1.0], "shape"),
        ([-0.1], r"must be log\(1 - 0.503215\)"),
    ],
)
def test_a_rest_that_cannot_be_is_rejected(rest, reason):
    with pytest.raises(ValueError, match=reason):
        TopScores([[0, 1]], [[-1.0, -2.0]], 3, rest=rest)


def test_names_of_classes_are_those_of_truths(tmp_path):
    top = TopScores([["b", "a"]] * 4, np.log([[0.6, 0.3]] * 4), classes=["a", "b", "c"])
    model = TemperatureScaling(prior_scale=1.0).fit(top, ["b", "a", "b", "c"])
    assert model.predict(top).tolist() == ["b"] * 4
    save(model, tmp_path / "model.json")
    assert load(tmp_path / "model.json").temperature_ == model.temperature_
    with pytest.raises(ValueError, match="Pass classes only to TopScores"):
        TemperatureScaling(classes=["x", "y", "z"]).fit(top, ["x", "y", "x", "z"])
    with pytest.raises(ValueError, match="fitted with 3"):
        model.predict(TopScores([[0, 1]], np.log([[0.6, 0.3]]), 4))
