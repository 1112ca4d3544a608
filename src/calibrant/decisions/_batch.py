"""Answers to a batch of rows, with a guaranteed error rate on average over batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._output.numbers import format_percent
from calibrant._output.results import AsText, ShortRepr
from calibrant._typing import AnyArray, BoolArray, FloatArray, Inputs, LabelsLike
from calibrant._validation import check_share
from calibrant.decisions._source import probabilities, proof_rows
from calibrant.metrics.sureness import check_score, sureness


@dataclass(frozen=True, eq=False, repr=False)
class Selection(ShortRepr, AsText):
    """Answers to a batch of rows, returned by `select_answers`.

    Print the selection for a description.

    Attributes
    ----------
    answered : array of bool, shape (m,)
        Whether each row of the batch is answered.
    labels : array of shape (m,)
        The most probable label of each row, also of rows that are not answered.
    p_values : array of shape (m,)
        P-value of the hypothesis that the label is wrong. Confident predictions have small
        p-values.
    risk : float
        Largest expected share of wrong answers.
    n_rows : int
        Number of rows with labels.

    See Also
    --------
    select_answers : Select the answers.
    """

    answered: BoolArray
    labels: AnyArray
    p_values: FloatArray
    risk: float
    n_rows: int

    @property
    def n_answered(self) -> int:
        """Number of rows that are answered."""
        return int(self.answered.sum())

    def __str__(self) -> str:
        return (
            f"{self.n_answered} of {len(self.answered)} rows are answered. On average over random "
            f"draws of the batch and of {self.n_rows} labeled rows, at most "
            f"{format_percent(self.risk)} of the answers are wrong. All rows must be independent "
            f"and from the same distribution. The labeled rows must not have been used to train or "
            f"choose the model."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the selection as plain values for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("answered", "labels", "p_values")}
        return {**asdict(self), **arrays, "n_answered": self.n_answered, "text": str(self)}


@dataclass(frozen=True, eq=False)
class _Owner:
    """The parameters of `select_answers` that determine which rows the proof uses."""

    estimator: Any
    inputs: str
    classes: Any
    cv: float = 0.5
    random_state: int = 0


def select_answers(
    y: LabelsLike,
    X: Any,
    X_new: Any,
    risk: float = 0.05,
    *,
    estimator: Any = None,
    score: Any = "confidence",
    inputs: Inputs = "proba",
    classes: Any = None,
) -> Selection:
    r"""Select rows of a batch to answer, with a bound on the mean error rate over batches.

    This function answers more rows than `SelectiveClassifier`, because its guarantee is weaker. The
    error rate is bounded on average over batches and labeled rows, not with a given confidence.
    Call this function once per batch.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels.
    X : array-like of shape (n, K) or (n, n_features)
        Scores of the rows with labels, or their features if an ``estimator`` is passed.
    X_new : array-like of shape (m, K) or (m, n_features)
        Rows of the batch, of the same kind as ``X`` and without labels.
    risk : float, default 0.05
        Largest expected share of wrong answers.
    estimator : classifier or calibrator, optional
        Model that predicts the probabilities. A fitted calibrator or a ``FrozenEstimator`` is not
        fitted again. Any other estimator is fitted on half of the rows.
    score : {"confidence", "margin", "log-margin"} or callable, default "confidence"
        Score that ranks the rows, see `SelectiveClassifier`. Rows with the highest score are
        answered.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores, if ``estimator`` is None.
    classes : array-like of labels, optional
        Labels of the columns, if ``estimator`` is None.

    Returns
    -------
    Selection
        Whether each row is answered, its label and its p-value.

    See Also
    --------
    SelectiveClassifier : A threshold for all future rows, with a stated confidence.

    Notes
    -----
    With the scores :math:`s_i` of n rows with labels, a row j of the batch has the p-value

    .. math:: p_j = \frac{1 + \#\{i: \text{row i is wrong and } s_i \ge s_j\}}{n + 1} .

    The Benjamini-Hochberg procedure at level ``risk`` selects the rows to answer. These are the
    rows with :math:`p_j \le \text{risk} \cdot k / m`, for the largest k such that k of the m rows
    satisfy this inequality. The expected value of (wrong answers) / max(answers, 1) is at most
    ``risk`` for every distribution of exchangeable rows. This bound holds even with ties, and even
    if higher scores are not better.

    The proof considers a wrong row j of the batch. The other p-values are replaced by values that
    are symmetric in row j and the n rows. If row j is answered, the number of answers stays the
    same. Given these n + 1 rows in any order, the rank of row j is uniform. Row j therefore
    contributes at most risk / m to the expected share of wrong answers.

    References
    ----------
    Jin & Candès (2023), Selection by prediction with conformal p-values, arXiv:2210.01408.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> chosen = select_answers(data.val_labels, data.val_proba, data.test_proba, risk=0.1)
    >>> chosen.n_answered
    587
    """
    check_share(risk, "risk")
    check_score(score)
    rows = proof_rows(_Owner(estimator, inputs, classes), X, y, {})
    new = probabilities(rows.estimator, X_new, rows.classes)
    is_wrong = rows.proba.argmax(axis=1) != rows.y
    p_values = _p_values(sureness(score, rows.proba)[is_wrong], len(rows.y), sureness(score, new))
    return Selection(
        answered=_step_up(p_values, risk),
        labels=rows.classes[new.argmax(axis=1)],
        p_values=p_values,
        risk=float(risk),
        n_rows=len(rows.y),
    )


def _p_values(wrong: FloatArray, n_rows: int, scores: FloatArray) -> FloatArray:
    """Return conformal p-values of scores, given the scores of wrong rows among ``n_rows``."""
    n_below = np.searchsorted(np.sort(wrong), scores, side="left")
    return np.asarray((1.0 + len(wrong) - n_below) / (n_rows + 1))


def _step_up(p_values: FloatArray, level: float) -> BoolArray:
    """Return which hypotheses the Benjamini-Hochberg procedure rejects."""
    n_tests = len(p_values)
    ordered = np.sort(p_values)
    passed = np.flatnonzero(ordered <= level * np.arange(1, n_tests + 1) / max(n_tests, 1))
    limit = ordered[passed[-1]] if passed.size else -1.0
    return np.asarray(p_values <= limit)
