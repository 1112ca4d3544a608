"""Monitor of the error rate of answers, which can revoke the certificate of a guarantee."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

import numpy as np
from scipy.special import logsumexp

from calibrant._output.numbers import format_number, format_percent
from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import BoolArray, FloatArray, LabelsLike
from calibrant._validation import (
    as_array,
    as_labels,
    check_number,
    check_same_length,
    check_share,
    raise_if_missing,
    raise_if_other_kind,
)
from calibrant.guarantees import Certificate
from calibrant.monitoring._json import (
    as_numbers,
    read_count,
    read_finite_numbers,
    read_number,
    read_state,
    read_value,
)

SCHEMA = "calibrant.risk_monitor/1"

_MULTIPLES = np.array([1.25, 1.5, 2.0, 3.0, 5.0])
"""Alternatives: true error rates as multiples of the risk. Small multiples detect slow changes late
in a stream, and large multiples detect a failure within a few dozen rows."""

_MOST_LOG = 700.0
"""The exponential of a larger number overflows."""


@dataclass(frozen=True, repr=False)
class RiskStep(ShortRepr, AsText):
    """The state of a `RiskMonitor` after an update. Print the step for a description.

    Attributes
    ----------
    when : str
        Name of the update.
    n_rows, n_seen : int
        Number of answered rows in this update, and in all updates.
    mean_loss : float
        Mean loss of all answered rows so far, such as the share of wrong answers.
    risk : float
        The guaranteed mean loss.
    nats, threshold : float
        Log e-value after the update, and the log e-value that raises an alarm.
    peak : float
        Largest log e-value at any row of the update.
    alarm : bool
        Whether the threshold has been reached in this update or an earlier update.

    See Also
    --------
    RiskMonitor.update : Returns a step.
    """

    when: str
    n_rows: int
    n_seen: int
    mean_loss: float
    risk: float
    nats: float
    peak: float
    threshold: float
    alarm: bool

    @property
    def evidence(self) -> float:
        """E-value, which is ``exp(nats)``. An e-value of ``exp(threshold)`` raises an alarm."""
        return exp(min(self.nats, _MOST_LOG))

    def to_dict(self) -> dict[str, Any]:
        """Return the step as plain values for JSON."""
        return {**asdict(self), "evidence": self.evidence}

    def __str__(self) -> str:
        finding = "Alarm: the guarantee no longer holds." if self.alarm else "No alarm."
        return (
            f"{finding} The mean loss of {self.n_seen} answers is {format_percent(self.mean_loss)},"
            f" and the guarantee is {format_percent(self.risk)}. Evidence against the guarantee "
            f"(log e-value): {format_number(self.nats)}, alarm at {format_number(self.threshold)}."
        )


class RiskMonitor:
    r"""Raise an alarm when the error rate of a selective classifier exceeds its guaranteed risk.

    Call `update` whenever labels of answered rows arrive. You can check the result after every
    update. If the guarantee holds, the probability of an alarm at any time is at most ``alpha``. An
    alarm revokes the certificate of the guarantee. Use `to_json` and `from_json` to store the
    monitor between jobs.

    Parameters
    ----------
    risk : float, optional
        Guaranteed error rate or mean loss of the answers. The default is the risk of the
        certificate.
    alpha : float, default 0.05
        Largest probability of a false alarm at any time.
    certificate : calibrant.guarantees.Certificate, optional
        Certificate to revoke when an alarm is raised, such as ``model.certificate_``.
    largest_loss : float, default 1
        Largest possible loss of an answer.

    Attributes
    ----------
    certificate : Certificate or None
        The certificate, which is revoked by an alarm. To revoke the certificate of a saved model,
        call ``model.revoke(reason)`` before you save the model again.
    n_seen : int
        Number of answered rows so far.
    alarm : bool
        Whether an alarm was raised.

    See Also
    --------
    calibrant.decisions.SelectiveClassifier : Classifier with a guaranteed risk.
    CalibrationMonitor : Monitor of the calibration of all rows.

    Notes
    -----
    The evidence is the mean over the error rates q = 1.25, 1.5, 2, 3 and 5 times the risk r of

    .. math:: \prod_i \Big(\frac{q}{r}\Big)^{e_i} \Big(\frac{1 - q}{1 - r}\Big)^{1 - e_i} ,

    where :math:`e_i` is the loss of answer i, between 0 and 1. If the expected loss of each answer,
    given the answers before it, is at most r, the evidence is a supermartingale. By Ville's
    inequality, the evidence reaches :math:`1 / \alpha` at any time with probability at most
    :math:`\alpha`. The monitor tests the true risk. With a probability of at most delta, the true
    risk exceeds the guaranteed risk from the start. In this case, the monitor can raise an alarm
    although the data have not changed.

    References
    ----------
    Ramdas et al. (2023), Game-theoretic statistics and safe anytime-valid inference,
    arXiv:2210.01948.

    Examples
    --------
    >>> monitor = RiskMonitor(0.05)
    >>> monitor.update([0, 1] * 100, [0] * 200, when="week 1").alarm  # half of the answers wrong
    True
    """

    def __init__(
        self,
        risk: float | None = None,
        alpha: float = 0.05,
        *,
        certificate: Certificate | None = None,
        largest_loss: float = 1.0,
    ) -> None:
        if risk is None and certificate is None:
            raise ValueError(
                "RiskMonitor needs a risk or a certificate. Pass certificate=model.certificate_."
            )
        if not isinstance(certificate, Certificate | None):
            raise TypeError(
                f"certificate must be a Certificate, got {type(certificate).__name__}. Pass "
                "certificate=model.certificate_."
            )
        self.certificate, self.alpha = certificate, check_share(alpha, "alpha")
        value: Any = certificate.risk if risk is None and certificate else risk
        check_number(value, "risk", is_positive=True)
        check_number(largest_loss, "largest_loss", is_positive=True)
        self.risk, self.largest_loss = float(value), float(largest_loss)
        self._share = self.risk / self.largest_loss
        if not 0 < self._share < 1:
            raise ValueError(
                f"risk must be below largest_loss={self.largest_loss:g}, got {self.risk:g}. Pass "
                "the largest possible loss of an answer as largest_loss."
            )
        self.n_seen, self.alarm, self._loss = 0, False, 0.0
        rates = np.minimum(_MULTIPLES * self._share, (1 + self._share) / 2)  # below 1
        self._gains = np.log(rates / self._share)
        self._costs = np.log1p(-rates) - np.log1p(-self._share)
        self._logs = np.zeros(len(rates))

    @property
    def threshold(self) -> float:
        """Log e-value that raises an alarm."""
        return -log(self.alpha)

    def update(
        self, y: LabelsLike, predicted: LabelsLike, answered: Any = None, *, when: str = ""
    ) -> RiskStep:
        """Add labels of rows and their predictions.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels, in order of arrival.
        predicted : array-like of shape (n,)
            Predicted labels. Each wrong label has the loss ``largest_loss``. For other losses, call
            `update_losses`.
        answered : array-like of bool, shape (n,), optional
            Whether each row was answered. The other rows are ignored. By default, all rows count as
            answered, and an abstention counts as a wrong label.
        when : str
            Name of the update, such as a date.

        Returns
        -------
        RiskStep
        """
        labels, decisions = as_array(y), as_array(predicted)
        check_same_length(y=labels, predicted=decisions)
        if answered is not None:
            is_answered = _as_mask(answered)
            check_same_length(y=labels, answered=is_answered)
            labels, decisions = labels[is_answered], decisions[is_answered]
        for values, name in ((labels, "label"), (decisions, "prediction")):
            raise_if_missing(values, values, name)
        raise_if_other_kind(y=labels, predicted=decisions)
        return self.update_losses((labels != decisions) * self.largest_loss, when=when)

    def update_losses(self, losses: Any, *, when: str = "") -> RiskStep:
        """Add losses of answered rows.

        Parameters
        ----------
        losses : array-like of shape (n,)
            Losses between 0 and ``largest_loss``, in order of arrival.
        when : str
            Name of the update, such as a date.

        Returns
        -------
        RiskStep
        """
        shares = self._checked(losses)
        steps = np.outer(shares, self._gains) + np.outer(1 - shares, self._costs)
        path = self._logs + np.cumsum(steps, axis=0)
        self._logs = path[-1] if len(path) else self._logs
        nats = float(_mean_evidence(self._logs[None])[0])
        peak = float(_mean_evidence(path).max()) if len(path) else nats
        self.n_seen += len(shares)
        self._loss += float(shares.sum()) * self.largest_loss
        if peak >= self.threshold and not self.alarm:
            self._raise_alarm(when)
        mean = self._loss / self.n_seen if self.n_seen else 0.0
        counts = len(shares), self.n_seen
        return RiskStep(str(when), *counts, mean, self.risk, nats, peak, self.threshold, self.alarm)

    def _checked(self, losses: Any) -> FloatArray:
        array = as_array(losses)
        is_number = array.dtype.kind in "biuf" or not array.size
        values = array.astype(np.float64) if is_number else np.array(np.nan)
        is_valid = values.ndim == 1 and bool(((values >= 0) & (values <= self.largest_loss)).all())
        if not is_valid:
            raise ValueError(
                f"losses must be numbers of shape (n,) between 0 and largest_loss="
                f"{self.largest_loss:g}, got {losses!r:.80}. Pass the largest possible loss as "
                "largest_loss."
            )
        return values / self.largest_loss

    def _raise_alarm(self, when: str) -> None:
        """Record the alarm and revoke the certificate."""
        self.alarm = True
        if self.certificate is not None and self.certificate.valid:
            moment = f" ({when})" if when else ""
            self.certificate = self.certificate.revoke(
                f"the answers exceed the risk of {format_number(self.risk)}, detected after "
                f"{self.n_seen} answers{moment}, probability of a false alarm "
                f"{format_percent(self.alpha)}"
            )

    def to_json(self) -> str:
        """Return the state as JSON text, which `from_json` reads."""
        certificate = None if self.certificate is None else asdict(self.certificate)
        state = {
            "schema": SCHEMA,
            "risk": self.risk,
            "alpha": self.alpha,
            "largest_loss": self.largest_loss,
            "n_seen": self.n_seen,
            "loss": self._loss,
            "logs": as_numbers(self._logs),
            "alarm": self.alarm,
            "certificate": certificate,
        }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> RiskMonitor:
        """Read a state that `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is not such a state.
        """
        state = read_state(text, SCHEMA, cls.__name__)
        monitor = cls(
            read_number(state, "risk", 0, 1e15),
            read_number(state, "alpha", 0, 1),
            certificate=_read_certificate(read_value(state, "certificate")),
            largest_loss=read_number(state, "largest_loss", 0, 1e15),
        )
        monitor.n_seen, monitor.alarm = read_count(state, "n_seen"), _read_alarm(state)
        monitor._loss = read_number(state, "loss", 0, 1e15)
        monitor._logs = read_finite_numbers(state, "logs", monitor._logs.shape)
        return monitor


def _mean_evidence(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the mean e-value of the alternatives after each row."""
    return np.asarray(logsumexp(logs, axis=1) - log(logs.shape[1]))


def _as_mask(answered: Any) -> BoolArray:
    """Return whether each row was answered, from booleans or from 0 and 1."""
    mask = as_labels(answered)
    if mask.ndim != 1 or mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            f"answered must be True or False for each row, got {answered!r:.80}. For example, pass "
            "answered=model.answers(X)."
        )
    return mask.astype(bool)


def _read_alarm(state: dict[str, Any]) -> bool:
    alarm = read_value(state, "alarm")
    if not isinstance(alarm, bool):
        raise ValueError(f"'alarm' in the state must be true or false, got {alarm!r:.80}")
    return alarm


def _read_certificate(value: Any) -> Certificate | None:
    if value is None:
        return None
    try:
        return Certificate(**value)
    except TypeError as error:
        raise ValueError(f"certificate of the state is not valid ({error})") from None
