from __future__ import annotations

import pytest

from calibrant import TemperatureScaling
from calibrant.selection._candidates import default_candidates, named_candidates


def test_candidates_of_a_list_are_named_after_their_class():
    assert list(named_candidates([TemperatureScaling(), "vector"])) == [
        "TemperatureScaling",
        "vector",
    ]


def test_members_that_are_always_there_cannot_be_candidates():
    with pytest.raises(ValueError, match="identity is always a member"):
        named_candidates({"identity": TemperatureScaling()})


def test_few_rows_of_many_classes_have_few_candidates():
    assert list(default_candidates(99, 100, 50)) == ["temperature"]
    assert "dirichlet" in default_candidates(1000, 10, 200)
