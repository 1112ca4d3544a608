"""The certificate of a guarantee: what was proved, on which rows and when."""

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
    """What was proved, on which data and when. Saved with a decision rule.

    Attributes
    ----------
    n_rows : int
        Number of rows that prove the guarantee.
    risk : float
        Largest mean loss, such as the share of wrong answers.
    delta : float
        Probability, over the draw of these rows, that the guarantee fails. 0 if the guarantee
        holds on average over these rows.
    date : str
        Date of the proof, such as "2026-11-18".
    digest : str
        SHA-256 digest of the probabilities and labels of the rows.
    revoked : str
        Why the certificate is no longer valid; empty if it is valid.

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
        date.fromisoformat(self.date)  # a file may hold anything
        if type(self.n_rows) is not int or self.n_rows < 0:
            raise ValueError(f"n_rows must be a number of rows, got {self.n_rows!r}.")
        if not (0 < self.risk < np.inf and 0 <= self.delta < 1):
            raise ValueError(f"risk and delta are {self.risk!r} and {self.delta!r}.")
        if not (isinstance(self.digest, str) and isinstance(self.revoked, str)):
            raise TypeError("digest and revoked must be text.")

    @property
    def valid(self) -> bool:
        """Whether the certificate is valid, which means that it was not revoked."""
        return not self.revoked

    def revoke(self, reason: str) -> Certificate:
        """Return a certificate that is no longer valid, for this reason."""
        return replace(self, revoked=str(reason) or "revoked")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values for JSON."""
        return {**asdict(self), "valid": self.valid}


def certify(proba: FloatArray, y: IntArray, risk: float, delta: float) -> Certificate:
    """Create a certificate with the current date for these rows."""
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
