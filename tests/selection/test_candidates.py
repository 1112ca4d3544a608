from __future__ import annotations

import pytest

from calibrant import TemperatureScaling
from calibrant.selection._candidates import (
    calibrates_confidence,
    default_candidates,
    is_trusted,
    named_candidates,
)


def test_candidates_of_a_list_are_named_after_their_class():
    assert list(named_candidates([TemperatureScaling(), "vector"])) == [
        "TemperatureScaling",
        "vector",
    ]


def test_members_that_are_always_there_cannot_be_candidates():
    with pytest.raises(ValueError, match="identity is always a member"):
        named_candidates({"identity": TemperatureScaling()})


ALWAYS = ["bayesian-temperature", "structured-vector", "confidence-isotonic"]
PER_CLASS = [*ALWAYS, "isotonic", "structured-matrix"]


@pytest.mark.parametrize(
    ("n_samples", "n_classes", "expected"),
    [
        (9, 10, ALWAYS),
        (49, 10, PER_CLASS),
        (50, 10, [*PER_CLASS, "dirichlet"]),
        (50, 2, [*PER_CLASS, "dirichlet"]),
        (1000, 20, [*PER_CLASS, "dirichlet"]),
        (1000, 21, PER_CLASS),
        (99, 100, ALWAYS),
        (100, 100, PER_CLASS),
        (300, 300, PER_CLASS),
        (10_000, 301, ALWAYS),
        (2**20, 100, [*ALWAYS, "isotonic"]),
    ],
)
def test_candidates_follow_the_numbers_of_rows_and_classes(n_samples, n_classes, expected):
    assert list(default_candidates(n_samples, n_classes)) == expected


def test_the_averaged_temperature_is_trusted_and_other_candidates_are_not():
    trusted = [name for name, one in default_candidates(100, 3).items() if is_trusted(one)]
    assert trusted == ["bayesian-temperature"]


def test_one_default_candidate_calibrates_the_confidence():
    chosen = default_candidates(100, 3)
    result = [name for name, one in chosen.items() if calibrates_confidence(one)]
    assert result == ["confidence-isotonic"]
