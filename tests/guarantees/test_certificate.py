"""Certificates: digest, date and revocation."""

from datetime import date

import numpy as np
import pytest

from calibrant.guarantees import Certificate, certify

PROBA, LABELS = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1])


def test_a_certificate_holds_rows_date_and_digest():
    certificate = certify(PROBA, LABELS, 0.05, 0.1)
    assert (certificate.n_rows, certificate.risk, certificate.delta) == (2, 0.05, 0.1)
    assert abs((date.fromisoformat(certificate.date) - date.today()).days) <= 1
    assert certificate.valid


def test_the_digest_depends_on_probabilities_and_labels():
    digests = {
        certify(PROBA, LABELS, 0.05, 0.1).digest,
        certify(PROBA[:, ::-1], LABELS, 0.05, 0.1).digest,
        certify(PROBA, LABELS[::-1], 0.05, 0.1).digest,
    }
    assert len(digests) == 3
    assert certify(PROBA.copy(), LABELS, 0.2, 0.1).digest in digests


def test_a_revoked_certificate_states_the_reason():
    certificate = certify(PROBA, LABELS, 0.05, 0.1)
    revoked = certificate.revoke("the error rate rose")
    assert not revoked.valid
    assert certificate.valid
    assert revoked.to_dict()["revoked"] == "the error rate rose"
    assert not certificate.revoke("").valid


@pytest.mark.parametrize(
    "change",
    [{"date": "yesterday"}, {"n_rows": -1}, {"n_rows": 1.5}, {"risk": 0.0}, {"delta": 1.0}],
)
def test_impossible_certificates_are_rejected(change):
    fields = {"n_rows": 2, "risk": 0.05, "delta": 0.1, "date": "2026-11-18", "digest": ""}
    with pytest.raises(ValueError, match=r"."):
        Certificate(**{**fields, **change})


def test_text_fields_must_be_text():
    with pytest.raises(TypeError, match="must be strings"):
        Certificate(2, 0.05, 0.1, "2026-11-18", 5)
