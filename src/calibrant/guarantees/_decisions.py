"""Guarantees of decisions: the error rate of answers, and the coverage of prediction sets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from calibrant._output.numbers import format_number, format_percent
from calibrant._output.results import AsText, ShortRepr
from calibrant.guarantees._certificate import Certificate

_ASSUMPTIONS = (
    "This guarantee holds for new rows from the same distribution as the rows of the proof. The "
    "rows of the proof must be independent, and must not have been used to train or choose the "
    "model, the score or the risk"
)


@dataclass(frozen=True, repr=False)
class SelectiveGuarantee(ShortRepr, AsText):
    """Guaranteed error rate of the answers of a `SelectiveClassifier`.

    Call ``print`` to read the guarantee in sentences.

    Attributes
    ----------
    risk : float
        Proved upper bound of the mean loss of the answers. The mean loss is the share of wrong
        answers, or the mean cost.
    delta : float
        Maximum probability, over the draw of the rows of the proof, that the guarantee fails.
    answered : float
        Share of the rows of the proof that are answered.
    error_rate : float
        Mean loss if all rows of the proof were answered.
    rows_needed : int
        Minimum number of rows that can prove the risk, if no row has an error.
    certificate : Certificate
        Number and digest of the rows of the proof, and date of the proof.
    is_error : bool
        Whether the loss is 1 for every wrong answer. If False, the loss is a cost.
    per_class : bool
        Whether the risk holds for the answers of every class, not only on average over all answers.
    unproved : tuple of str
        Classes that are never predicted, because no bound of their risk was proved.

    See Also
    --------
    calibrant.decisions.SelectiveClassifier : Classifier with this guarantee.
    """

    risk: float
    delta: float
    answered: float
    error_rate: float
    rows_needed: int
    certificate: Certificate
    is_error: bool = True
    per_class: bool = False
    unproved: tuple[str, ...] = ()

    @property
    def least_abstained(self) -> float:
        """Minimum share of rows on which any method with this guarantee must abstain.

        The share is (mu - risk) / (1 - risk) for the error rate mu of all rows. In the best case,
        all predictions for abstained rows are wrong.
        """
        if not self.is_error:
            return 0.0
        return max(0.0, (self.error_rate - self.risk) / (1 - self.risk))

    def __str__(self) -> str:
        scope = f"{_ASSUMPTIONS}." if self.answered else ""
        parts = [self._revocation(), self._statement(), self._classes(), self._bound(), scope]
        return " ".join(filter(None, parts))

    def _revocation(self) -> str:
        reason = self.certificate.revoked
        return f"This guarantee was revoked: {reason.rstrip('.')}." if reason else ""

    def _statement(self) -> str:
        if not self.answered:
            return self._failure()
        scope = " of each class" if self.per_class else ""
        what = f"at most {self._risk()} of the answers{scope} are wrong"
        if not self.is_error:
            what = f"the mean cost of the answers{scope} is at most {self._risk()}"
        return (
            f"With {format_percent(1 - self.delta)} confidence, {what}. "
            f"{format_percent(self.answered)} of the rows are answered."
        )

    def _failure(self) -> str:
        n_rows, n_needed = self.certificate.n_rows, self.rows_needed
        reason = "the most confident rows have too many errors"
        if n_rows < n_needed:
            reason = f"there are only {n_rows} rows"
        elif self.per_class:
            reason = "no class has enough rows with few errors"
        scope = " of a class" * self.per_class
        return (
            f"Nothing could be proved, so no row is answered. A risk of {self._risk()} needs at "
            f"least {n_needed} rows{scope} without an error, but {reason}."
        )

    def _risk(self) -> str:
        return format_percent(self.risk) if self.is_error else format_number(self.risk)

    def _classes(self) -> str:
        if not self.unproved:
            return ""
        text = ", ".join(self.unproved[:5]) + (", ..." if len(self.unproved) > 5 else "")
        return f"Nothing was proved for the classes {text}, which are never predicted."

    def _bound(self) -> str:
        if self.least_abstained < 0.0005:  # less than 0.1%
            return ""
        return (
            f"Without abstention, {format_percent(self.error_rate)} of the predictions are wrong. "
            f"Any method with a risk of at most {self._risk()} therefore abstains on at least "
            f"{format_percent(self.least_abstained)} of the rows."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        return {
            **asdict(self),
            "certificate": self.certificate.to_dict(),
            "unproved": list(self.unproved),
            "text": str(self),
        }


@dataclass(frozen=True, repr=False)
class CoverageGuarantee(ShortRepr, AsText):
    """Guaranteed coverage of the sets of `PredictionSets`.

    Call ``print`` to read the guarantee in sentences.

    Attributes
    ----------
    coverage : float
        Lower bound of the probability that the set of a new row contains its label.
    expected : float
        Exact value of this probability if no scores are tied. The probability is k / (n + 1),
        averaged over classes, if the threshold is the k-th smallest of n scores. The probability is
        1 for a class that is in every set.
    low, high : float
        Range that contains the coverage on new rows with probability 0.9, if no scores are tied.
        The limits are the 5% and 95% quantiles of Beta(k, n + 1 - k). Class-conditional sets have
        the range of the class with the fewest rows, apart from classes that are in every set.
    certificate : Certificate
        Number and digest of the rows that determine the sets, and date of the proof.
    class_conditional : bool
        Whether the coverage holds for every class.
    pooled : tuple of str
        Classes with too few rows for a separate threshold. The coverage holds on average over the
        rows of these classes.
    always : tuple of str
        Classes with too few rows for any threshold, which are in every set.

    See Also
    --------
    calibrant.decisions.PredictionSets : Sets with this guarantee.
    """

    coverage: float
    expected: float
    low: float
    high: float
    certificate: Certificate
    class_conditional: bool = False
    pooled: tuple[str, ...] = ()
    always: tuple[str, ...] = ()

    def __str__(self) -> str:
        scope = " for every class" if self.class_conditional else ""
        reason = self.certificate.revoked
        parts = [
            f"This guarantee was revoked: {reason.rstrip('.')}." if reason else "",
            f"A set contains the true label with probability at least "
            f"{format_percent(self.coverage)}{scope}, on average over calibration rows.",
            f"With these {self.certificate.n_rows} rows, the set coverage on new rows is between "
            f"{format_percent(self.low)} and {format_percent(self.high)} with 90% confidence.",
        ]
        parts += [self._pooled_classes(), self._included_classes(), f"{_ASSUMPTIONS}."]
        return " ".join(filter(None, parts))

    def _pooled_classes(self) -> str:
        if not self.pooled:
            return ""
        return (
            f"For {_class_text(self.pooled)}, the coverage holds only on average over the rows of "
            "all these classes, because each of these classes has too few rows."
        )

    def _included_classes(self) -> str:
        if not self.always:
            return ""
        verb = "are" if len(self.always) > 1 else "is"
        names = _class_text(self.always).replace("the", "The", 1)
        return f"{names} {verb} in every set, because there are too few rows."

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        fields = {**asdict(self), "pooled": list(self.pooled), "always": list(self.always)}
        return {**fields, "certificate": self.certificate.to_dict(), "text": str(self)}


def _class_text(names: tuple[str, ...]) -> str:
    text = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"the classes {text}" if len(names) > 1 else f"the class {text}"
