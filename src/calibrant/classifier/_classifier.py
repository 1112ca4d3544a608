"""A classifier whose probabilities are calibrated: any scikit-learn estimator with any
calibrator.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, column_or_1d

from calibrant._blocks import CALL_ELEMENTS, row_blocks
from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.folds import check_groups, held_out_rows, stratified_rows
from calibrant._data.sample import ArraySample
from calibrant._output.progress import tracked
from calibrant._simplex import log_of
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import (
    as_array,
    check_scores,
    check_weight,
    encode_labels,
    missing_as_text,
    raise_if_missing,
    remark,
    remark_other_order,
)
from calibrant.base import Calibrator
from calibrant.base._frames import wrapped
from calibrant.base._outcome import warn_unless_converged
from calibrant.base._output import FrameOutput
from calibrant.classifier._responses import SLACK, Response, check_classifier
from calibrant.classifier._rows import n_rows, params_of_rows, take_rows
from calibrant.selection import CrossFitted
from calibrant.selection._methods import as_calibrator

_BLOCK_SHARE = 64
"""A block of predictions is at most this part of all of them, so that what classifier and
calibrator compute on the way, a dozen times their block, stays small beside the output."""

__all__ = ["CalibratedClassifier"]


class CalibratedClassifier(FrameOutput, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier and calibrate it on rows that it has not seen.

    A clone of the estimator is fitted on each training part of ``cv``, and scores the part left
    out. By default one calibrator is fitted on these scores of all rows; the estimator is fitted
    once more, on all rows, and the calibrated probabilities of it and of the clones are averaged.
    With ``ensemble=False`` the estimator that was fitted on all rows predicts alone. With
    ``ensemble=True`` each clone has a calibrator of its own, fitted on the part that it scored, and
    these pairs are averaged, as scikit-learn does. An estimator that is fitted already is passed as
    ``FrozenEstimator(estimator)``: all rows then calibrate it.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``decision_function`` (one value per class, or log-odds), which is taken as logits, or
        else ``predict_proba``.
    calibrator : calibrator or the name of one, optional
        By default `AutoCalibration`. A name ("isotonic", "temperature", ...) is the map of
        `calibrant.method`. Its ``inputs`` and ``classes`` are set here. A binary
        calibrator of a problem with more than two classes becomes ``MulticlassToBinary(calibrator,
        notion="class-wise", normalize=True)``. Any scikit-learn classifier of probabilities will do
        as well.
    cv : int, float, splitter or iterable
        Folds; an integer means stratified folds, no more than there are rows in the largest class.
        A number between 0 and 1 is the share of rows that one split holds out for the calibrator:
        then one classifier and one map are fitted, each on its own rows.
    ensemble : {"auto", True, False}
        Which classifiers predict, and how many maps are fitted. See Notes for what "auto" weighs;
        False predicts in a sixth of its time.
    n_jobs : int, optional
        Folds fitted at the same time.
    progress : bool
        Show a bar of the folds, on a terminal.

    Attributes
    ----------
    classes_ : array of labels
    class_prior_ : array of shape (K,)
        Class frequencies of the rows.
    estimators_, calibrators_ : lists
        The fitted pairs, whose probabilities are averaged; one of each where ``ensemble=False`` or
        the estimator was frozen. With ``ensemble="auto"`` the calibrators are one and the same.
    calibrator_ : calibrator
        One map of scores: the fitted calibrator, or a `CrossFitted` that averages those of the
        pairs where ``ensemble=True``.
    inputs_ : {"logits", "proba"}
        What the calibrators were given.
    score_method_ : {"decision_function", "predict_proba"}
        Where that came from.
    n_features_in_, feature_names_in_ : those of the estimator

    Notes
    -----
    Calibrators that were fitted on scores of the folds' models give no guarantee: for that, pass a
    frozen estimator and rows that it has not seen.

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
        X : features of shape (n, n_features)
            Whatever the estimator takes: arrays, sparse matrices, data frames.
        y : labels of shape (n,)
        sample_weight : weights of shape (n,), optional
        **fit_params
            For the ``fit`` of the estimator; but ``groups``, of shape (n,), are rows that belong
            together, such as those of one patient: they stay together in the folds of ``cv`` and in
            those that the calibrator cuts.

        Returns
        -------
        self
        """
        self._check_parameters()
        remark_other_order(y, X, sample_weight)
        X, y = indexable(X, _check_targets(y))
        weight = None if sample_weight is None else check_weight(sample_weight, len(y))
        groups = check_groups(fit_params.get("groups"), len(y))
        routed = self._route(weight, fit_params)
        codes, self.classes_ = self._encode(y)
        self.class_prior_ = np.bincount(codes, weight, minlength=len(self.classes_)) / (
            len(y) if weight is None else weight.sum()
        )
        data = _Data(X, y, codes, weight, self.classes_, groups)
        self._responses, parts = self._score_parts(data, routed)
        self._fit_calibrators(parts, data)
        self._take_features()
        warn_unless_converged(type(self).__name__, self.calibrators_[: len(parts)], "calibrators")
        return self

    @property
    def _chosen(self) -> Any:
        """The calibrator that is meant."""
        return as_calibrator("auto" if self.calibrator is None else self.calibrator)

    def _check_parameters(self) -> None:
        """Raise on what cannot work, before anything is fitted."""
        check_classifier(self.estimator)
        _ = self._chosen
        if self.ensemble not in ("auto", True, False):
            raise ValueError(f'ensemble must be "auto", True or False, got {self.ensemble!r}')
        if isinstance(self.cv, str):
            raise ValueError(
                f"cv must be a number of folds, a share of rows, a splitter or an iterable of "
                f"(train, test) rows, got {self.cv!r}; an estimator that is fitted already is "
                "passed as sklearn.frozen.FrozenEstimator(estimator), and cv plays no part then"
            )

    def _encode(self, y: AnyArray) -> tuple[IntArray, AnyArray]:
        """Column codes and the labels of the columns: those that occur, or those of a frozen
        estimator.
        """
        if isinstance(self.estimator, FrozenEstimator):
            known = np.asarray(self.estimator.classes_)
            return encode_labels(y, len(known), known)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs rows of at least two classes, got n_samples={len(y)} of one "
                f"class ({classes.tolist()[0]!r})"
            )
        return codes, classes

    def _score_parts(self, data: _Data, routed: Bunch) -> tuple[list[Response], list[_Scored]]:
        """The classifiers that predict, and the scores that maps are fitted on: a map a part."""
        everything = np.arange(len(data.y))
        if isinstance(self.estimator, FrozenEstimator):
            frozen = Response(self.estimator, self.classes_, 0.0)
            return [frozen], [_score(frozen, data, everything)]
        parts = self._score_out_of_fold(data, routed)
        clones = [part.response for part in parts]
        if self._has_pairs(len(parts)):
            return clones, parts
        whole = _fit_response(self.estimator, data, everything, routed.estimator.fit)
        is_alone = not self.ensemble or min(len(part.rows) for part in parts) < 2
        return ([whole] if is_alone else [*clones, whole]), [_pooled(whole, parts)]

    def _has_pairs(self, n_parts: int) -> bool:
        """Whether each clone has a calibrator of its own; so it is where there is one of each."""
        return n_parts == 1 if self.ensemble == "auto" else bool(self.ensemble)

    def _route(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> Bunch:
        """Parameters of the estimator's fit and of the splitter."""
        given = dict(fit_params) if weight is None else {**fit_params, "sample_weight": weight}
        if self._cuts_folds or not get_config()["enable_metadata_routing"]:
            given.pop("groups", None)
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
        groups = {name: fit_params[name] for name in ("groups",) if name in fit_params}
        return Bunch(estimator=Bunch(fit=given), splitter=Bunch(split=groups))

    @property
    def _cuts_folds(self) -> bool:
        """Whether folds are cut here, and not by a splitter or beforehand."""
        return isinstance(self.cv, int | float | np.integer)

    def _score_out_of_fold(self, data: _Data, routed: Bunch) -> list[_Scored]:
        parts = self._check_parts(self._split(data, routed.splitter.split))
        work = (
            delayed(_fit_and_score)(self.estimator, data, train, test, routed.estimator.fit)
            for train, test in parts
        )
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(work)
        shown = tracked(fitted, total=len(parts), description="Folds", progress=self.progress)
        return list(shown)

    def _check_parts(self, parts: Iterator[_Part]) -> list[_Part]:
        """All parts, each with rows enough for a map of its own where it needs one."""
        listed = list(parts)
        if (
            self._has_pairs(len(listed))
            and len(listed) > 1
            and min(len(test) for _, test in listed) < 2
        ):
            raise ValueError(
                "a fold holds one row, and with ensemble=True a calibrator is fitted on each fold "
                "alone: use fewer folds (cv=5), or ensemble='auto' or False, which fit one "
                "calibrator on the scores of all folds"
            )
        return listed

    def _split(self, data: _Data, params: dict[str, Any]) -> Iterator[_Part]:
        if isinstance(self.cv, int | np.integer):
            return stratified_rows(int(self.cv), data.codes, data.groups)
        if isinstance(self.cv, float):
            return held_out_rows(self.cv, data.codes, data.groups)
        splitter = check_cv(self.cv, data.y, classifier=True)
        return iter(splitter.split(data.X, data.y, **params))

    def _fit_calibrators(self, parts: list[_Scored], data: _Data) -> None:
        self.estimators_ = [response.estimator for response in self._responses]
        self.score_method_, self.inputs_ = self._responses[0].method, self._responses[0].inputs
        made = set_up(self._chosen, self.inputs_, len(self.classes_), self.classes_)
        checked = [_check_part(part, data) for part in parts]
        if len(checked) == 1:
            part = checked[0]
            self.calibrator_ = fit_on(
                made, ArraySample(*part[:3], groups=part.groups), self.inputs_
            )
            self.calibrators_ = [self.calibrator_] * len(self._responses)
        else:
            self.calibrator_ = self._fit_average(made, checked)
            self.calibrators_ = self.calibrator_.calibrators_
        if not isinstance(self.estimator, FrozenEstimator):
            for calibrator in self.calibrators_:
                if isinstance(calibrator, Calibrator):
                    calibrator.out_of_fold_ = True

    def _fit_average(self, made: Any, parts: Sequence[_Checked]) -> CrossFitted:
        """One map per part, averaged: a `CrossFitted` of all scores, whose folds are fitted on the
        parts.
        """
        scores, codes, weight = (
            np.concatenate([getattr(one, name) for one in parts]) for name in _Checked._fields[:3]
        )
        named = [one.groups for one in parts if one.groups is not None]
        groups = np.concatenate(named) if named else None
        part = np.repeat(np.arange(len(parts)), [len(checked.codes) for checked in parts])
        folds = [(np.flatnonzero(part == j), np.flatnonzero(part != j)) for j in range(len(parts))]
        average = CrossFitted(made, cv=folds, inputs=self.inputs_, classes=self.classes_)
        average._fit_checked(ArraySample(scores, codes, weight, groups=groups), self.classes_)
        # A saved map needs the number of its folds, not the rows of each.
        return average.set_params(cv=len(parts))

    def _take_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            value = getattr(self.estimators_[0], name, None)
            if value is not None:
                setattr(self, name, value)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities of shape (n, K), columns as ``classes_``: NumPy, or a frame
        where `set_output` asks for one.
        """
        return wrapped(self._proba_of(X), X, self.classes_, self._output)

    def _proba_of(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        (data,) = indexable(X)
        shape = n_rows(data), len(self.classes_)
        elements = max(CALL_ELEMENTS, shape[0] * shape[1] // _BLOCK_SHARE)
        blocks = list(row_blocks(*shape, elements=elements))
        if len(blocks) < 2:
            return self._predict_block(X)
        out = np.empty(shape)
        for rows in blocks:
            out[rows] = self._predict_block(take_rows(data, rows))
        return out

    def _predict_block(self, X: Any) -> FloatArray:
        total = np.zeros(1)
        for response, calibrator in zip(self._responses, self.calibrators_, strict=True):
            scores = check_scores(response.scores(X), inputs=self.inputs_, slack=SLACK)
            total = total + proba_of(calibrator, scores, self.inputs_)
        return total / len(self._responses)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, of the same kind; -inf where that is zero."""
        return wrapped(log_of(self._proba_of(X)), X, self.classes_, self._output)

    def predict(self, X: Any) -> AnyArray:
        """Label of the highest entry of `predict_proba`; ties go to the lowest column."""
        codes = self._proba_of(X).argmax(axis=1)
        return self.classes_[codes]

    def explain(self) -> str:
        """Which classifiers predict, how their scores are calibrated, and why, in words."""
        check_is_fitted(self)
        map_ = self.calibrator_
        words = map_.explain() if isinstance(map_, Calibrator) else f"The map is {map_!r}."
        return f"{self._words()} Scores are those of {self.score_method_}.\n{words}"

    def _words(self) -> str:
        name, n_fits = type(self.estimator).__name__, len(self.estimators_)
        if isinstance(self.estimator, FrozenEstimator):
            name = type(self.estimator.estimator).__name__
            return f"The {name} predicts as it was fitted, and one map calibrates it."
        if n_fits == 1:
            return f"One {name} predicts, and one map of scores out of fold calibrates it."
        if len(set(map(id, self.calibrators_))) > 1:
            return f"The average of {n_fits} pairs of a {name} and a map of the rows it left out."
        return (
            f"The average of {n_fits} fits of {name}, one of all rows and the others of parts of "
            "them. One map calibrates them all: it was fitted on the scores that each part's fit "
            "gave to the rows that it had not seen."
        )

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
    """Labels of shape (n,), none of them missing, finite where they are numbers."""
    given = None if y is None else as_array(y)
    if given is not None and given.ndim == 1:
        _check_present(y, given)
    check_classification_targets(y)
    labels: AnyArray = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise ValueError(
            "labels are empty: at least one row of each class is needed, got n_samples=0"
        )
    return labels


def _check_present(y: LabelsLike, given: AnyArray) -> None:
    if given.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    else:
        raise_if_missing(y, given)
    said = missing_as_text(given)
    if said:
        remark(f"{said}; it is taken to be a class")


_Part = tuple[IntArray, IntArray]
"""Rows to fit a classifier on, and rows that it scores."""


class _Data(NamedTuple):
    """Features, labels, their column codes, weights or None, the labels of the columns, and the
    codes of groups or None.
    """

    X: Any
    y: AnyArray
    codes: IntArray
    weight: FloatArray | None
    classes: AnyArray
    groups: IntArray | None = None


class _Scored(NamedTuple):
    """A fitted classifier with scores of rows that it has not seen."""

    response: Response
    rows: IntArray
    scores: FloatArray


class _Checked(NamedTuple):
    """Scores, column codes, weights and groups, if any, that a calibrator is fitted on."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray
    groups: IntArray | None


def _fit_and_score(
    estimator: Any, data: _Data, train: IntArray, test: IntArray, params: dict[str, Any]
) -> _Scored:
    return _score(_fit_response(estimator, data, train, params), data, test)


def _fit_response(estimator: Any, data: _Data, rows: IntArray, params: dict[str, Any]) -> Response:
    own = params_of_rows(params, len(data.y), rows)
    fitted = clone(estimator).fit(take_rows(data.X, rows), data.y[rows], **own)
    return Response(
        fitted, data.classes, len(rows) if data.weight is None else float(data.weight[rows].sum())
    )


def _score(response: Response, data: _Data, rows: IntArray) -> _Scored:
    return _Scored(response, rows, response.scores(take_rows(data.X, rows)))


def _pooled(response: Response, parts: list[_Scored]) -> _Scored:
    """The out-of-fold scores of all parts, for the classifier that was fitted on all rows."""
    rows, scores = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "scores")
    )
    order = np.argsort(rows, kind="stable")
    return _Scored(response, rows[order], scores[order])


def _check_part(part: _Scored, data: _Data) -> _Checked:
    """What the calibrator of a part is fitted on; what a classifier says is checked as a user's
    scores are.
    """
    weight = check_weight(None, len(part.rows)) if data.weight is None else data.weight[part.rows]
    if not weight.any():
        raise ValueError(
            "all rows of a fold have weight zero: use fewer folds, or drop the rows of weight zero"
        )
    scores = check_scores(part.scores, inputs=part.response.inputs, slack=SLACK)
    groups = None if data.groups is None else data.groups[part.rows]
    return _Checked(scores, data.codes[part.rows], weight, groups)
