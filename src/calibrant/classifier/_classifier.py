"""Calibrate any scikit-learn classifier with any calibrator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.folds import check_groups, held_out_rows, row_indices, stratified_rows
from calibrant._data.group_columns import as_columns
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import log_of
from calibrant._output.numbers import format_number
from calibrant._output.progress import tracked
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import (
    check_same_length,
    check_scores,
    check_weight,
    encode_labels,
    warn_other_order,
)
from calibrant.base import Calibrator
from calibrant.base._frames import wrapped
from calibrant.base._output import FrameOutput
from calibrant.base.outcome import warn_unless_converged
from calibrant.classifier._ensemble import (
    average_parts,
    average_responses,
    combine_folds,
    find_size_correction,
    holds_out_repeatedly,
    without_rounding,
)
from calibrant.classifier._keywords import KeywordHints
from calibrant.classifier._responses import SLACK, Response, check_classifier
from calibrant.classifier._rows import check_targets, n_rows, take_rows
from calibrant.classifier._training import (
    CalibrationRows,
    ScoredRows,
    Split,
    TrainingData,
    concatenate_parts,
    pool_parts,
)
from calibrant.selection import CrossFitted, GroupCalibration
from calibrant.selection.methods import as_calibrator

_BLOCK_SHARE = 64
"""A block has at most 1/64 of all rows. The classifier and the calibrator need about a dozen times
the memory of a block, which must stay small compared with the output.
"""

__all__ = ["CalibratedClassifier"]


class CalibratedClassifier(
    FrameOutput, ClassifierMixin, MetaEstimatorMixin, BaseEstimator, KeywordHints
):
    r"""Fit a classifier and calibrate it on held-out rows.

    By default, an ensemble of clones of the estimator predicts, and the calibrator is fitted on
    out-of-fold predictions of this ensemble. Use ``ensemble=False`` if a single fit of the
    estimator must predict, for example because prediction time matters. If the estimator is
    already fitted, pass ``FrozenEstimator(estimator)``. `fit` then fits only the calibrator.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier, which must have ``decision_function`` (one logit per class, or log-odds) or
        ``predict_proba``.
    calibrator : calibrator or the name of one, optional
        By default `AutoCalibration`. A name ("isotonic", "temperature", ...) selects a calibrator
        as `calibrant.method` does. `fit` sets the parameters ``inputs`` and ``classes`` of the
        calibrator. For more than two classes, a binary calibrator becomes
        ``MulticlassToBinary(calibrator, notion="class-wise", normalize=True)``. Any scikit-learn
        classifier of probabilities is also accepted.
    cv : int, float, splitter or iterable
        Folds. An integer means stratified folds, at most as many as the largest class has rows. A
        number between 0 and 1 is the fraction of rows that one split holds out. In this case, one
        classifier is fitted on the training rows and one calibrator on the held-out rows.
    ensemble : {"auto", True, False}
        Which classifiers predict.

        - "auto": the calibrated average of clones. With five folds, the estimator is fitted 16
          times: ten times on three fifths of the rows, five times on four fifths and once on all
          rows.
        - False: one fit on all rows. One additional fit per fold provides held-out scores for the
          calibrator.
        - True: the average of one calibrated clone per fold, as in scikit-learn. The average of
          calibrated clones is underconfident.
    n_jobs : int, optional
        Number of folds that are fitted at the same time.
    progress : bool, default False
        Whether to show a progress bar over the folds on a terminal.

    Attributes
    ----------
    classes_ : array of labels
        Labels of the columns.
    class_prior_ : array of shape (K,)
        Class frequencies of the rows.
    estimators_ : list
        The fitted classifiers that predict. Clones with weight zero are left out.
    estimator_weights_ : array of shape (n_estimators,)
        Weights of the classifiers in the average that predicts.
    calibrator_ : calibrator
        The fitted calibrator. With ``ensemble=True``, this attribute is a `CrossFitted` that
        contains the calibrators of all pairs.
    calibrators_ : list
        One calibrator, or with ``ensemble=True`` one per classifier.
    temperature_ : float
        Temperature of the calibrated probabilities that accounts for the size of the ensemble. The
        temperature is 1 without an ensemble.
    inputs_ : {"logits", "proba"}
        The type of scores that the calibrators were fitted on.
    score_method_ : {"decision_function", "predict_proba"}
        The method of the estimator that returns the scores.
    n_features_in_, feature_names_in_ : int, array of str
        The number and the names of the features of the estimator.

    See Also
    --------
    AutoCalibration : The default calibrator.
    method : Calibrators by name.
    compare : Compare calibrators on given scores.

    Notes
    -----
    An average of classifiers is more accurate and less confident than each classifier. A calibrator
    that is fitted on single classifiers therefore leaves the average underconfident. The default
    calibrates the average instead. With five folds, a small clone is fitted for each pair of folds
    that is left out, and a large clone for each single fold. A row is scored by the average of its
    four small clones, with weight :math:`1 - s`, and by its large clone, with weight :math:`s`.
    None of these clones was fitted on the row. The share s is the posterior mean over 0, 1/4, 1/2,
    3/4 and 1, weighted by the out-of-fold likelihood after temperature scaling. The share is close
    to 1 for classifiers that need every row, and close to 0 for unstable classifiers such as trees.
    The prediction for a new row is a weighted average. All small clones together have weight
    :math:`1 - s`, all large clones together have weight :math:`s (1 - s)`, and one classifier
    fitted on all rows has weight :math:`s^2`.

    More clones predict new rows than score a held-out row, so the calibrated probabilities are
    rescaled by a temperature :math:`T`. The logarithm of T is assumed to be linear in the standard
    deviation of an average, which is proportional to :math:`(\sum_j w_j^2)^{1/2}`. The line is
    fitted to averages of two and of four clones. With more than five folds, each fold is left out
    together with each of the next two folds, and therefore four times. If a splitter holds out rows
    repeatedly, its clones and a fit on all rows have equal weights. If there are fewer than five
    folds, one fit on all rows predicts. One fit also predicts if a splitter holds out rows only
    once and does not partition the rows.

    Calibrators that were fitted on out-of-fold scores have no guarantee. For a guarantee, pass a
    frozen estimator and rows that it was not trained on.

    A class may not occur in a training fold of n rows. The clone of this fold then predicts 1 / (n
    + K) for the class (rule of succession). If all classifiers of an ensemble predict zero for a
    class, the probability is at most 1 / (n + K). Sample weights are passed to the estimator, if it
    accepts them, and to the calibrator. With metadata routing enabled, parameters of ``fit`` are
    routed to the estimator and the splitter.

    References
    ----------
    Niculescu-Mizil & Caruana (2005), Predicting good probabilities with supervised learning,
    doi:10.1145/1102351.1102430; Kull et al. (2019), arXiv:1910.12656 (average over the folds).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_proba(X).shape, model.score_method_
    ((150, 3), 'predict_proba')
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        cv: Any = 5,
        ensemble: bool | Literal["auto"] = "auto",
        *,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(
        self, X: Any, y: LabelsLike, sample_weight: WeightsLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the estimator and its calibrator.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features of any type that the estimator accepts, such as arrays, sparse matrices and
            data frames.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Row weights.
        **fit_params
            Parameters for the ``fit`` of the estimator, with two exceptions. Rows with equal
            ``groups`` of shape (n,), such as rows of one patient, stay together in the folds of
            ``cv`` and of the calibrator. The columns ``by`` are passed to a `GroupCalibration`.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._check_parameters()
        warn_other_order(y, X, sample_weight)
        X, y = indexable(X, check_targets(y))
        weight = None if sample_weight is None else check_weight(sample_weight, len(y))
        groups = check_groups(fit_params.get("groups"), len(y))
        params = self._route(weight, fit_params)
        by = self._check_by(params.calibrator.fit.get("by"), y)
        codes, self.classes_ = self._encode(y)
        data = TrainingData(X, y, codes, weight, self.classes_, groups, tuple(by.values()))
        self.class_prior_ = data.class_prior
        self._fit_on(data, params)
        if by:
            self.calibrator_._name_columns(tuple(by))
        self._copy_feature_names()
        warn_unless_converged(type(self).__name__, self.calibrators_, "calibrators")
        return self

    def _check_parameters(self) -> None:
        """Raise for invalid parameters, before anything is fitted."""
        check_classifier(self.estimator)
        self._make_calibrator()
        if self.ensemble not in ("auto", True, False):
            raise ValueError(
                f'ensemble must be "auto", True or False, got {self.ensemble!r}. Pass '
                f'ensemble="auto".'
            )
        if isinstance(self.cv, str):
            raise ValueError(
                "cv must be a number of folds, a fraction of rows, a splitter or an iterable of "
                f"(train, test) rows, got {self.cv!r}. If the estimator is fitted already, pass "
                "CalibratedClassifier(sklearn.frozen.FrozenEstimator(estimator)) without cv."
            )

    def _make_calibrator(self) -> Any:
        return as_calibrator("auto" if self.calibrator is None else self.calibrator)

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _encode(self, y: AnyArray) -> tuple[IntArray, AnyArray]:
        """Return column codes and column labels, from a frozen estimator or from y."""
        if self._is_frozen:
            if not hasattr(self.estimator, "classes_"):
                raise NotFittedError(
                    f"{self.estimator!r} is not fitted. Fit the inner classifier first, or pass it "
                    "without FrozenEstimator."
                )
            classes = np.asarray(self.estimator.classes_)
            return encode_labels(y, len(classes), classes)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"A classifier needs rows of at least two classes, got n_samples={len(y)} of one "
                f"class ({classes.tolist()[0]!r}). Pass rows of all classes."
            )
        return codes, classes

    def _fit_on(self, data: TrainingData, params: Bunch) -> None:
        """Fit the classifiers that predict, and their calibrators on held-out scores."""
        self.temperature_ = 1.0
        if self._is_frozen:
            frozen = Response(self.estimator, self.classes_, 0.0)
            self._fit_calibrators(data, [data.score(frozen, data.all_rows)])
            return
        splits = self._check_splits(list(self._split(data, params.splitter.split)))
        if self._has_pairs(len(splits)):
            self._fit_calibrators(data, self._score_splits(data, splits, params))
            return
        whole = data.fit(self.estimator, data.all_rows, params.estimator.fit)
        combined = combine_folds(splits, len(data.y)) if self.ensemble else splits
        if self._can_average(splits, combined):
            folds = splits if len(combined) > len(splits) else []
            parts = self._score_splits(data, [*combined, *folds], params)
            self._fit_ensemble(data, parts[: len(combined)], parts[len(combined) :], whole)
        else:
            parts = self._score_splits(data, splits, params)
            self._fit_calibrators(data, [pool_parts(whole, parts)])

    def _can_average(self, splits: list[Split], combined: list[Split]) -> bool:
        """Return whether an average of clones predicts, which requires out-of-fold averages.

        If a fold has a single row, clones hardly differ from the classifier fitted on all rows.
        """
        has_rows = min(len(test) for _, test in splits) > 1
        return bool(self.ensemble) and has_rows and holds_out_repeatedly(combined)

    def _fit_ensemble(
        self,
        data: TrainingData,
        clones: Sequence[ScoredRows],
        folds: Sequence[ScoredRows],
        whole: Response,
    ) -> None:
        """Calibrate the average of the clones and of the classifier fitted on all rows."""
        scores = average_parts(data, clones, folds)
        average = average_responses(clones, folds, whole, scores)
        self._fit_calibrators(data, [ScoredRows(average, scores.rows, scores.average)])
        self.estimator_weights_ = average.weights
        self.temperature_ = find_size_correction(data, scores, self.calibrator_, average.weights)

    def _has_pairs(self, n_parts: int) -> bool:
        """Return whether each clone has its own calibrator, as with a single split."""
        return n_parts == 1 if self.ensemble == "auto" else bool(self.ensemble)

    def _route(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> Bunch:
        """Return the parameters of the estimator's ``fit`` and of the splitter."""
        is_routed = get_config()["enable_metadata_routing"]
        params = dict(fit_params) if weight is None else {**fit_params, "sample_weight": weight}
        if self._cuts_folds or not is_routed:
            params.pop("groups", None)
        if is_routed:
            return process_routing(self, "fit", **params)
        if "by" in params and not self._has_group_calibrator:
            self._check_takes_groups()
        if weight is not None and "sample_weight" not in signature(self.estimator.fit).parameters:
            params.pop("sample_weight")
            self._warn_unweighted()
        # Without metadata routing, only the splitter gets the groups, and only the calibrator `by`.
        groups = {name: fit_params[name] for name in ("groups",) if name in fit_params}
        by = {"by": params.pop("by", None)} if self._has_group_calibrator else {}
        return Bunch(
            estimator=Bunch(fit=params), splitter=Bunch(split=groups), calibrator=Bunch(fit=by)
        )

    def _check_takes_groups(self) -> None:
        """Raise if neither the calibrator nor the estimator accepts the groups ``by``."""
        if "by" not in signature(self.estimator.fit).parameters:
            raise TypeError(
                f"by= needs a GroupCalibration, but the calibrator is {self.calibrator!r}. Pass "
                "CalibratedClassifier(estimator, GroupCalibration())."
            )

    @property
    def _has_group_calibrator(self) -> bool:
        return isinstance(self._make_calibrator(), GroupCalibration)

    def _check_by(self, by: Any, y: AnyArray) -> dict[str, AnyArray]:
        """Group columns of the calibrator by name."""
        columns = {} if by is None else as_columns(by)
        for name, column in columns.items():
            check_same_length(**{"y": y, f"by {name!r}": column})
        if columns and self.ensemble is True:
            raise ValueError(
                "by= needs one calibrator for all folds, but ensemble=True fits one per fold. Pass "
                'ensemble="auto".'
            )
        return columns

    def _route_by(self, method: str, params: dict[str, Any]) -> tuple[AnyArray, ...]:
        """Group columns of rows to predict, in the order of the fit."""
        check_is_fitted(self)
        if get_config()["enable_metadata_routing"]:
            params = (
                process_routing(self, method, **params)
                .get("calibrator", {})
                .get("predict_proba", {})
            )
        by = params.pop("by", None)
        if params:
            raise TypeError(
                f"{method} has no parameter {next(iter(params))!r}. Call {method}(X), or "
                f"{method}(X, by=groups) if the calibrator is a GroupCalibration."
            )
        if isinstance(self.calibrator_, GroupCalibration):
            return self.calibrator_._columns_of(by)
        if by is not None:
            raise TypeError(
                f"by= needs a GroupCalibration, but the calibrator is "
                f"{type(self.calibrator_).__name__}. Call {method}(X) without by."
            )
        return ()

    def _warn_unweighted(self) -> None:
        if not self._is_frozen:
            warnings.warn(
                f"{type(self.estimator).__name__} does not accept sample_weight, so only the "
                f"calibrator uses the weights. For a pipeline, enable metadata routing: "
                f"sklearn.set_config(enable_metadata_routing=True).",
                UserWarning,
                stacklevel=4,
            )

    @property
    def _cuts_folds(self) -> bool:
        """Return whether this class, not a splitter or the user, assigns rows to folds."""
        return isinstance(self.cv, int | float | np.integer)

    def _score_splits(
        self, data: TrainingData, splits: list[Split], params: Bunch
    ) -> list[ScoredRows]:
        tasks = (
            delayed(data.fit_and_score)(self.estimator, split, params.estimator.fit)
            for split in splits
        )
        parts = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        return list(tracked(parts, total=len(splits), description="Fits", progress=self.progress))

    def _check_splits(self, splits: list[Split]) -> list[Split]:
        """Raise if there are no folds, or a fold has too few rows for its own calibrator."""
        if not splits:
            raise ValueError("cv has no splits. Pass a number of folds, such as cv=5.")
        has_calibrators = self._has_pairs(len(splits)) and len(splits) > 1
        if has_calibrators and min(len(test) for _, test in splits) < 2:
            raise ValueError(
                "A fold has only one row, but with ensemble=True a calibrator is fitted on each "
                "fold. Pass fewer folds (cv=5), or pass ensemble=False to fit one calibrator on "
                "the scores of all folds."
            )
        return splits

    def _split(self, data: TrainingData, params: dict[str, Any]) -> Iterator[Split]:
        if isinstance(self.cv, int | np.integer):
            return stratified_rows(int(self.cv), data.codes, data.groups)
        if isinstance(self.cv, float):
            return held_out_rows(self.cv, data.codes, data.groups)
        splitter = check_cv(self.cv, data.y, classifier=True)
        splits = splitter.split(data.X, data.y, **params)
        n_samples = len(data.y)
        return ((row_indices(a, n_samples), row_indices(b, n_samples)) for a, b in splits)

    def _fit_calibrators(self, data: TrainingData, parts: Sequence[ScoredRows]) -> None:
        """Fit one calibrator on the scores of each part."""
        self._scorers = [part.response for part in parts]
        self.estimators_ = [fitted for scorer in self._scorers for fitted in scorer.estimators]
        self.estimator_weights_ = np.full(len(self.estimators_), 1.0 / len(self.estimators_))
        self.score_method_, self.inputs_ = self._scorers[0].method, self._scorers[0].inputs
        calibrator = set_up(
            self._make_calibrator(), self.inputs_, len(self.classes_), self.classes_
        )
        rows = [data.calibration_rows(part) for part in parts]
        if len(rows) == 1:
            self.calibrator_ = fit_on(calibrator, rows[0].sample(), self.inputs_)
            self.calibrators_ = [self.calibrator_]
        else:
            self.calibrator_ = self._fit_average(calibrator, rows)
            self.calibrators_ = self.calibrator_.calibrators_
        if not self._is_frozen:
            for member in self.calibrators_:
                if isinstance(member, Calibrator):
                    member.out_of_fold_ = True

    def _fit_average(self, calibrator: Any, parts: Sequence[CalibrationRows]) -> CrossFitted:
        """Fit a `CrossFitted` of all scores whose folds are the parts."""
        part = np.repeat(np.arange(len(parts)), [len(rows.codes) for rows in parts])
        folds = [(np.flatnonzero(part == j), np.flatnonzero(part != j)) for j in range(len(parts))]
        average = CrossFitted(calibrator, cv=folds, inputs=self.inputs_, classes=self.classes_)
        average._fit_checked(concatenate_parts(parts).sample(), self.classes_)
        # Only the number of folds is saved with the calibrator, not the rows of each fold.
        return average.set_params(cv=len(parts))

    def _copy_feature_names(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            value = getattr(self.estimators_[0], name, None)
            if value is not None:
                setattr(self, name, value)

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features.
        **params
            ``by``, the group columns of the rows, if the calibrator is a `GroupCalibration`.

        Returns
        -------
        array of shape (n, K)
            Columns are in the order of ``classes_``. The result is a data frame if `set_output` was
            called.
        """
        columns = self._route_by("predict_proba", params)
        return wrapped(self._proba_of(X, columns), X, self.classes_, self._output)

    def _proba_of(self, X: Any, columns: tuple[AnyArray, ...] = ()) -> FloatArray:
        (data,) = indexable(X)
        for column in columns:
            check_same_length(X=np.empty(n_rows(data)), by=column)
        shape = n_rows(data), len(self.classes_)
        elements = max(READ_BLOCK, shape[0] * shape[1] // _BLOCK_SHARE)
        blocks = list(row_blocks(*shape, elements=elements))
        if len(blocks) < 2:
            return self._predict_block(X, columns)
        out = np.empty(shape)
        for rows in blocks:
            some = tuple(column[rows] for column in columns)
            out[rows] = self._predict_block(take_rows(data, rows), some)
        return out

    def _predict_block(self, X: Any, columns: tuple[AnyArray, ...]) -> FloatArray:
        total = np.zeros(1)
        for scorer, calibrator in zip(self._scorers, self.calibrators_, strict=True):
            scores = check_scores(scorer.scores(X), inputs=self.inputs_, slack=SLACK)
            total = total + proba_of(calibrator, scores, self.inputs_, columns=columns)
        if self.temperature_ == 1.0:
            return without_rounding(total / len(self._scorers))
        # Dividing log-probabilities by T means taking probabilities to the power 1/T.
        powers = total ** (1.0 / self.temperature_)
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Predict the logarithms of `predict_proba`, with -inf for a probability of zero."""
        proba = self._proba_of(X, self._route_by("predict_log_proba", params))
        return wrapped(log_of(proba), X, self.classes_, self._output)

    def predict(self, X: Any, **params: Any) -> AnyArray:
        """Predict the label with the highest probability. Ties go to the first column."""
        codes = self._proba_of(X, self._route_by("predict", params)).argmax(axis=1)
        return self.classes_[codes]

    def explain(self) -> str:
        """Describe which classifiers predict, and how their probabilities are calibrated."""
        check_is_fitted(self)
        fitted = self.calibrator_
        summary = fitted.explain() if isinstance(fitted, Calibrator) else f"Calibrator: {fitted!r}."
        return f"{self._describe()} Scores come from {self.score_method_}.\n{summary}"

    def _describe(self) -> str:
        name, n_fits = type(self.estimator).__name__, len(self.estimators_)
        if self._is_frozen:
            name = type(self.estimator.estimator).__name__
            return f"The fitted {name} predicts, and one calibrator corrects its scores."
        if n_fits == 1:
            return f"One {name} predicts. The calibrator was fitted on out-of-fold scores."
        if len(self.calibrators_) > 1:
            return (
                f"The predictions are the average of {n_fits} pairs. Each pair is a {name} and a "
                "calibrator that was fitted on held-out rows of this classifier."
            )
        return (
            f"The predictions are the weighted average of {n_fits} fits of {name}. The calibrator "
            f"was fitted on average predictions for held-out rows. A temperature of "
            f"{format_number(self.temperature_)} accounts for the larger number of fits that "
            "predict new rows."
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Route parameters of ``fit`` to the estimator and the splitter, and ``by`` to groups."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router = router.add(estimator=self.estimator, method_mapping=to_fit).add(
            splitter=self.cv, method_mapping=to_split
        )
        # Other parameters of the calibrator's fit, such as weights, are passed by this class.
        request = MetadataRequest(owner="calibrator")
        if self._has_group_calibrator:
            request.fit.add_request(param="by", alias=True)
            request.predict_proba.add_request(param="by", alias=True)
        to_calibrator = MethodMapping().add(caller="fit", callee="fit")
        for caller in ("predict_proba", "predict_log_proba", "predict"):
            to_calibrator.add(caller=caller, callee="predict_proba")
        return router.add(calibrator=request, method_mapping=to_calibrator)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
