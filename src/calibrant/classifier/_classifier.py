"""A classifier whose probabilities are calibrated: any scikit-learn estimator with any
calibrator.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import Bunch, _safe_indexing, assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._simplex import log_of
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import as_array, check_count, check_scores, check_weight, encode_labels
from calibrant.base._outcome import warn_unless_converged
from calibrant.classifier._responses import Response
from calibrant.selection import AutoCalibration, CrossFitted

__all__ = ["CalibratedClassifier"]


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier and calibrate it on rows that it has not seen.

    With ``ensemble=True`` a clone of the estimator is fitted on each training part of ``cv`` and a
    calibrator on the scores of the part left out; probabilities are averaged over the pairs. With
    ``ensemble=False`` one calibrator is fitted on the out-of-fold scores of all rows, and the
    estimator once on all rows. An estimator that is fitted already is passed as
    ``FrozenEstimator(estimator)``: all rows then calibrate it.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``decision_function`` (one value per class, or log-odds), which is taken as logits, or
        else ``predict_proba``.
    calibrator : calibrator, optional
        By default `AutoCalibration`. Its ``inputs`` and ``classes`` are set here. A binary
        calibrator of a problem with more than two classes becomes ``MulticlassToBinary(calibrator,
        notion="class-wise", normalize=True)``. Any scikit-learn classifier of probabilities will do
        as well.
    cv : int, splitter or iterable
        Folds; an integer means stratified folds, no more than there are rows in the largest class.
    ensemble : bool
    n_jobs : int, optional
        Folds fitted at the same time.

    Attributes
    ----------
    classes_ : array of labels
    class_prior_ : array of shape (K,)
        Class frequencies of the rows.
    estimators_, calibrators_ : lists
        The fitted pairs; one of each where ``ensemble=False`` or the estimator was frozen.
    calibrator_ : calibrator
        One map of scores: the fitted calibrator, or a `CrossFitted` that averages those of the
        pairs.
    inputs_ : {"logits", "proba"}
        What the calibrators were given.
    score_method_ : {"decision_function", "predict_proba"}
        Where that came from.
    n_features_in_, feature_names_in_ : those of the estimator

    Notes
    -----
    A class that does not occur in a training part gets the probability 1 / (n + K) there, n the
    rows of the part: the rule of succession for what was never seen. Sample weights go to the
    estimator, where it takes them, and to the calibrator. With metadata routing enabled, parameters
    of ``fit`` are routed to the estimator and the splitter.

    References
    ----------
    Niculescu-Mizil & Caruana (2005), Predicting good probabilities with supervised learning,
    doi:10.1145/1102351.1102430; Kull et al. (2019), arXiv:1910.12656 (maps of the folds averaged).

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
        ensemble: bool = True,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: LabelsLike, sample_weight: WeightsLike | None = None, **fit_params: Any
    ) -> Self:
        """Fit the estimator and its calibrator.

        Parameters
        ----------
        X : features of shape (n, n_features)
            Whatever the estimator takes: arrays, sparse matrices, data frames.
        y : labels of shape (n,)
        sample_weight : weights of shape (n,), optional
        **fit_params
            For the ``fit`` of the estimator.

        Returns
        -------
        self
        """
        X, y = indexable(X, _check_targets(y))
        weight = None if sample_weight is None else check_weight(sample_weight, len(y))
        routed = self._routed(weight, fit_params)
        self.classes_ = self._all_classes(y)
        data = _Data(
            X, y, encode_labels(y, len(self.classes_), self.classes_)[0], weight, self.classes_
        )
        self.class_prior_ = np.bincount(data.codes, weight, minlength=len(self.classes_)) / (
            len(y) if weight is None else weight.sum()
        )
        everything = np.arange(len(y))
        if isinstance(self.estimator, FrozenEstimator):
            parts = [_scored(Response(self.estimator, self.classes_, 0.0), data, everything)]
        else:
            parts = self._out_of_fold(data, routed)
            if not self.ensemble:
                whole = _fitted(self.estimator, data, everything, routed.estimator.fit)
                parts = [_pooled(whole, parts)]
        self._fit_calibrators(parts, data)
        self._take_features()
        warn_unless_converged(type(self).__name__, self.calibrators_, "calibrators")
        return self

    def _all_classes(self, y: AnyArray) -> AnyArray:
        if isinstance(self.estimator, FrozenEstimator):
            return np.asarray(self.estimator.classes_)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs rows of at least two classes, got n_samples={len(y)} of one "
                f"class ({classes[0]!r})"
            )
        return classes

    def _routed(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> Bunch:
        """Parameters of the estimator's fit and of the splitter."""
        given = dict(fit_params) if weight is None else {**fit_params, "sample_weight": weight}
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **given)
        if weight is not None and "sample_weight" not in signature(self.estimator.fit).parameters:
            given.pop("sample_weight")
            if not isinstance(self.estimator, FrozenEstimator):
                warnings.warn(
                    f"{type(self.estimator).__name__} takes no sample_weight: weights are used for "
                    f"the calibration only; "
                    "for a pipeline enable metadata routing by "
                    "sklearn.set_config(enable_metadata_routing=True)",
                    UserWarning,
                    stacklevel=3,
                )
        return Bunch(estimator=Bunch(fit=given), splitter=Bunch(split={}))

    def _out_of_fold(self, data: _Data, routed: Bunch) -> list[_Scored]:
        parts = self._splits(data, routed.splitter.split)
        work = (
            delayed(_fit_and_score)(self.estimator, data, train, test, routed.estimator.fit)
            for train, test in parts
        )
        return list(Parallel(n_jobs=self.n_jobs)(work))

    def _splits(self, data: _Data, params: dict[str, Any]) -> Iterator[tuple[IntArray, IntArray]]:
        if not isinstance(self.cv, int | np.integer):
            yield from check_cv(self.cv, data.y, classifier=True).split(data.X, data.y, **params)
            return
        most = int(np.bincount(data.codes).max())
        if most < 2:
            raise ValueError(
                f"cross-validation needs a class with at least two rows, got "
                f"n_samples={len(data.y)}"
            )
        folds = StratifiedKFold(min(check_count(self.cv, "cv", minimum=2), most))
        with warnings.catch_warnings():
            # Rare classes are welcome: the map keeps a column for each class, whatever a fold
            # holds.
            warnings.filterwarnings("ignore", message="The least populated class")
            yield from folds.split(np.zeros(len(data.y)), data.codes)

    def _fit_calibrators(self, parts: list[_Scored], data: _Data) -> None:
        self._responses = [part.response for part in parts]
        self.estimators_ = [response.estimator for response in self._responses]
        self.score_method_, self.inputs_ = self._responses[0].method, self._responses[0].inputs
        chosen = AutoCalibration() if self.calibrator is None else self.calibrator
        made = set_up(chosen, self.inputs_, len(self.classes_), self.classes_)
        self.calibrators_ = [_calibrated(clone(made), part, data) for part in parts]
        only = self.calibrators_[0]
        self.calibrator_ = (
            only
            if len(parts) == 1
            else CrossFitted._of(self.calibrators_, self.inputs_, self.classes_)
        )

    def _take_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            value = getattr(self.estimators_[0], name, None)
            if value is not None:
                setattr(self, name, value)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities of shape (n, K), columns as ``classes_``."""
        check_is_fitted(self)
        total = np.zeros((_num_samples(X), len(self.classes_)))
        for response, calibrator in zip(self._responses, self.calibrators_, strict=True):
            scores = check_scores(response.scores(X), inputs=self.inputs_)
            total += proba_of(calibrator, scores, self.inputs_)
        return total / len(self._responses)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`; -inf where that is zero."""
        return log_of(self.predict_proba(X))

    def predict(self, X: Any) -> AnyArray:
        """Label of the highest calibrated probability."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Where the parameters of ``fit`` go: to the estimator's ``fit`` and the splitter's
        ``split``.
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit).add(
            splitter=self.cv, method_mapping=to_split
        )

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _check_targets(y: LabelsLike) -> AnyArray:
    """Labels of shape (n,), finite where they are numbers."""
    if y is not None and as_array(y).dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    labels = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise ValueError(
            "labels are empty: at least one row of each class is needed, got n_samples=0"
        )
    return np.asarray(labels)


class _Data(NamedTuple):
    """Features, labels, their column codes, weights or None, and the labels of the columns."""

    X: Any
    y: AnyArray
    codes: IntArray
    weight: FloatArray | None
    classes: AnyArray


class _Scored(NamedTuple):
    """A fitted classifier with scores of rows that it has not seen."""

    response: Response
    rows: IntArray
    scores: FloatArray


def _fit_and_score(
    estimator: Any, data: _Data, train: IntArray, test: IntArray, params: dict[str, Any]
) -> _Scored:
    return _scored(_fitted(estimator, data, train, params), data, test)


def _fitted(estimator: Any, data: _Data, rows: IntArray, params: dict[str, Any]) -> Response:
    own = _check_method_params(data.X, params, indices=rows)
    fitted = clone(estimator).fit(_safe_indexing(data.X, rows), data.y[rows], **own)
    return Response(
        fitted, data.classes, len(rows) if data.weight is None else float(data.weight[rows].sum())
    )


def _scored(response: Response, data: _Data, rows: IntArray) -> _Scored:
    return _Scored(response, rows, response.scores(_safe_indexing(data.X, rows)))


def _pooled(response: Response, parts: list[_Scored]) -> _Scored:
    """The out-of-fold scores of all parts, for the classifier that was fitted on all rows."""
    rows, scores = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "scores")
    )
    order = np.argsort(rows, kind="stable")
    return _Scored(response, rows[order], scores[order])


def _calibrated(calibrator: Any, part: _Scored, data: _Data) -> Any:
    weight = None if data.weight is None else data.weight[part.rows]
    if weight is not None and not weight.any():
        raise ValueError(
            "all rows of a fold have weight zero: use fewer folds, or drop the rows of weight zero"
        )
    scores = check_scores(part.scores, inputs=part.response.inputs)
    return fit_on(calibrator, scores, data.codes[part.rows], weight, part.response.inputs)
