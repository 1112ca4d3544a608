"""Decisions with the lowest expected cost, and a classifier that makes these decisions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import MetadataRouter

from calibrant._kernels.costs import cheapest_actions, expected_costs
from calibrant._typing import AnyArray, FloatArray, LabelsLike, ScoresLike
from calibrant._validation import (
    add_abstention,
    arrange_as_fitted,
    as_array,
    check_classes,
    check_costs,
    check_fitted,
    check_scores,
)
from calibrant.base import Calibrator
from calibrant.classifier._responses import check_classifier
from calibrant.decisions._losses import abstention_label, is_text
from calibrant.decisions._saved import SavedDecision, calibrator_to_save
from calibrant.decisions._source import copy_feature_names, copy_tags, fit_router, probabilities


class DecisionRule(SavedDecision, BaseEstimator):
    r"""Choose the action with the lowest expected cost for each row of probabilities.

    Parameters
    ----------
    cost : array-like of shape (K, A)
        Cost of each action (column) for each true class (row). A class label can also be an action.
        The index and the columns of a pandas frame are matched to ``classes`` and ``actions``.
    abstain : float or array-like of shape (K,), optional
        Cost of an abstention, for all classes or for each true class. The abstention is the last
        action.
    classes : array-like of K labels, optional
        Labels of the rows of ``cost``. The default is 0 to K - 1.
    actions : array-like of labels, optional
        Labels of the columns of ``cost``, and optionally of the abstention. The default is
        ``classes`` if ``cost`` is square, else 0 to A - 1.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Labels of the columns of probabilities.
    actions_ : array
        Labels of the actions, with the abstention last.
    costs_ : array of shape (K, A) or (K, A + 1)
        Costs of all actions, with the abstention last.

    See Also
    --------
    SelectiveClassifier : Abstain to limit the share of wrong answers.
    calibrant.metrics.decision_cost : The mean cost of decisions.
    calibrant.inference.decision_gain : How much calibration reduces the cost.

    Notes
    -----
    With the costs :math:`c_{ka}`, the decision for probabilities p is
    :math:`\arg\min_a \sum_k p_k c_{ka}`. Ties go to the first column. This decision is optimal if p
    are the true probabilities, so calibrate the probabilities first. If errors cost 1 and an
    abstention costs d, the rule answers if the confidence is at least 1 - d (Chow's rule). With the
    costs ``[[0, t], [1 - t, 0]]`` of a binary problem, the rule predicts class 1 if its probability
    is above t. After a change of class frequencies, decide on the corrected probabilities of
    `calibrant.label_shift`.

    By default, the abstention has the label A, the number of its column. If you pass ``classes`` or
    ``actions``, this label is "" for text and -1 for numbers, unless ``actions`` contains a label
    for the abstention.

    References
    ----------
    Chow (1970), On optimum recognition error and reject tradeoff, doi:10.1109/TIT.1970.1054406;
    Elkan (2001), The foundations of cost-sensitive learning.

    Examples
    --------
    >>> rule = DecisionRule([[0, 1], [5, 0]], abstain=0.5, actions=["ignore", "treat", "ask"])
    >>> rule.decide([[0.95, 0.05], [0.7, 0.3], [0.1, 0.9]]).tolist()
    ['ignore', 'ask', 'treat']
    >>> rule.expected_cost([[0.95, 0.05], [0.7, 0.3], [0.1, 0.9]]).round(2).tolist()
    [0.25, 0.5, 0.1]
    """

    def __init__(
        self, cost: Any, abstain: Any = None, *, classes: Any = None, actions: Any = None
    ) -> None:
        self.cost = cost
        self.abstain = abstain
        self.classes = classes
        self.actions = actions
        self._check()  # there is no fit that could check the parameters

    def _check(self) -> None:
        n_rows = len(self.costs_)
        if self.classes is not None and len(as_array(self.classes)) != n_rows:
            raise ValueError(
                f"cost has {n_rows} rows, but there are {len(as_array(self.classes))} classes. "
                "Pass one row of costs per class."
            )
        check_classes(self.classes, n_rows)
        labels = self.actions_.tolist()
        if len(set(labels)) != len(labels):
            raise ValueError(
                f"actions must not contain duplicates, got {labels}. Pass distinct labels."
            )

    @property
    def costs_(self) -> FloatArray:
        return add_abstention(self._table(), self.abstain)

    def _table(self) -> FloatArray:
        """Return the checked costs without the abstention."""
        actions = self.classes if self.actions is None else self.actions
        return check_costs(self.cost, classes=self.classes, actions=actions)

    @property
    def classes_(self) -> AnyArray:
        return check_classes(self.classes, len(self.costs_))

    @property
    def actions_(self) -> AnyArray:
        return action_labels(self.costs_, self.abstain, self.classes, self.actions)

    def decide(self, proba: ScoresLike) -> AnyArray:
        """Return the action with the lowest expected cost for each row.

        Parameters
        ----------
        proba : array-like of shape (n, K) or (n,)
            Probabilities. The columns of a data frame are matched to the classes by name.

        Returns
        -------
        array of shape (n,)
            Labels of actions.
        """
        return self.actions_[cheapest_actions(self._checked(proba), self.costs_)]

    def expected_cost(self, proba: ScoresLike) -> FloatArray:
        """Return the expected cost of the decision for each row.

        Parameters
        ----------
        proba : array-like of shape (n, K) or (n,)
            Probabilities.

        Returns
        -------
        array of shape (n,)
        """
        return np.asarray(expected_costs(self._checked(proba), self.costs_).min(axis=1))

    def _checked(self, proba: ScoresLike) -> FloatArray:
        classes = self.classes_
        table = arrange_as_fitted(proba, None, classes)
        scores = check_scores(table).astype(np.float64, copy=False)
        if scores.shape[1] != len(classes):
            raise ValueError(
                f"The probabilities have {scores.shape[1]} columns, but cost has {len(classes)} "
                f"rows. Pass one row of costs per class."
            )
        return scores

    def _portable(self) -> Self:
        def plain(value: Any) -> Any:
            return None if value is None else as_array(value)

        return type(self)(
            self._table(),
            plain(self.abstain),
            classes=plain(self.classes),
            actions=plain(self.actions),
        )

    def _check_loaded(self) -> None:
        self.decide(np.full((1, len(self.classes_)), 1 / len(self.classes_)))

    def wrap(self, estimator: Any) -> DecisionClassifier:
        """Return a classifier that predicts the decisions for the probabilities of an estimator.

        Parameters
        ----------
        estimator : classifier or calibrator
            A fitted estimator is used without a new fit. ``fit`` fits an unfitted estimator.

        Returns
        -------
        DecisionClassifier
        """
        model = DecisionClassifier(
            estimator, self.cost, self.abstain, classes=self.classes, actions=self.actions
        )
        return model._use(estimator) if hasattr(estimator, "classes_") else model


def _default_labels(costs: FloatArray, n_given: int, classes: Any) -> AnyArray:
    """Return the classes as labels of actions if there is one action per class, or numbers."""
    is_square = classes is not None and n_given == len(costs)
    return as_array(classes) if is_square else np.arange(costs.shape[1])


def action_labels(costs: FloatArray, abstain: Any, classes: Any, actions: Any) -> AnyArray:
    """Return the labels of actions. The last column of costs may be an abstention."""
    n_actions = costs.shape[1]
    n_given = n_actions - (abstain is not None)
    labels = _default_labels(costs, n_given, classes) if actions is None else as_array(actions)
    if labels.ndim != 1 or len(labels) not in (n_given, n_actions):
        raise ValueError(
            f"actions must contain {n_given} labels, one per column of cost"
            f"{', or one more for the abstention' * (abstain is not None)}, got {labels.tolist()}."
        )
    if len(labels) == n_actions:
        return labels
    last = "" if is_text(labels) else -1
    abstention_label(last, labels)  # raises an error if another action has this label
    # Boolean and unsigned labels become integers, because their types have no -1.
    return np.append(labels, last)


class DecisionClassifier(SavedDecision, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Predict the action with the lowest expected cost.

    Parameters
    ----------
    estimator : classifier or calibrator
        Model that predicts the probabilities. A fitted calibrator or a ``FrozenEstimator`` is not
        fitted again. Any other estimator is cloned and fitted. Use `calibrant.CalibratedClassifier`
        for calibrated probabilities.
    cost : array-like of shape (K, A), optional
        Cost of each action (column) for each true class (row). By default, every error costs 1.
    abstain : float or array-like of shape (K,), optional
        Cost of an abstention, which is the last action.
    classes : array-like of K labels, optional
        Labels of the rows of ``cost``. The default is the classes of the estimator.
    actions : array-like of labels, optional
        Labels of the columns of ``cost``. The default is ``classes`` if ``cost`` is square.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    rule_ : DecisionRule
        The decision rule for the classes of the estimator.
    classes_ : array of shape (K,)
        Labels of the estimator.

    See Also
    --------
    DecisionRule : The rule without an estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionClassifier(GaussianNB(), 5 * (1 - np.eye(3)), abstain=1).fit(X, y)
    >>> sorted(set(model.predict(X).tolist()))  # -1: abstain
    [-1, 0, 1, 2]
    """

    def __init__(
        self,
        estimator: Any,
        cost: Any = None,
        abstain: Any = None,
        *,
        classes: Any = None,
        actions: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.abstain = abstain
        self.classes = classes
        self.actions = actions

    def fit(self, X: Any, y: LabelsLike, **fit_params: Any) -> Self:
        """Fit the estimator, unless it is already fitted.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features of the estimator.
        y : array-like of shape (n,)
            Labels.
        **fit_params
            Passed to the ``fit`` of the estimator.

        Returns
        -------
        self
        """
        is_fitted = isinstance(self.estimator, Calibrator) and hasattr(self.estimator, "classes_")
        if is_fitted or isinstance(self.estimator, FrozenEstimator):
            return self._use(self.estimator)
        check_classifier(self.estimator)
        return self._use(clone(self.estimator).fit(X, y, **fit_params))

    def _use(self, estimator: Any) -> Self:
        """Set the fitted attributes for a fitted estimator."""
        self.estimator_, self.classes_ = estimator, np.asarray(estimator.classes_)
        self.n_classes_ = len(self.classes_)
        cost = 1.0 - np.eye(len(self.classes_)) if self.cost is None else self.cost
        labels = self.classes_ if self.classes is None else self.classes
        self.rule_ = DecisionRule(cost, self.abstain, classes=labels, actions=self.actions)
        cost_labels, columns = self.rule_.classes_.tolist(), self.classes_.tolist()
        if set(cost_labels) != set(columns):
            raise ValueError(
                f"classes are {cost_labels}, but the estimator has the classes {columns}. Pass one "
                f"row of costs per class of the estimator."
            )
        self._columns = np.array([columns.index(label) for label in cost_labels])
        copy_feature_names(self)
        return self

    def predict(self, X: Any) -> AnyArray:
        """Predict the action with the lowest expected cost.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features of the estimator.

        Returns
        -------
        array of shape (n,)
            Labels of actions.
        """
        proba = self._proba_of_rule(X)
        return self.rule_.decide(proba)

    def _proba_of_rule(self, X: Any) -> FloatArray:
        """Return the probabilities with the columns in the order of the rule."""
        return self.predict_proba(X)[:, self._columns]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features of the estimator.

        Returns
        -------
        array of shape (n, K)
        """
        check_fitted(self)
        return probabilities(self.estimator_, X, self.classes_)

    def _portable(self) -> Self:
        check_fitted(self)
        calibrator = calibrator_to_save(self)
        rule = self.rule_._portable()
        options = {"classes": self.rule_.classes_, "actions": rule.actions}
        portable = type(self)(calibrator, rule.cost, rule.abstain, **options)
        portable.classes_, portable.n_classes_ = self.classes_, self.n_classes_
        return portable

    def _check_loaded(self) -> None:
        if not isinstance(self.estimator, Calibrator):
            raise ValueError("the decision rule needs a calibrator")
        if self.classes_.tolist() != np.asarray(self.estimator.classes_).tolist():
            raise ValueError("its classes differ from the classes of its calibrator")
        self._use(self.estimator)
        self.rule_._check_loaded()

    def get_metadata_routing(self) -> MetadataRouter:
        """Route the parameters of ``fit`` to the estimator."""
        return fit_router(self)

    def __sklearn_tags__(self) -> Any:
        return copy_tags(super().__sklearn_tags__(), self.estimator)
