"""A classifier that abstains to limit the share of wrong answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter

from calibrant._output.numbers import format_percent
from calibrant._typing import AnyArray, BoolArray, FloatArray, Inputs, IntArray, LabelsLike
from calibrant._validation import (
    as_seed,
    check_fitted,
    check_new_labels,
    check_share,
    check_weight,
    warn_data,
)
from calibrant.base import FittedValue
from calibrant.base.fitted import SHARE
from calibrant.decisions._losses import abstention_label, scaled_losses, with_abstentions
from calibrant.decisions._proof import rows_without_error
from calibrant.decisions._saved import SavedModel
from calibrant.decisions._score_parameter import HasScoreParameter, ScoreParameter
from calibrant.decisions._source import (
    copy_feature_names,
    copy_tags,
    fit_router,
    probabilities,
    proof_rows,
)
from calibrant.decisions._threshold import Threshold, find_threshold, find_thresholds
from calibrant.guarantees import SelectiveGuarantee, certify
from calibrant.metrics.sureness import check_score, sureness


class SelectiveClassifier(
    HasScoreParameter, SavedModel, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    r"""Answer or abstain, with at most a given share of wrong answers.

    The bound on the error rate is proved with rows that were not used to fit the estimator. If you
    pass probabilities, a fitted calibrator or ``FrozenEstimator(model)``, the proof uses all rows.
    If you pass an unfitted classifier or calibrator, the proof uses rows that are held out from the
    fit.

    Parameters
    ----------
    estimator : classifier, calibrator or None
        If None, X contains scores of the kind ``inputs``. A fitted calibrator or a
        ``FrozenEstimator`` is not fitted again. Any other estimator is cloned and fitted on a part
        of the rows.
    risk : float, default 0.05
        Largest share of wrong answers. For a cost matrix, the largest mean cost of the answers.
    delta : float, default 0.1
        Probability, over the draw of the rows, that the error rate of the answers exceeds the risk.
    score : {"confidence", "margin", "log-margin"} or callable, default "confidence"
        Score that ranks the rows. Rows with the highest score are answered. "confidence" is the
        highest probability. "margin" is the difference between the two highest probabilities, and
        "log-margin" is the logarithm of their ratio. A function takes probabilities (n, K) and
        returns one number per row.
    loss : "error" or array-like of shape (K, K), default "error"
        "error" counts wrong answers. A matrix contains the cost of each answer (column) for each
        true class (row). The index and the columns of a pandas frame are matched to the classes.
    per_class : bool, default False
        Whether the risk holds for the answers of every class, with one threshold per class. If
        False, the risk holds on average over all answers.
    cv : float, default 0.5
        Share of rows held out for the proof, if `fit` fits the estimator.
    abstain : label, optional
        Prediction for rows without an answer. The default is -1 if labels are numbers and "" if
        labels are text.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in X, if ``estimator`` is None.
    classes : array-like of labels, optional
        Labels of the columns of X, if ``estimator`` is None.
    random_state : int, Generator or None, default 0
        Seed of the split, of the order of tied rows and of the draws for losses between 0 and 1.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Labels of the columns.
    estimator_ : estimator
        The fitted estimator that predicts.
    threshold_ : float
        Rows with a score above this threshold are answered. The threshold is -inf if all rows are
        answered, and inf if no row is answered. This attribute is not set if ``per_class`` is True.
    thresholds_ : array of shape (K,)
        The threshold for each predicted class.
    coverage_ : float
        Share of the rows of the proof that are answered.
    n_proved_ : int
        Number of rows of the proof.
    unproved_classes_ : array
        Classes whose answers have no proof. These classes are never predicted.
    certificate_ : calibrant.guarantees.Certificate
        Number and digest of the rows of the proof, and date of the proof.

    See Also
    --------
    select_answers : A guarantee on average over a batch, which answers more rows.
    DecisionRule : Abstain if an answer is expected to cost more than an abstention.
    calibrant.guarantees.SelectiveGuarantee : The result of `guarantee`.

    Notes
    -----
    Let R(t) be the error rate of new rows with a score above t. The threshold has
    :math:`P(R(t) \le \text{risk}) \ge 1 - \delta` for every distribution, and R need not be
    monotone. The proof compares the errors of the most confident rows with an exact boundary of a
    random walk. Closed testing passes the unused part of :math:`\delta` on to the next ranks. Ties
    are broken at random in the proof, and tied rows are answered together.

    A loss between 0 and the largest cost C is replaced by an error with probability loss / C. The
    risk is replaced by risk / C. With ``per_class``, delta is divided by the number of predicted
    classes with enough rows for a proof.

    At delta 0.1, a proof of risk 0.05 needs 45 rows without an error, and a proof of risk 0.01
    needs 230 rows. The guarantee assumes independent rows that were used neither to fit nor to
    choose the estimator, the score or the risk. The guarantee does not hold for data that drift.
    Use `calibrant.monitoring.RiskMonitor` to detect a higher error rate.

    Rows of a group are not independent. If you pass ``groups`` to `fit`, the proof uses one random
    row per group. Weights are passed to the fit of the estimator. Each row of the proof counts
    once.

    References
    ----------
    Geifman & El-Yaniv (2017), Selective classification for deep neural networks, arXiv:1705.08500;
    Angelopoulos et al. (2021), Learn then test, arXiv:2110.01052.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = SelectiveClassifier(risk=0.1).fit(data.val_proba, data.val_labels)
    >>> answered = model.answers(data.test_proba)
    >>> wrong = model.predict(data.test_proba)[answered] != data.test_labels[answered]
    >>> bool(wrong.mean() <= 0.1)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        risk: float = 0.05,
        delta: float = 0.1,
        score: Any = "confidence",
        loss: Any = "error",
        per_class: bool = False,
        cv: float = 0.5,
        abstain: Any = None,
        inputs: Inputs = "proba",
        classes: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.delta = delta
        self.score = score
        self.loss = loss
        self.per_class = per_class
        self.cv = cv
        self.abstain = abstain
        self.inputs = inputs
        self.classes = classes
        self.random_state = random_state

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "thresholds_": FittedValue(("K",), is_finite=False),
        "threshold_": FittedValue((), is_finite=False),
        "coverage_": SHARE,
        "error_rate_": FittedValue((), 0.0),
        "n_proved_": FittedValue((), 0.0),
        "rows_needed_": FittedValue((), 0.0),
    }

    def fit(self, X: Any, y: LabelsLike, **fit_params: Any) -> Self:
        """Fit the estimator if necessary, and find the lowest threshold that can be proved.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Features of the estimator, or scores if the estimator is a calibrator or None.
        y : array-like of shape (n,)
            Labels.
        **fit_params
            Passed to the ``fit`` of the estimator, except for ``groups`` of shape (n,). Rows of a
            group are not separated, and the proof uses one random row per group.

        Returns
        -------
        self
        """
        self._check_options()
        rows = proof_rows(self, X, y, fit_params)
        self.estimator_, self.classes_ = rows.estimator, rows.classes
        self.n_classes_, self.n_proved_ = len(rows.classes), len(rows.y)
        abstention_label(self.abstain, self.classes_)  # raises if the label is a class
        self._prove(rows.proba, rows.y)
        self.certificate_ = certify(rows.proba, rows.y, self.risk, self.delta)
        copy_feature_names(self)
        return self

    def _check_options(self) -> None:
        check_share(self.delta, "delta")
        check_score(vars(self)["score"])
        if isinstance(self.loss, str):
            if self.loss != "error":
                raise ValueError(
                    f"loss must be 'error' or a cost matrix, got {self.loss!r}. Pass loss='error'."
                )
            check_share(self.risk, "risk")
        as_seed(self.random_state)

    def _prove(self, proba: FloatArray, y: IntArray) -> None:
        """Set the thresholds, from probabilities and column codes of the rows of the proof."""
        predicted, scores = proba.argmax(axis=1), sureness(vars(self)["score"], proba)
        losses, risk = scaled_losses(self.loss, self.risk, predicted, y, self.classes_)
        self.error_rate_ = float(losses.mean()) * float(self.risk) / risk
        self.__dict__.pop("threshold_", None)  # of an earlier fit
        thresholds = self._find_thresholds(predicted, scores, losses, risk)
        self.thresholds_ = np.array([threshold.value for threshold in thresholds])
        if not self.per_class:
            self.threshold_ = thresholds[0].value
        is_answered = scores > self.thresholds_[predicted]
        self.coverage_ = float(is_answered.mean())
        self.unproved_classes_ = self.classes_[np.isposinf(self.thresholds_)]
        self.rows_needed_ = rows_without_error(risk, self.delta)
        if not is_answered.any():
            self._warn_silent(losses)

    def _find_thresholds(
        self, predicted: IntArray, scores: FloatArray, losses: FloatArray, risk: float
    ) -> list[Threshold]:
        """Return the threshold of each class."""
        # The second number of the seed makes this random stream different from that of the split.
        rng = np.random.default_rng([as_seed(self.random_state) or 0, 1])
        n_classes = self.n_classes_
        if self.per_class:
            return find_thresholds(predicted, scores, losses, risk, self.delta, n_classes, rng)
        return [find_threshold(scores, losses, risk, self.delta, rng)] * n_classes

    def _warn_silent(self, losses: FloatArray) -> None:
        needed = f"{self.rows_needed_} rows without an error"
        reason = f"The proof has {self.n_proved_} rows and needs at least {needed}."
        if self.per_class:
            reason = f"The proof of a class needs at least {needed}."
        elif self.n_proved_ >= self.rows_needed_:
            reason = f"The most confident rows contain too many errors. The proof needs {needed}."
        warn_data(
            f"No row is answered, because risk={self.risk:g} could not be proved. {reason} Without "
            f"abstention, the mean loss is {format_percent(losses.mean())} of the largest loss. "
            f"Pass more rows, or a larger risk."
        )

    def answers(self, X: Any) -> BoolArray:
        """Return whether each row is answered.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        array of bool, shape (n,)
        """
        return self._answers_of(self._proba_of(X))

    def _answers_of(self, proba: FloatArray) -> BoolArray:
        scores = sureness(vars(self)["score"], proba)
        return np.asarray(scores > self.thresholds_[proba.argmax(axis=1)])

    def predict(self, X: Any) -> AnyArray:
        """Predict labels, or the label of an abstention for rows without an answer.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        array of shape (n,)
        """
        proba = self._proba_of(X)
        labels = self.classes_[proba.argmax(axis=1)]
        silent = abstention_label(self.abstain, self.classes_)
        return with_abstentions(labels, self._answers_of(proba), silent)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator, also for rows without an answer.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        array of shape (n, K)
        """
        return self._proba_of(X)

    def _proba_of(self, X: Any) -> FloatArray:
        check_fitted(self)
        return probabilities(self.estimator_, X, self.classes_)

    @ScoreParameter
    def score(self, X: Any, y: LabelsLike, sample_weight: Any = None) -> float:
        """Return the accuracy of the answers, or NaN if no row is answered.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Row weights.

        Returns
        -------
        float
        """
        proba = self._proba_of(X)
        labels = check_new_labels(y, len(proba), self.classes_)
        weight = check_weight(sample_weight, len(labels)) * self._answers_of(proba)
        if not weight.any():
            return float("nan")
        is_correct = self.classes_[proba.argmax(axis=1)] == labels
        return float(weight @ is_correct / weight.sum())

    def guarantee(self) -> SelectiveGuarantee:
        """Return the guaranteed bound on the error rate of the answers.

        Returns
        -------
        calibrant.guarantees.SelectiveGuarantee
            The guarantee. Print the guarantee for a description.

        Examples
        --------
        >>> from calibrant.datasets import digits_predictions
        >>> data = digits_predictions()
        >>> model = SelectiveClassifier(risk=0.1).fit(data.val_proba, data.val_labels)
        >>> print(model.guarantee())
        With 90% confidence, at most 10% of the answers are wrong. 91.5% of the rows ...
        """
        check_fitted(self)
        is_whole = self.per_class and len(self.unproved_classes_) < self.n_classes_
        return SelectiveGuarantee(
            # Parameters can change after the fit, so the certificate has the proved values.
            risk=self.certificate_.risk,
            delta=self.certificate_.delta,
            answered=self.coverage_,
            error_rate=self.error_rate_,
            rows_needed=self.rows_needed_,
            certificate=self.certificate_,
            is_error=isinstance(self.loss, str),
            per_class=bool(self.per_class),
            unproved=tuple(map(str, self.unproved_classes_.tolist())) if is_whole else (),
        )

    def _probe(self, proba: FloatArray) -> None:
        self._check_options()
        self._answers_of(proba)
        abstention_label(self.abstain, self.classes_)
        if not set(self.unproved_classes_.tolist()) <= set(self.classes_.tolist()):
            raise ValueError("unproved_classes_ must be a subset of classes_")

    def get_metadata_routing(self) -> MetadataRouter:
        """Route the parameters of ``fit`` to the estimator."""
        return fit_router(self)

    def __sklearn_tags__(self) -> Any:
        return copy_tags(super().__sklearn_tags__(), self.estimator)
