"""Certificates of guarantees, with the proved risk, the number of rows and the proof date."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

import numpy as np

from calibrant._output.results import ShortRepr
from calibrant._typing import FloatArray, IntArray


@dataclass(frozen=True, repr=False)
class Certificate(ShortRepr):
    """Record of a proved guarantee, its data and its date, which is saved with a decision rule.

    Attributes
    ----------
    n_rows : int
        Number of rows in the proof of the guarantee.
    risk : float
        Proved upper bound of the mean loss, such as the share of wrong answers.
    delta : float
        Maximum probability, over the draw of the rows of the proof, that the guarantee fails. The
        value is 0 for guarantees that hold on average over draws of the rows.
    date : str
        Date of the proof, such as "2026-11-18".
    digest : str
        SHA-256 digest of the probabilities and labels of the rows.
    revoked : str
        Reason for the revocation of the certificate. The string is empty for a valid certificate.

    See Also
    --------
    calibrant.monitoring.RiskMonitor : Monitor that revokes a certificate.
    """

    n_rows: int
    risk: float
    delta: float
    date: str
    digest: str
    revoked: str = ""

    def __post_init__(self) -> None:
        date.fromisoformat(self.date)  # values from a file can be invalid
        if type(self.n_rows) is not int or self.n_rows < 0:
            raise ValueError(f"n_rows must be an integer of at least 0, got {self.n_rows!r}.")
        if not (0 < self.risk < np.inf and 0 <= self.delta < 1):
            raise ValueError(
                f"risk must be positive and delta must be at least 0 and below 1, got "
                f"risk={self.risk!r} and delta={self.delta!r}."
            )
        if not (isinstance(self.digest, str) and isinstance(self.revoked, str)):
            raise TypeError(
                f"digest and revoked must be strings, got digest={self.digest!r} and "
                f"revoked={self.revoked!r}."
            )

    @property
    def valid(self) -> bool:
        """Whether the certificate is valid, that is, not revoked."""
        return not self.revoked

    def revoke(self, reason: str) -> Certificate:
        """Return a revoked copy of the certificate, with the reason of the revocation."""
        return replace(self, revoked=str(reason) or "revoked")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON."""
        return {**asdict(self), "valid": self.valid}


def certify(proba: FloatArray, y: IntArray, risk: float, delta: float) -> Certificate:
    """Create a certificate with the current date for a proof on the given rows."""
    return Certificate(
        n_rows=len(y),
        risk=float(risk),
        delta=float(delta),
        date=datetime.now(UTC).date().isoformat(),
        digest=digest_rows(proba, y),
    )


def digest_rows(proba: FloatArray, y: IntArray) -> str:
    """SHA-256 digest of probabilities and column codes."""
    digest = sha256(repr(proba.shape).encode())
    digest.update(np.ascontiguousarray(proba, dtype="<f8").data)
    digest.update(np.ascontiguousarray(y, dtype="<i8").data)
    return digest.hexdigest()
