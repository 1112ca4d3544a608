"""The public interface of every calibrator.

`Calibrator` handles validation, classes, dtypes, blocks of rows and output frames. The subclasses
of `Calibrator` contain the mathematics. `BaseCalibrator` (`_whole`) transforms whole vectors in log
space, and `BaseBinaryCalibrator` (`_binary`) transforms scores of one binary problem.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant._data.read import as_chunked, as_sample
from calibrant._data.sample import Sample
from calibrant._data.top_scores import TopScores
from calibrant._kernels.blocks import CACHE_BLOCK, one_blas_thread, row_blocks
from calibrant._kernels.simplex import as_proba, log_of, log_true_class
from calibrant._optim.solution import Outcome
from calibrant._typing import AnyArray, FloatArray, IntArray, LabelsLike, ScoresLike, WeightsLike
from calibrant._validation import OptionScores, check_classes, check_fitted, check_option_inputs
from calibrant.base import _frames
from calibrant.base._citation import methods_paragraph
from calibrant.base._declarations import Declarations
from calibrant.base._impossible import warn_impossible
from calibrant.base._output import FrameOutput
from calibrant.base.description import describe_fit, describe_members, describe_settings
from calibrant.base.new_scores import (
    check_n_columns,
    check_new_scores,
    check_new_top_scores,
    proba_of_present,
)
from calibrant.base.outcome import warn_unless_converged
from calibrant.base.training import TrainingSummary, summarize_training


class Calibrator(Declarations, FrameOutput, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # scikit-learn is not typed
    """Base class of all calibrators.

    The class checks input, keeps the dtype of the scores and returns data frames on request. A
    subclass sets ``form``, the form of scores that it works with, and defines ``_fit(sample)`` and
    ``_proba_of(scores)``.

    See Also
    --------
    BaseCalibrator : Base class of calibrators of whole vectors.
    BaseBinaryCalibrator : Base class of calibrators of one binary problem.
    """

    inputs: str
    classes: Any
    training_: TrainingSummary
    class_weights_: FloatArray
    """Sum of the weights of the rows of each class, (K,). It is zero for a class without rows."""
    out_of_fold_: bool = False
    """Whether the scores of the fit come from models other than the model that predicts.
    `CalibratedClassifier` sets this attribute. If it is True, guarantees do not hold."""

    form: ClassVar[str] = "scores"
    """The form of scores that `_fit` gets. "scores" are checked but not transformed. "proba" are
    probabilities. Subclasses add other forms."""

    remedies: ClassVar[Mapping[Outcome, str]] = {}
    """Advice for a fit that did not converge, by its outcome. Missing outcomes get the general
    advice."""

    _folds_by_row: ClassVar[bool] = False
    """Whether the method assigns rows of chunked data to folds by their row number."""

    _uses_columns: ClassVar[bool] = False
    """Whether predictions depend on other columns of a sample, such as groups. `_proba_of` and
    `_log_true_of` then get these columns as additional arguments."""

    is_multilabel_: bool = False
    """Whether the labels of the fit were multilabel, with one column of zeros and ones per class.
    """

    _block_elements: ClassVar[int | None] = None
    """Number of elements of a block of rows at prediction. None means the default."""

    _member_name: ClassVar[str] = "members"
    """The noun for `_members` in a warning, such as "claims" or "folds"."""

    _reordered_columns: list[Any] | None = None
    """Columns of the data frame of the fit, if their order was not that of ``classes_``. Arrays are
    then rejected at prediction, because the order of their columns is ambiguous."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # The result is cached, because scikit-learn inspects the signature at every clone, which
        # takes longer than a small fit.
        names: list[str] = super()._get_param_names()
        return names

    def fit(
        self,
        X: ScoresLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None = None,
        groups: LabelsLike | None = None,
        *,
        verbose: bool = False,
    ) -> Self:
        """Fit the calibrator to scores and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities, logits or log-probabilities, as declared by ``inputs``. One-dimensional
            scores are those of class 1 of a binary problem. The columns of a data frame are matched
            to the classes by name. Chunked scores (dask arrays, `calibrant.io.open_scores`) are
            read once per pass and not kept in memory.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Number of copies of each row. Rescale importance weights to ``w * w.sum() /
            (w**2).sum()``, which sum to the effective number of rows. Weights that sum to less than
            two are scaled in this way, with a warning.
        groups : array-like of shape (n_samples,), optional
            Group of each row, such as the patient. `CrossFitted` and `AutoCalibration` keep the
            rows of a group in one fold. Methods without folds ignore groups.
        verbose : bool
            Whether to print the number of passes over the scores. A pass reads all chunked scores.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y, sample_weight, groups, verbose=verbose)

    def _fit_rows(
        self,
        X: ScoresLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None,
        groups: LabelsLike | None,
        columns: tuple[Any, ...] = (),
        *,
        verbose: bool,
    ) -> Self:
        """Check the data of a user and fit.

        ``columns`` contains additional columns of the same rows.
        """
        check_option_inputs(X, self.inputs, type(self).__name__)
        sample, classes = as_sample(
            X,
            y,
            sample_weight,
            groups,
            classes=self.classes,
            inputs=self.inputs,
            columns=columns,
            multilabel=self._takes_multilabel,
        )
        self._check_parameters(sample.n_columns)
        self._check_sample(sample)
        _forget_fit(self)
        sample = sample.countable()
        self._fit_checked(sample, classes)
        _frames.keep_columns(self, X)
        if self._takes_logarithms:
            warn_impossible(type(self).__name__, sample, self.inputs)
        training = summarize_training(
            sample, self.inputs, self._log_true_of, with_columns=self._uses_columns
        )
        if training is not None:
            self.training_ = training
        self.n_passes_ = sample.n_passes
        if verbose:
            print(_describe_passes(self, sample))  # noqa: T201  # requested by the user
        members = list(self._members())
        warn_unless_converged(
            type(self).__name__, members or [self], self._member_name if members else None
        )
        return self

    def _check_sample(self, sample: Sample) -> None:
        """Raise if the method cannot be fitted to data of this kind, before reading the data."""
        if self.needs_rows:
            sample.rows(type(self).__name__)

    def _fit_checked(self, sample: Sample, classes: AnyArray | None = None) -> Self:
        """Fit to a checked sample, without validation, training summary and warnings.

        Composites call this method for their folds, members and claims.
        """
        n_classes = sample.n_columns
        self._check_parameters(n_classes)
        self.classes_ = check_classes(self.classes, n_classes) if classes is None else classes
        self.n_classes_ = self.n_features_in_ = n_classes
        self.class_weights_ = sample.class_weights
        with one_blas_thread(sample.shape[0] * n_classes):
            self._fit(self._inner(sample))
        return self

    def _inner(self, sample: Sample) -> Any:
        """The argument of `_fit`: the sample in the ``form`` of the method."""
        return sample if self.form == "scores" else sample.transformed(self._transform)

    def _transform(self, scores: FloatArray) -> FloatArray:
        """Scores in the ``form`` of the method, block by block."""
        return as_proba(scores, self.inputs)

    @abstractmethod
    def _fit(self, sample: Any) -> None:
        """Set the fitted attributes from a sample in the ``form`` of the method."""

    @abstractmethod
    def _proba_of(self, scores: FloatArray) -> FloatArray:
        """Calibrated probabilities of a block of checked scores, (m, K)."""

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of a block of checked scores, (m, K)."""
        return log_of(self._proba_of(scores))

    def _log_true_of(self, scores: FloatArray, y: IntArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of the true classes of a block.

        The probabilities have the same floor as in the log-loss.
        """
        return log_true_class(self._proba_of(scores), y, "proba")

    def _proba_of_top(self, top: TopScores) -> TopScores:
        """Calibrated top scores, if the method can compute them."""
        raise TypeError(
            f"{type(self).__name__} needs the scores of all {top.n_classes} classes, but TopScores "
            f"contain only the top {top.n_known} classes. Use TemperatureScaling(), or "
            "predict_claims or predict_top of MulticlassToBinary."
        )

    def _start_like(self, fitted: Any) -> None:
        """Start the next fit at the optimum of a calibrator that was fitted to similar rows.

        Iterative methods with the same parameters then find the same optimum in fewer steps.
        """

    def _plain(self) -> Calibrator:
        """A copy that predicts from scores alone. `calibrant.load` tests files with this copy."""
        return self

    def _members(self) -> Sequence[Any]:
        """Return the inner calibrators. `fit` warns if inner calibrators did not converge."""
        return ()

    def _check_parameters(self, n_classes: int) -> None:
        """Raise on an invalid parameter, before anything is computed."""

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        """Raise if fitted attributes of a file contradict each other.

        Each attribute already has the shape and range that `fitted_values` declares.
        """

    def _chunked_note(self) -> str:
        """Describe how a fit to chunked data differs from a fit in memory.

        The text is empty if both fits are equal.
        """
        return ""

    @property
    def class_prior_(self) -> FloatArray:
        """Class frequencies of the rows of the fit, (K,)."""
        prior: FloatArray = self.class_weights_ / self.class_weights_.sum()
        return prior

    def predict_proba(self, X: ScoresLike) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The calibrated probabilities, as a data frame if `set_output` was called. The result is
            `calibrant.TopScores` for `TopScores`, chunked for chunked scores, and float32 for
            float32 scores.

        Notes
        -----
        Rows are transformed block by block, so the method needs little memory in addition to the
        output.
        """
        of_rows = partial(proba_of_present, self)
        out = self._predict_new(X, self.predict_proba, of_rows, self._proba_of_top)
        return _frames.wrapped(out, X, self.classes_, self._output)

    def predict_log_proba(self, X: ScoresLike) -> Any:
        """Return the logarithms of `predict_proba`, with -inf for a probability of zero.

        Methods that work in log space return finite logarithms even for probabilities that are too
        small for a float.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logarithms, in the same container as `predict_proba` returns.
        """
        of_rows: Callable[[FloatArray], FloatArray] = self._log_proba_of
        if isinstance(X, OptionScores):  # -inf for absent options
            of_rows = lambda scores: log_of(proba_of_present(self, scores))  # noqa: E731
        out = self._predict_new(X, self.predict_log_proba, of_rows, self._proba_of_top)
        return _frames.wrapped(out, X, self.classes_, self._output)

    def predict(self, X: ScoresLike) -> Any:
        """Return the label with the highest probability. Ties go to the first column.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the same kind as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_fitted(self)
        _check_single_label(self)

        def of_rows(scores: FloatArray) -> AnyArray:
            # Round to the output dtype first, so ties are those of `predict_proba`.
            proba = proba_of_present(self, scores).astype(_output_dtype(scores), copy=False)
            return self.classes_[proba.argmax(axis=1)]

        def of_top(top: TopScores) -> AnyArray:
            return self.classes_[self._proba_of_top(top).labels[:, 0]]

        return self._predict_new(X, self.predict, of_rows, of_top, (), self.classes_.dtype)

    def _predict_new(
        self,
        X: ScoresLike,
        method: Callable[..., Any],
        of_rows: Callable[..., AnyArray],
        of_top: Callable[[TopScores], Any],
        shape: tuple[int, ...] | None = None,
        dtype: Any = None,
        columns: tuple[Any, ...] = (),
    ) -> Any:
        """Apply ``of_rows`` to blocks of scores, ``of_top`` to top scores and ``method`` to chunks.

        Chunks are transformed when they are read. The result of a row has ``shape``, by default one
        number per class, and ``dtype``, by default that of the scores. ``columns`` contains
        additional columns of the same rows, which are passed to ``of_rows`` and ``method`` after
        the scores.
        """
        check_fitted(self)
        shape = (self.n_classes_,) if shape is None else shape
        if isinstance(X, TopScores):
            return of_top(check_new_top_scores(self, X))
        chunked = as_chunked(X)
        if chunked is not None:
            check_n_columns(self, (-1, chunked.n_columns))  # chunks are read later
            return chunked.map(method, shape, dtype, columns)
        scores = check_new_scores(self, X)
        out = np.empty((len(scores), *shape), dtype or _output_dtype(scores))
        if scores.size <= (self._block_elements or CACHE_BLOCK):
            out[:] = of_rows(scores, *columns)
            return out
        with one_blas_thread(scores.size):
            for rows in row_blocks(*scores.shape, elements=self._block_elements):
                out[rows] = of_rows(scores[rows], *(column[rows] for column in columns))
        return out

    def cite(self) -> str:
        """Return text for a methods section, and the references.

        Examples
        --------
        >>> from calibrant import TemperatureScaling
        >>> model = TemperatureScaling(prior_scale=0.25)
        >>> print(model.fit([[0.9, 0.1], [0.2, 0.8]], [0, 1]).cite())
        Probabilities were calibrated with Calibrant ... The calibrator was fitted on 2 rows of
        2 classes. The method is temperature scaling (Guo et al. 2017).
        ...
        """
        check_fitted(self)
        return methods_paragraph(self)

    def explain(self) -> str:
        """Describe in plain English what the fitted calibrator does, and its training data.

        Composites add a line for each of their first few members.
        """
        check_fitted(self)
        fitted_on = describe_fit(vars(self).get("training_"))
        sentences = [f"{type(self).__name__}.", self._description(), fitted_on]
        return "\n".join([" ".join(filter(None, sentences)), *describe_members(self._members())])

    def _description(self) -> str:
        """Describe what the fitted calibrator does, for `explain` and the report.

        The default is a list of settings and fitted numbers.
        """
        return describe_settings(self)


def _check_single_label(calibrator: Calibrator) -> None:
    if calibrator.is_multilabel_:
        raise ValueError(
            "predict returns one label per row, but this calibrator was fitted with several "
            "labels per row. Use predict_proba(X) >= 0.5, or another threshold per label."
        )


def _output_dtype(scores: FloatArray) -> type[np.float32 | np.float64]:
    return np.float32 if scores.dtype == np.float32 else np.float64


def _describe_passes(calibrator: Calibrator, sample: Sample) -> str:
    chunks = f"{sample.n_chunks} chunk{'s' * (sample.n_chunks > 1)}"
    passes = f"{sample.n_passes} pass{'es' * (sample.n_passes > 1)}"
    line = f"{type(calibrator).__name__}: {passes} over {sample.shape[0]:,} rows in {chunks}"
    return "\n".join(filter(None, [line, sample.note_on(calibrator)]))


def _forget_fit(calibrator: Calibrator) -> None:
    """Delete the fitted attributes of an earlier fit."""
    for name in list(vars(calibrator)):
        if name.endswith("_") and not name.startswith("_"):
            delattr(calibrator, name)
