"""Calibrate the confidences of open answers with features of each answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from calibrant._data.folds import as_folds
from calibrant._kernels.simplex import log_sigmoids, sigmoid
from calibrant._typing import AnyArray, BoolArray, FloatArray
from calibrant._validation import check_fitted, check_same_length
from calibrant.llm._answer_columns import answer_columns, answer_frame, column_of
from calibrant.metrics._answers import as_outcomes

STRENGTHS = (np.inf, 100.0, 30.0, 10.0, 3.0)
"""Strengths of the penalty on task effects. Infinity disables the effects."""

_RIDGE = 1.0
"""Penalty of the slopes of standardized features: a normal prior with standard deviation 1."""

_N_FOLDS = 5


class AnswerCalibration(ClassifierMixin, BaseEstimator):
    r"""Predict whether an answer is correct from its confidence and other features.

    Parameters
    ----------
    features : sequence of str, default ("confidence",)
        Columns of X. ``"confidence"`` (stated, as a number or in words, see `parse_confidence`) and
        ``"agreement"`` (share of sampled answers that agree) enter as log-odds. ``"length"`` enters
        as log(1 + x), and other columns such as ``"mean_logprob"`` enter unchanged.
    by : str, optional
        Column with the task. Each task gets its own offset, which a penalty shrinks toward zero.
        Held-out rows determine the strength of the penalty. An unseen task gets no offset.
    percent : bool, default False
        Whether numbers without % in the column ``confidence`` are percentages.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Slopes of the transformed features.
    intercept_ : float
        Intercept.
    effects_ : dict of task -> float
        Offsets of the tasks.
    strength_ : float
        Penalty of the offsets, or infinity if all offsets are 0.
    n_missing_ : int
        Number of rows that the fit left out because a feature is missing or cannot be parsed.
    classes_ : array of shape (2,)
        False and True.

    See Also
    --------
    parse_confidence : Convert stated confidences to numbers.
    OptionCalibration : Calibrate the options of multiple-choice questions.

    Notes
    -----
    The log-odds of a correct answer are :math:`b + \sum_j a_j x_j + b_\text{task}`. The log-loss
    plus :math:`\frac12 \sum_j a_j^2 + \frac s2 \sum b_\text{task}^2` of standardized features is
    minimized. The strength s is infinity, 100, 30, 10 or 3. The selected strength has the largest
    reduction of the log-loss on held-out rows of 5 folds, minus its standard error.

    Do not mix confidences of different sources. Fit one model per source.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stated = rng.choice(["60%", "80%", "very likely"], 900)
    >>> chance = np.select([stated == "60%", stated == "80%"], [0.4, 0.5], 0.7)
    >>> model = AnswerCalibration().fit({"confidence": stated}, rng.random(900) < chance)
    >>> model.predict_confidence({"confidence": ["60%", "very likely"]}).round(1).tolist()
    [0.4, 0.7]
    """

    def __init__(
        self,
        features: Sequence[str] = ("confidence",),
        by: str | None = None,
        *,
        percent: bool = False,
    ) -> None:
        self.features = features
        self.by = by
        self.percent = percent

    def fit(self, X: Any, correct: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : data frame, dict of columns, Run or Runs
            Features of the answers. Runs must have one source of confidence. The tasks of runs are
            the column ``task``.
        correct : array-like of bool, shape (n,)
            Whether the answers are correct. Omit this argument for runs, which contain the
            correctness.

        Returns
        -------
        self
        """
        frame, run_outcome = answer_frame(X)
        if correct is None and run_outcome is None:
            raise ValueError(
                "fit needs the correctness of each answer. Pass correct=, an array of True and "
                "False."
            )
        outcome = as_outcomes(np.asarray(run_outcome if correct is None else correct))
        columns = answer_columns(frame, self._names(), percent=self.percent)
        check_same_length(X=columns, correct=outcome)
        is_complete: BoolArray = np.asarray(~np.isnan(columns).any(axis=1))
        self.n_missing_ = int((~is_complete).sum())
        x, y = columns[is_complete], outcome[is_complete]
        _check_outcomes(y)
        names, codes = np.unique(self._task_names(frame, is_complete), return_inverse=True)
        self.strength_ = _best_strength(x, y, codes, len(names))
        self.coef_, self.intercept_, effects = _fit(x, y, codes, len(names), self.strength_)
        self.effects_ = dict(zip(names.tolist(), effects.tolist(), strict=True))
        self.classes_ = np.array([False, True])
        return self

    def _names(self) -> list[str]:
        if isinstance(self.features, str) or not len(self.features):
            raise ValueError(
                f"features must be a sequence of column names, got {self.features!r}. For "
                "example, pass features=('confidence',)."
            )
        return list(self.features)

    def _task_names(self, frame: Any, rows: BoolArray) -> AnyArray:
        if self.by is None:
            return np.full(int(rows.sum()), "")
        return np.asarray(column_of(frame, self.by), dtype=str)[rows]

    def predict_confidence(self, X: Any) -> FloatArray:
        """Return the probability that each answer is correct.

        Parameters
        ----------
        X : data frame, dict of columns, Run or Runs
            Features of the answers.

        Returns
        -------
        array of shape (n,)
            The probability is NaN if a feature is missing or cannot be parsed.
        """
        check_fitted(self)
        frame, _ = answer_frame(X)
        columns = answer_columns(frame, self._names(), percent=self.percent)
        tasks = self._task_names(frame, np.ones(len(columns), bool))
        effects = np.array([self.effects_.get(task, 0.0) for task in tasks.tolist()])
        return sigmoid(columns @ self.coef_ + self.intercept_ + effects)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of a wrong and of a correct answer.

        Parameters
        ----------
        X : data frame, dict of columns, Run or Runs
            Features of the answers.

        Returns
        -------
        array of shape (n, 2)
        """
        confidence = self.predict_confidence(X)
        return np.column_stack([1 - confidence, confidence])

    def predict(self, X: Any) -> BoolArray:
        """Return whether a correct answer is more likely than a wrong answer.

        Parameters
        ----------
        X : data frame, dict of columns, Run or Runs
            Features of the answers.

        Returns
        -------
        array of bool, shape (n,)
        """
        return self.predict_confidence(X) > 0.5


def _check_outcomes(y: BoolArray) -> None:
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"{len(y)} complete rows have only one outcome, but rows with correct answers and "
            "rows with wrong answers are needed. Pass more rows."
        )


def _fit(
    x: FloatArray, y: BoolArray, codes: AnyArray, n_tasks: int, strength: float
) -> tuple[FloatArray, float, FloatArray]:
    """Return the slopes of the columns, the intercept and the offsets of the tasks."""
    center, width = x.mean(axis=0), x.std(axis=0)
    width = np.where(width > 0, width, 1.0)
    design = (x - center) / width / np.sqrt(_RIDGE)
    has_effects = np.isfinite(strength) and n_tasks > 1
    if has_effects:
        # Dividing a column by sqrt(s) multiplies its ridge penalty by s.
        offsets = (codes[:, None] == np.arange(n_tasks)) / np.sqrt(strength)
        design = np.hstack([design, offsets])
    model = LogisticRegression(solver="newton-cholesky", tol=1e-8, max_iter=200).fit(design, y)
    coef = model.coef_[0]
    slopes = coef[: x.shape[1]] / np.sqrt(_RIDGE) / width
    effects = coef[x.shape[1] :] / np.sqrt(strength) if has_effects else np.zeros(n_tasks)
    return slopes, float(model.intercept_[0] - slopes @ center), effects


def _best_strength(x: FloatArray, y: BoolArray, codes: AnyArray, n_tasks: int) -> float:
    """Return the strength with the best held-out log-loss, or infinity without tasks.

    The reduction of the log-loss is compared after the subtraction of its standard error.
    """
    if n_tasks < 2:
        return float("inf")
    folds = as_folds(_N_FOLDS, np.column_stack([x, codes]), y.astype(np.intp), np.ones(len(y)), 0)
    losses = np.zeros((len(STRENGTHS), len(y)))
    for fold in folds:
        fit, test = fold.fit, fold.held_out
        if len(np.unique(y[fit])) < 2:
            return float("inf")
        for place, strength in enumerate(STRENGTHS):
            slopes, intercept, effects = _fit(x[fit], y[fit], codes[fit], n_tasks, strength)
            hit, miss = log_sigmoids(x[test] @ slopes + intercept + effects[codes[test]])
            losses[place, test] = -np.where(y[test], hit, miss)
    gains = losses[0] - losses  # reduction in loss of each row, compared with no effects
    # Subtract one standard error of the sum, so effects are not selected because of noise.
    noise = np.sqrt(((gains - gains.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    return float(STRENGTHS[int((gains.sum(axis=1) - noise).argmax())])
