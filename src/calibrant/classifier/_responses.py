"""Scores of a scikit-learn classifier, with a column for every class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp
from sklearn.base import is_regressor

from calibrant._typing import AnyArray, FloatArray, Inputs
from calibrant._validation import as_array, encode_labels

SLACK = 1e-2
"""Allowed deviation of row sums from one. The tolerance is large, because users cannot normalize
the output of an inner classifier. """


class Scorer(Protocol):
    """One or several fitted classifiers that score rows."""

    @property
    def inputs(self) -> Inputs: ...

    @property
    def method(self) -> str: ...

    @property
    def estimators(self) -> list[Any]: ...

    def scores(self, X: Any) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Response:
    """Scores of one fitted classifier.

    ``n_rows`` is the number of its training rows. The probability of a class without training rows
    is 1 / (n + K) (rule of succession).
    """

    estimator: Any
    classes: AnyArray
    n_rows: float

    @property
    def method(self) -> str:
        """Name of the method that returns the scores, see `response_method`."""
        return response_method(self.estimator)

    @property
    def inputs(self) -> Inputs:
        return "logits" if self.method == "decision_function" else "proba"

    @property
    def estimators(self) -> list[Any]:
        """List that contains the fitted classifier."""
        return [self.estimator]

    def scores(self, X: Any) -> FloatArray:
        """Return scores of shape (n, K).

        If the classifier returns only the probability or the log-odds of the second class, the
        column of the first class is added.
        """
        raw = as_array(getattr(self.estimator, self.method)(X))
        raw = raw if raw.dtype in (np.float32, np.float64) else raw.astype(np.float64)
        trained = self.estimator.classes_
        if len(trained) > 1 and (raw.ndim == 1 or raw.shape[1] == 1):
            second = raw.reshape(-1)
            first = np.zeros_like(second) if self.inputs == "logits" else 1 - second
            raw = np.column_stack([first, second])
        return _round_scores(raw if len(trained) == len(self.classes) else self._add_columns(raw))

    def _add_columns(self, raw: FloatArray) -> FloatArray:
        """Add columns for classes that were not in the training rows."""
        trained = self.estimator.classes_
        n_missing = len(self.classes) - len(trained)
        columns = encode_labels(trained, len(self.classes), self.classes)[0]
        share = 1.0 / (self.n_rows + len(self.classes))
        if self.inputs == "proba":
            out = np.full((len(raw), len(self.classes)), share)
            out[:, columns] = raw * (1.0 - n_missing * share)
            return out
        missing = logsumexp(raw, axis=1) + np.log(share) - np.log1p(-n_missing * share)
        out = np.repeat(np.asarray(missing)[:, None], len(self.classes), axis=1)
        out[:, columns] = raw
        return out


def _round_scores(scores: FloatArray) -> FloatArray:
    """Round scores to 36 bits.

    The last bits of a matrix product depend on the other rows of the block. Rounding keeps a step
    function from jumping because of these bits.
    """
    mantissa, exponent = np.frexp(scores)
    return np.asarray(
        np.ldexp(np.round(mantissa * 2.0**36) * 2.0**-36, exponent), dtype=scores.dtype
    )


def check_classifier(estimator: Any) -> None:
    """Raise for an estimator that cannot score classes, before it is fitted."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"Expected a classifier, got the class {name}. Pass {name}().")
    if not hasattr(estimator, "fit"):
        raise TypeError(f"Expected a classifier, got {estimator!r}. Pass LogisticRegression().")
    # Estimators of other packages may have no tags, so they cannot be checked here.
    if hasattr(estimator, "__sklearn_tags__") and is_regressor(estimator):
        raise TypeError(
            f"{type(estimator).__name__} is a regressor, but a classifier with decision_function "
            f"or predict_proba is needed. For example, pass LogisticRegression()."
        )


def response_method(estimator: Any) -> str:
    """Return ``"decision_function"`` if it has one value per class, else ``"predict_proba"``."""
    has_proba = getattr(estimator, "predict_proba", None) is not None
    has_logits = getattr(estimator, "decision_function", None) is not None
    if not (has_logits or has_proba):
        raise TypeError(
            f"{type(estimator).__name__} has neither decision_function nor predict_proba, so it "
            f"returns no scores. Pass a classifier with one of these methods."
        )
    if not has_logits or (_votes_by_pairs(estimator) and has_proba):
        return "predict_proba"
    if _votes_by_pairs(estimator):
        raise ValueError(
            "decision_function returns one value per pair of classes, but one value per class is "
            "needed. Set decision_function_shape='ovr' in the estimator."
        )
    return "decision_function"


def _votes_by_pairs(estimator: Any) -> bool:
    """Return whether a support vector machine returns K (K - 1) / 2 decision values."""
    shape = getattr(estimator, "decision_function_shape", None)
    return shape == "ovo" and len(estimator.classes_) > 2
