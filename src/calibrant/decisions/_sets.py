"""Prediction sets that contain the true label with a guaranteed probability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.stats import beta
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter

from calibrant._data.row_sketch import row_hashes
from calibrant._output.numbers import format_percent
from calibrant._typing import AnyArray, BoolArray, FloatArray, Inputs, IntArray, LabelsLike
from calibrant._validation import (
    as_seed,
    check_fitted,
    check_new_labels,
    check_option,
    check_share,
    check_weight,
    warn_data,
)
from calibrant.base import FittedValue
from calibrant.decisions._saved import SavedModel
from calibrant.decisions._score_parameter import HasScoreParameter, ScoreParameter
from calibrant.decisions._source import (
    copy_feature_names,
    copy_tags,
    fit_router,
    probabilities,
    proof_rows,
)
from calibrant.guarantees import CoverageGuarantee, certify

_ROUNDING = 1e-9
"""Keeps (n + 1) * coverage from being rounded up: 0.9 * 10 must give rank 9."""


class PredictionSets(HasScoreParameter, SavedModel, MetaEstimatorMixin, BaseEstimator):
    r"""Predict sets of labels that contain the true label with a given probability.

    The sets are determined with rows that were not used to fit the estimator, see
    `SelectiveClassifier`. If you know the costs of errors, prefer probabilities and a
    `DecisionRule`. A set with one label has no guaranteed error rate, and an empty set is not an
    abstention.

    Parameters
    ----------
    estimator : classifier, calibrator or None
        If None, X contains scores of the kind ``inputs``. A fitted calibrator or a
        ``FrozenEstimator`` is not fitted again. Any other estimator is cloned and fitted on a part
        of the rows.
    coverage : float, default 0.9
        Smallest probability that a set contains the true label.
    score : {"lac", "aps"}, default "lac"
        "lac" includes all labels with a probability above a threshold, which gives the smallest
        sets on average. "aps" adds labels in the order of their probabilities, so uncertain rows
        get larger sets.
    randomize : bool, default False
        Whether "aps" includes the last label at random, which gives exact coverage and sometimes
        empty sets. Equal rows have equal sets. If False, the most probable label is always
        included.
    class_conditional : bool, default False
        Whether the coverage holds for the rows of every class.
    small : {"pool", "always"}, default "pool"
        Treatment of classes with fewer than 1 / (1 - coverage) - 1 rows, if ``class_conditional``.
        With "pool", the coverage holds on average over the rows of these classes. With "always",
        these classes are in every set.
    cv : float, default 0.5
        Share of rows that determine the sets, if `fit` fits the estimator.
    inputs : {"proba", "logits", "log_proba"}, default "proba"
        Type of the scores in X, if ``estimator`` is None.
    classes : array-like of labels, optional
        Labels of the columns of X, if ``estimator`` is None.
    random_state : int, Generator or None, default 0
        Seed of the split and of ``randomize``.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Labels of the columns.
    estimator_ : estimator
        The fitted estimator that predicts.
    thresholds_ : array of shape (K,)
        Threshold of each label. A label is in the set if its score is at most this threshold.
    pooled_classes_, always_classes_ : arrays
        Classes with too few rows for a separate threshold, by their treatment (``small``).
    certificate_ : calibrant.guarantees.Certificate
        Number and digest of the rows that determine the sets, and date of the proof.

    See Also
    --------
    SelectiveClassifier : One label with a guaranteed error rate, or no answer.
    DecisionRule : Actions with the lowest expected cost.
    calibrant.guarantees.CoverageGuarantee : The result of `guarantee`.

    Notes
    -----
    The threshold is the k-th smallest of the scores of the true labels of n rows, with
    :math:`k = \lceil (n + 1) \text{coverage} \rceil`. The threshold is infinite if k > n. A new set
    contains the true label with probability at least k / (n + 1) over the new row and the
    calibration rows. Given the calibration rows, the coverage has the distribution
    Beta(k, n + 1 - k), if scores are not tied.

    The score of label k is :math:`1 - p_k` for "lac". For "aps", the score is the sum of the
    probabilities above :math:`p_k`. ``randomize`` adds :math:`(1 - u) p_k` for a uniform random
    number u of the row. Sums that include :math:`p_k` without randomization would give empty sets
    for confident rows.

    References
    ----------
    Sadinle, Lei & Wasserman (2019), Least ambiguous set-valued classifiers, arXiv:1609.00451;
    Romano, Sesia & Candès (2020), Classification with valid and adaptive coverage,
    arXiv:2006.02544.

    Examples
    --------
    >>> from calibrant.datasets import digits_predictions
    >>> data = digits_predictions()
    >>> model = PredictionSets(coverage=0.95).fit(data.val_proba, data.val_labels)
    >>> sets = model.predict_set(data.test_proba)
    >>> sets.shape, bool(sets[np.arange(600), data.test_labels].mean() > 0.93)
    ((600, 10), True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        coverage: float = 0.9,
        score: str = "lac",
        randomize: bool = False,
        class_conditional: bool = False,
        small: str = "pool",
        cv: float = 0.5,
        inputs: Inputs = "proba",
        classes: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.score = score
        self.randomize = randomize
        self.class_conditional = class_conditional
        self.small = small
        self.cv = cv
        self.inputs = inputs
        self.classes = classes
        self.random_state = random_state

    fitted_values: ClassVar[Mapping[str, FittedValue]] = {
        "thresholds_": FittedValue(("K",), is_finite=False),
        "group_sizes_": FittedValue(("K",), 0.0),
    }

    def fit(self, X: Any, y: LabelsLike, **fit_params: Any) -> Self:
        """Fit the estimator if necessary, and determine the thresholds.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Features of the estimator, or scores if the estimator is a calibrator or None.
        y : array-like of shape (n,)
            Labels.
        **fit_params
            Passed to the ``fit`` of the estimator, except for ``groups`` of shape (n,). Rows of a
            group are not separated, and one random row per group counts.

        Returns
        -------
        self
        """
        self._check_options()
        rows = proof_rows(self, X, y, fit_params)
        self.estimator_, self.classes_ = rows.estimator, rows.classes
        self.n_classes_ = len(rows.classes)
        scores = self._scores_of(rows.proba)[np.arange(len(rows.y)), rows.y]
        groups = self._groups(rows.y)
        self.thresholds_ = np.array([group.threshold(scores, self.coverage) for group in groups])
        is_alone = [len(group.classes) == 1 for group in groups]
        always = np.isposinf(self.thresholds_) & is_alone & bool(self.class_conditional)
        self.always_classes_ = self.classes_[always]
        self.pooled_classes_ = self.classes_[~np.array(is_alone) & bool(self.class_conditional)]
        self.group_sizes_ = np.array([len(group.rows) for group in groups])
        self.certificate_ = certify(rows.proba, rows.y, 1 - self.coverage, 0.0)
        if np.isposinf(self.thresholds_).all():
            self._warn_full(len(rows.y))
        copy_feature_names(self)
        return self

    def _warn_full(self, n_rows: int) -> None:
        needed = math.ceil(self.coverage / (1 - self.coverage) * (1 - _ROUNDING))
        scope = " of a class" * bool(self.class_conditional)
        warn_data(
            f"All sets contain all labels, because a set coverage of "
            f"{format_percent(self.coverage)} needs at least {needed} rows{scope}, got "
            f"{n_rows} rows in total. Pass more rows, or a smaller coverage."
        )

    @property
    def _kind(self) -> str:
        """The parameter ``score``. The attribute ``score`` is a method."""
        kind: str = vars(self)["score"]
        return kind

    def _check_options(self) -> None:
        check_share(self.coverage, "coverage")
        check_option(self._kind, "score", ("lac", "aps"))
        check_option(self.small, "small", ("pool", "always"))
        as_seed(self.random_state)
        if self.randomize and self._kind != "aps":
            raise ValueError(
                'randomize=True needs score="aps", because "lac" has no random part. Pass '
                "randomize=False."
            )

    def _groups(self, y: IntArray) -> list[_Group]:
        """Return the rows that determine the threshold of each class."""
        everything = _Group(np.arange(self.n_classes_), np.arange(len(y)))
        if not self.class_conditional:
            return [everything] * self.n_classes_
        groups = [_Group(np.array([k]), np.flatnonzero(y == k)) for k in range(self.n_classes_)]
        few = np.array(
            [_rank(len(group.rows), self.coverage) > len(group.rows) for group in groups]
        )
        if self.small == "pool" and few.any():
            pool = _Group(np.flatnonzero(few), np.flatnonzero(few[y]))
            return [pool if is_few else group for is_few, group in zip(few, groups, strict=True)]
        return groups

    def predict_set(self, X: Any) -> BoolArray:
        """Return which labels are in the set of each row.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        array of bool, shape (n, K)
            Columns are in the order of ``classes_``.
        """
        check_fitted(self)
        return self._sets_of(probabilities(self.estimator_, X, self.classes_))

    def _sets_of(self, proba: FloatArray) -> BoolArray:
        return np.asarray(self._scores_of(proba) <= self.thresholds_)

    def predict_labels(self, X: Any) -> list[AnyArray]:
        """Return the labels of each set, the most probable first.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        list of arrays
        """
        sets, order = self.predict_set(X), np.argsort(-self.predict_proba(X), axis=1, kind="stable")
        return [
            self.classes_[columns[row[columns]]] for row, columns in zip(sets, order, strict=True)
        ]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the estimator.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, K)
            Rows of the same kind as in `fit`.

        Returns
        -------
        array of shape (n, K)
        """
        check_fitted(self)
        return probabilities(self.estimator_, X, self.classes_)

    @ScoreParameter
    def score(self, X: Any, y: LabelsLike, sample_weight: Any = None) -> float:
        """Return the set coverage, which is the share of sets that contain the true label.

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
        sets = self.predict_set(X)
        labels = check_new_labels(y, len(sets), self.classes_)
        weight = check_weight(sample_weight, len(labels))
        is_held = (sets & (labels[:, None] == self.classes_)).any(axis=1)
        return float(weight @ is_held / weight.sum())

    def _scores_of(self, proba: FloatArray) -> FloatArray:
        """Return scores of all labels, (n, K). Labels with low scores enter the set first."""
        if self._kind == "lac":
            return 1.0 - proba
        before = _mass_before(proba)
        if not self.randomize:
            return before
        u = _uniform_numbers(proba, as_seed(self.random_state) or 0)
        return before + (1.0 - u[:, None]) * proba

    def guarantee(self) -> CoverageGuarantee:
        """Return the guaranteed coverage of the sets.

        Returns
        -------
        calibrant.guarantees.CoverageGuarantee
            The guarantee. Print the guarantee for a description.
        """
        check_fitted(self)
        # The parameter can change after the fit, so the certificate has the coverage of the fit.
        coverage, sizes = 1.0 - self.certificate_.risk, self.group_sizes_
        ranks = np.array([_rank(int(size), coverage) for size in sizes])
        is_full = ranks > sizes  # the label is in every set
        low, high = 1.0, 1.0
        if not is_full.all():
            least = int(np.where(is_full, np.inf, sizes).argmin())
            low, high = _coverage_range(int(ranks[least]), int(sizes[least]))
        always = self.classes_[is_full & bool(self.class_conditional)]
        pooled = np.setdiff1d(self.pooled_classes_, always)
        return CoverageGuarantee(
            coverage=coverage,
            expected=float(np.where(is_full, 1.0, ranks / (sizes + 1.0)).mean()),
            low=low,
            high=high,
            certificate=self.certificate_,
            class_conditional=bool(self.class_conditional),
            pooled=tuple(map(str, pooled.tolist())),
            always=tuple(map(str, always.tolist())),
        )

    def _probe(self, proba: FloatArray) -> None:
        self._check_options()
        self._sets_of(proba)

    def get_metadata_routing(self) -> MetadataRouter:
        """Route the parameters of ``fit`` to the estimator."""
        return fit_router(self)

    def __sklearn_tags__(self) -> Any:
        return copy_tags(super().__sklearn_tags__(), self.estimator)


