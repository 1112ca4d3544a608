"""Publications as they are cited."""

from __future__ import annotations

from calibrant.base import Reference
from calibrant.base import references as references

GUO = Reference("Guo et al.", 2017, "On calibration", "arXiv:1706.04599")


def test_a_reference_is_short_in_a_sentence_and_full_in_a_list():
    assert GUO.short == "Guo et al. 2017"
    assert GUO.full == "Guo et al. (2017), On calibration, arXiv:1706.04599."


def test_no_publication_is_listed_twice():
    listed = [value for value in vars(references).values() if isinstance(value, Reference)]
    assert len({(one.title, one.year) for one in listed}) == len(listed) > 10
