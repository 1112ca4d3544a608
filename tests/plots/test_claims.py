from __future__ import annotations

import numpy as np
import pytest

from calibrant.notions import as_notion
from calibrant.plots._claims import axis_labels, claim_names, class_names


@pytest.mark.parametrize(
    ("notion", "names"),
    [
        ("confidence", ("top score",)),
        ("rank-2", ("rank 2",)),
        ("class-1", ("class b",)),
        ("class-wise", ("class a", "class b")),
        ("top-label", ("predicted a", "predicted b")),
        ("within-top-2", ("within-top-2",)),
        ("top-2-confidence", ("top score", "rank 2")),
        (
            "top-2-label",
            ("predicted a", "predicted b", "rank 2, predicted a", "rank 2, predicted b"),
        ),
    ],
)
def test_every_claim_has_a_name(notion, names):
    assert claim_names(as_notion(notion), ["a", "b"]) == names


def test_axis_labels_say_what_the_score_is():
    assert axis_labels(as_notion("confidence")) == ("confidence (highest probability)", "accuracy")
    assert axis_labels(as_notion("class-3"))[0] == "predicted probability of the class"
    assert axis_labels(as_notion("within-top-3"))[0] == "sum of the 3 highest probabilities"
    assert axis_labels(as_notion("rank-2"))[1] == "share of rows where that class is true"


def test_string_labels_name_the_classes_in_sorted_order():
    assert class_names(np.array(["b", "a"]), 2, None).tolist() == ["a", "b"]
    assert class_names([0, 1], 3, None).tolist() == [0, 1, 2]
    assert class_names([0, 1], 2, ["x", "y"]).tolist() == ["x", "y"]