class _Group(NamedTuple):
    """Classes that share a threshold, and the rows that determine this threshold."""

    classes: IntArray
    rows: IntArray

    def threshold(self, scores: FloatArray, coverage: float) -> float:
        """Return the smallest threshold that leaves out at most the allowed share of new rows."""
        rank = _rank(len(self.rows), coverage)
        if rank > len(self.rows):
            return np.inf
        return float(np.partition(scores[self.rows], rank - 1)[rank - 1])


def _rank(n_rows: int, coverage: float) -> int:
    return math.ceil((n_rows + 1) * coverage - _ROUNDING)


def _coverage_range(rank: int, n_rows: int) -> tuple[float, float]:
    """Return 5% and 95% quantiles of the coverage of new rows, given the calibration rows."""
    low, high = beta.ppf([0.05, 0.95], rank, n_rows + 1 - rank)
    return float(low), float(high)


def _uniform_numbers(proba: FloatArray, seed: int) -> FloatArray:
    """Return a number between 0 and 1 per row, which depends only on the row and the seed.

    A row therefore has the same set in every batch, and rows of the fit and of the prediction are
    exchangeable. The hash of a row has four bytes. Each byte selects a random number, and their sum
    modulo 1 is uniform (tabulation hashing, Patrascu & Thorup 2012, doi:10.1145/2220357.2220361).
    """
    numbers = np.random.default_rng([seed, 1]).random((4, 256))
    digits = row_hashes(proba)[:, None].view(np.uint8)
    return np.asarray(numbers[np.arange(4), digits].sum(axis=1) % 1.0)


def _mass_before(proba: FloatArray) -> FloatArray:
    """Return, for each label, the sum of the probabilities that rank before it in its row.

    Probabilities are ranked in decreasing order, and ties are ranked by column.
    """
    order = np.argsort(-proba, axis=1, kind="stable")
    ordered = np.take_along_axis(proba, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    out = np.empty_like(before)
    np.put_along_axis(out, order, before, axis=1)
    return out
