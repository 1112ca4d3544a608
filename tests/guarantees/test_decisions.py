"""Sentences of the guarantees of decisions."""

import pytest

from calibrant.guarantees import Certificate, CoverageGuarantee, SelectiveGuarantee

CERTIFICATE = Certificate(500, 0.05, 0.1, "2026-11-18", "ab")


def _guarantee(**changes):
    fields = {
        "risk": 0.05,
        "delta": 0.1,
        "answered": 0.92,
        "error_rate": 0.08,
        "rows_needed": 45,
        "certificate": CERTIFICATE,
    }
    return SelectiveGuarantee(**{**fields, **changes})


def test_answers_are_described():
    text = str(_guarantee())
    assert text.startswith("With 90% confidence, at most 5% of the answers are wrong. 92% of the")
    assert "abstains on at least 3.16% of the rows" in text
    assert _guarantee().least_abstained == pytest.approx(0.03 / 0.95)


def test_a_model_that_is_good_enough_need_not_abstain():
    assert "abstains" not in str(_guarantee(error_rate=0.04))


def test_silence_is_explained():
    text = str(_guarantee(answered=0.0, certificate=Certificate(40, 0.05, 0.1, "2026-11-18", "")))
    assert "needs at least 45 rows without an error, but there are only 40 rows" in text
    assert "the most confident rows have too many errors" in str(_guarantee(answered=0.0))


def test_costs_and_classes_are_described():
    text = str(_guarantee(is_error=False, per_class=True, unproved=("a", "b")))
    assert "the mean cost of the answers of each class is at most 0.05" in text
    assert "Nothing was proved for the classes a, b" in text


def test_a_revoked_guarantee_begins_with_the_reason():
    guarantee = _guarantee(certificate=CERTIFICATE.revoke("errors became frequent."))
    assert str(guarantee).startswith("This guarantee was revoked: errors became frequent. With")
    assert guarantee.to_dict()["certificate"]["valid"] is False


def test_sets_are_described():
    guarantee = CoverageGuarantee(0.9, 0.9005, 0.86, 0.93, CERTIFICATE, True, ("c", "d"), ("e",))
    text = str(guarantee)
    assert "with probability at least 90% for every class" in text
    assert "between 86% and 93%" in text
    assert "For the classes c, d, the coverage holds only on average over the rows of" in text
    assert "The class e is in every set" in text
    assert guarantee.to_dict()["pooled"] == ["c", "d"]
