"""A classifier with calibrated probabilities: any scikit-learn estimator with any calibrator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from calibrant._crossfit.members import fit_on, proba_of, set_up
from calibrant._data.folds import check_groups, held_out_rows, stratified_rows
from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import READ_BLOCK, row_blocks
from calibrant._kernels.simplex import log_of
from calibrant._output.progress import tracked
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, WeightsLike
from calibrant._validation import check_scores, check_weight, encode_labels, remark_other_order
from calibrant.base import Calibrator
from calibrant.base._frames import wrapped
from calibrant.base._outcome import warn_unless_converged
from calibrant.base._output import FrameOutput
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
from calibrant.selection import CrossFitted
from calibrant.selection.methods import as_calibrator

_BLOCK_SHARE = 64
"""A block of predictions is at most this fraction of all rows: the classifier and the calibrator
need about a dozen times its memory, which must stay small compared with the output."""

__all__ = ["CalibratedClassifier"]


class CalibratedClassifier(FrameOutput, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier and calibrate it on held-out rows.

    A clone of the estimator is fitted on the training rows of each fold of ``cv`` and scores the
    others. By default one calibrator is fitted on these out-of-fold scores of all rows. The
    estimator is fitted once more, on all rows, and the calibrated probabilities of it and of the
    clones are averaged. With ``ensemble=False`` the estimator that was fitted on all rows predicts
    alone. With ``ensemble=True`` each clone has its own calibrator, fitted on the rows that it
    scored, and these pairs are averaged, as in scikit-learn. Pass an estimator that is already
    fitted as ``FrozenEstimator(estimator)``: all rows then calibrate it.

    Parameters
    ----------
    estimator : scikit-learn classifier
        With ``decision_function`` (one value per class, or log-odds), which gives logits, or else
        ``predict_proba``.
    calibrator : calibrator or the name of one, optional
        By default `AutoCalibration`. A name ("isotonic", "temperature", ...) is the calibrator of
        `calibrant.method`. Its ``inputs`` and ``classes`` are set here. For more than two classes,
        a binary calibrator becomes ``MulticlassToBinary(calibrator, notion="class-wise",
        normalize=True)``. Any scikit-learn classifier of probabilities is accepted as well.
    cv : int, float, splitter or iterable
        Folds. An integer means stratified folds, at most as many as the largest class has rows. A
        number between 0 and 1 is the fraction of rows that one split holds out for the calibrator:
        then one classifier and one calibrator are fitted, each on its own rows.
    ensemble : {"auto", True, False}
        Which classifiers predict, and how many calibrators are fitted. "auto" averages six fits
        with five folds, so False predicts in a sixth of the time.
    n_jobs : int, optional
        Number of folds that are fitted at the same time.
    progress : bool
        Show a progress bar over the folds, on a terminal.

    Attributes
    ----------
    classes_ : array of labels
    class_prior_ : array of shape (K,)
        Class frequencies of the rows.
    estimators_, calibrators_ : lists
        The fitted pairs, whose probabilities are averaged; one of each if ``ensemble=False`` or the
        estimator was frozen. With ``ensemble="auto"`` the calibrators are the same object.
    calibrator_ : calibrator
        The fitted calibrator, or with ``ensemble=True`` a `CrossFitted` that averages those of the
        pairs.
    inputs_ : {"logits", "proba"}
        The type of scores that the calibrators were fitted on.
    score_method_ : {"decision_function", "predict_proba"}
        The method of the estimator that gives the scores.
    n_features_in_, feature_names_in_ : those of the estimator

    Notes
    -----
    Calibrators that were fitted on out-of-fold scores give no guarantee. For a guarantee, pass a
    frozen estimator and rows that it was not trained on.

    A class that does not occur in a training fold of n rows gets the probability 1 / (n + K) there
    (rule of succession). Sample weights go to the estimator, if it accepts them, and to the
    calibrator. With metadata routing enabled, parameters of ``fit`` are routed to the estimator and
    the splitter.

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
        X : features of shape (n, n_features)
            Anything that the estimator accepts: arrays, sparse matrices, data frames.
        y : labels of shape (n,)
        sample_weight : weights of shape (n,), optional
        **fit_params
            Passed to the ``fit`` of the estimator, except for ``groups`` of shape (n,): rows of one
            group, such as those of one patient, stay together in the folds of ``cv`` and in those
            of the calibrator.

        Returns
        -------
        self
        """
        self._check_parameters()
        remark_other_order(y, X, sample_weight)
        X, y = indexable(X, check_targets(y))
        weight = None if sample_weight is None else check_weight(sample_weight, len(y))
        groups = check_groups(fit_params.get("groups"), len(y))
        params = self._route(weight, fit_params)
        codes, self.classes_ = self._encode(y)
        data = TrainingData(X, y, codes, weight, self.classes_, groups)
        self.class_prior_ = data.class_prior
        self._responses, parts = self._score_parts(data, params)
        self._fit_calibrators([data.calibration_rows(part) for part in parts])
        self._copy_feature_names()
        warn_unless_converged(type(self).__name__, self.calibrators_[: len(parts)], "calibrators")
        return self

    def _check_parameters(self) -> None:
        """Raise for invalid parameters, before anything is fitted."""
        check_classifier(self.estimator)
        self._make_calibrator()
        if self.ensemble not in ("auto", True, False):
            raise ValueError(f'ensemble must be "auto", True or False, got {self.ensemble!r}')
        if isinstance(self.cv, str):
            raise ValueError(
                f"cv must be a number of folds, a share of rows, a splitter or an iterable of "
                f"(train, test) rows, got {self.cv!r}; an estimator that is fitted already is "
                "passed as sklearn.frozen.FrozenEstimator(estimator), and cv plays no part then"
            )

    def _make_calibrator(self) -> Any:
        return as_calibrator("auto" if self.calibrator is None else self.calibrator)

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator)

    def _encode(self, y: AnyArray) -> tuple[IntArray, AnyArray]:
        """Column codes and the labels of the columns: those that occur, or those of a frozen
        estimator.
        """
        if self._is_frozen:
            classes = np.asarray(self.estimator.classes_)
            return encode_labels(y, len(classes), classes)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs rows of at least two classes, got n_samples={len(y)} of one "
                f"class ({classes.tolist()[0]!r})"
            )
        return codes, classes

    def _score_parts(
        self, data: TrainingData, params: Bunch
    ) -> tuple[list[Response], list[ScoredRows]]:
        """The classifiers that predict, and the scores on which calibrators are fitted, one
        calibrator per part.
        """
        if self._is_frozen:
            frozen = Response(self.estimator, self.classes_, 0.0)
            return [frozen], [data.score(frozen, data.all_rows)]
        parts = self._score_out_of_fold(data, params)
        clones = [part.response for part in parts]
        if self._has_pairs(len(parts)):
            return clones, parts
        whole = data.fit(self.estimator, data.all_rows, params.estimator.fit)
        is_alone = not self.ensemble or min(len(part.rows) for part in parts) < 2
        return ([whole] if is_alone else [*clones, whole]), [pool_parts(whole, parts)]

    def _has_pairs(self, n_parts: int) -> bool:
        """Whether each clone has its own calibrator, as with a single split."""
        return n_parts == 1 if self.ensemble == "auto" else bool(self.ensemble)

    def _route(self, weight: FloatArray | None, fit_params: dict[str, Any]) -> Bunch:
        """Parameters of the estimator's fit and of the splitter."""
        is_routed = get_config()["enable_metadata_routing"]
        params = dict(fit_params) if weight is None else {**fit_params, "sample_weight": weight}
        if self._cuts_folds or not is_routed:
            params.pop("groups", None)
        if is_routed:
            return process_routing(self, "fit", **params)
        if weight is not None and "sample_weight" not in signature(self.estimator.fit).parameters:
            params.pop("sample_weight")
            self._warn_unweighted()
        groups = {name: fit_params[name] for name in ("groups",) if name in fit_params}
        return Bunch(estimator=Bunch(fit=params), splitter=Bunch(split=groups))

    def _warn_unweighted(self) -> None:
        if not self._is_frozen:
            warnings.warn(
                f"{type(self.estimator).__name__} takes no sample_weight: weights are used for the "
                "calibration only; for a pipeline enable metadata routing by "
                "sklearn.set_config(enable_metadata_routing=True)",
                UserWarning,
                stacklevel=4,
            )

    @property
    def _cuts_folds(self) -> bool:
        """Whether folds are cut here, and not by a splitter or beforehand."""
        return isinstance(self.cv, int | float | np.integer)

    def _score_out_of_fold(self, data: TrainingData, params: Bunch) -> list[ScoredRows]:
        splits = self._check_splits(list(self._split(data, params.splitter.split)))
        tasks = (
            delayed(data.fit_and_score)(self.estimator, split, params.estimator.fit)
            for split in splits
        )
        parts = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        return list(tracked(parts, total=len(splits), description="Folds", progress=self.progress))

    def _check_splits(self, splits: list[Split]) -> list[Split]:
        """Raise if a fold has too few rows for its own calibrator."""
        has_calibrators = self._has_pairs(len(splits)) and len(splits) > 1
        if has_calibrators and min(len(test) for _, test in splits) < 2:
            raise ValueError(
                "a fold holds one row, and with ensemble=True a calibrator is fitted on each fold "
                "alone: use fewer folds (cv=5), or ensemble='auto' or False, which fit one "
                "calibrator on the scores of all folds"
            )
        return splits

    def _split(self, data: TrainingData, params: dict[str, Any]) -> Iterator[Split]:
        if isinstance(self.cv, int | np.integer):
            return stratified_rows(int(self.cv), data.codes, data.groups)
        if isinstance(self.cv, float):
            return held_out_rows(self.cv, data.codes, data.groups)
        splitter = check_cv(self.cv, data.y, classifier=True)
        return iter(splitter.split(data.X, data.y, **params))

    def _fit_calibrators(self, parts: list[CalibrationRows]) -> None:
        """Fit one calibrator on all scores, or one per part."""
        self.estimators_ = [response.estimator for response in self._responses]
        self.score_method_, self.inputs_ = self._responses[0].method, self._responses[0].inputs
        calibrator = set_up(
            self._make_calibrator(), self.inputs_, len(self.classes_), self.classes_
        )
        if len(parts) == 1:
            scores, codes, weight, groups = parts[0]
            sample = ArraySample(scores, codes, weight, groups=groups)
            self.calibrator_ = fit_on(calibrator, sample, self.inputs_)
            self.calibrators_ = [self.calibrator_] * len(self._responses)
        else:
            self.calibrator_ = self._fit_average(calibrator, parts)
            self.calibrators_ = self.calibrator_.calibrators_
        if not self._is_frozen:
            for member in self.calibrators_:
                if isinstance(member, Calibrator):
                    member.out_of_fold_ = True

    def _fit_average(self, calibrator: Any, parts: Sequence[CalibrationRows]) -> CrossFitted:
        """A `CrossFitted` of all scores whose folds are fitted on the parts."""
        scores, codes, weight, groups = concatenate_parts(parts)
        part = np.repeat(np.arange(len(parts)), [len(rows.codes) for rows in parts])
        folds = [(np.flatnonzero(part == j), np.flatnonzero(part != j)) for j in range(len(parts))]
        average = CrossFitted(calibrator, cv=folds, inputs=self.inputs_, classes=self.classes_)
        average._fit_checked(ArraySample(scores, codes, weight, groups=groups), self.classes_)
        # A saved calibrator needs the number of its folds, not the rows of each.
        return average.set_params(cv=len(parts))

    def _copy_feature_names(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            value = getattr(self.estimators_[0], name, None)
            if value is not None:
                setattr(self, name, value)

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities of shape (n, K), columns as ``classes_``: an array, or a data
        frame after `set_output`.
        """
        return wrapped(self._proba_of(X), X, self.classes_, self._output)

    def _proba_of(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        (data,) = indexable(X)
        shape = n_rows(data), len(self.classes_)
        elements = max(READ_BLOCK, shape[0] * shape[1] // _BLOCK_SHARE)
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
        """Logarithms of `predict_proba`, of the same type; -inf for a probability of zero."""
        return wrapped(log_of(self._proba_of(X)), X, self.classes_, self._output)

    def predict(self, X: Any) -> AnyArray:
        """Label of the highest entry of `predict_proba`; ties go to the lowest column."""
        codes = self._proba_of(X).argmax(axis=1)
        return self.classes_[codes]

    def explain(self) -> str:
        """Which classifiers predict, and how and why their scores are calibrated."""
        check_is_fitted(self)
        map_ = self.calibrator_
        summary = map_.explain() if isinstance(map_, Calibrator) else f"The map is {map_!r}."
        return f"{self._describe()} Scores are those of {self.score_method_}.\n{summary}"

    def _describe(self) -> str:
        name, n_fits = type(self.estimator).__name__, len(self.estimators_)
        if self._is_frozen:
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
