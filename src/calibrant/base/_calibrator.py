"""The boundary of every calibrator: what users pass is checked here, and here only.

`Calibrator` owns validation, classes, dtypes, blocks and output frames. Its children own the
mathematics: `BaseCalibrator` (`_whole`) maps whole vectors in log space, `BaseBinaryCalibrator`
(`_binary`) one claim.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant._blocks import BLOCK_ELEMENTS, map_blocks, one_blas_thread, row_blocks
from calibrant._data.chunks import ChunkedSample, ChunkSource, check_chunks, reader_for
from calibrant._data.dask_arrays import is_dask, whole_rows
from calibrant._data.folds import check_groups
from calibrant._data.read import as_source, is_chunked
from calibrant._data.top_scores import TopSample, TopScores, as_top_sample
from calibrant._optim.solution import Outcome
from calibrant._simplex import class_sums, log_of, log_true_class
from calibrant._typing import (
    AnyArray,
    FloatArray,
    IntArray,
    LabelsLike,
    ScoresLike,
    WeightsLike,
)
from calibrant._validation import (
    LOGITS_HINT,
    arrange_as_fitted,
    check_classes,
    check_fitted,
    check_predictions,
    check_scores,
    column_names,
    remark,
    remark_few_weights,
    shortened,
)
from calibrant.base import _frames
from calibrant.base._citation import Citation, methods_paragraph
from calibrant.base._fitted import FittedValue
from calibrant.base._impossible import remark_impossible
from calibrant.base._outcome import warn_unless_converged
from calibrant.base._output import FrameOutput
from calibrant.base._training import TrainingSummary, training_summary
from calibrant.base._words import lines_of_parts, plain_words, words_of_fit


class Calibrator(FrameOutput, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # scikit-learn is not typed
    """What all calibrators share: checked fit, output in the dtype of the input, frames on
    request.
    """

    inputs: str
    classes: Any
    training_: TrainingSummary
    class_weights_: FloatArray
    """Sum of the weights of the rows of each class, (K,); zero for a class that was never seen."""
    out_of_fold_: bool = False
    """Whether the scores that it was fitted on come from other models than the one that predicts:
    set by `CalibratedClassifier`, and no guarantee is given then."""
    remedies: ClassVar[Mapping[Outcome, str]] = {}
    """What to do about a fit that did not converge, by its outcome, where the method knows better
    than what is said of all."""

    _deals_rows: ClassVar[bool] = False
    """Whether the folds that it cuts of scores that come in parts go by the number of the row."""

    _block_elements: ClassVar[int | None] = None
    """Elements of a block at prediction, where a method has reason to differ."""

    _moved: list[Any] | None = None
    """Columns of the frame of the fit that stood in another order than ``classes_``: an array does
    not say which of the two its columns are in."""

    _part_name: ClassVar[str] = "parts"
    """What `_parts` are called in a warning: "claims", "folds"."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """scikit-learn reads them from the signature at every clone, which takes longer than a
        small fit.
        """
        names: list[str] = super()._get_param_names()
        return names

    @property
    def counts_rows(self) -> bool:
        """Whether the method counts rows, so that weight 2 is not the row twice: it leaves whole
        rows out, or deals them to folds. Whole weights are then given to it as copies by what is
        made of others (`CrossFitted`, `AutoCalibration`, `compare`).
        """
        return False

    @property
    def _takes_logarithms(self) -> bool:
        """Whether scores of zero need a floor."""
        return False

    @property
    def check_exceptions(self) -> Mapping[str, str]:
        """Promises of `calibrant.testing.check_calibrator` that the method cannot keep: the name of
        the check, and the reason. What `counts_rows` excuses need not be repeated.
        """
        return {}

    @property
    def fitted_values(self) -> Mapping[str, FittedValue]:
        """Shapes and ranges of fitted attributes, by their names: `calibrant.load` refuses a file
        in which they are different. Those that are not named are read as they are.
        """
        return {}

    @property
    def citation(self) -> Citation:
        """What the method is called in a sentence, and who is cited for it, for `cite`."""
        return Citation(type(self).__name__)

    def fit(
        self,
        X: ScoresLike,
        y: LabelsLike,
        sample_weight: WeightsLike | None = None,
        groups: LabelsLike | None = None,
        *,
        verbose: bool = False,
    ) -> Self:
        """Learn the map from scores and labels.

        Parameters
        ----------
        X : scores of shape (n, K), or (n,) for class 1 of a binary problem
            Probabilities, logits or log-probabilities, as ``inputs`` says. The columns of a data
            frame are those of the classes that they are named after, in any order.
        y : labels of shape (n,)
        sample_weight : weights of shape (n,), optional
            Numbers of copies of a row. Importance weights that are normalised to one are given as
            ``w * n / w.sum()``, so that priors, smoothing and bins know how many rows there are.
        groups : array of shape (n,), optional
            Rows that belong together, such as those of one patient: `CrossFitted` and
            `AutoCalibration` keep them in one fold. Methods that cut no folds need none.
        verbose : bool
            Print how often scores that come in parts, such as dask arrays, were read.

        Returns
        -------
        self
        """
        if isinstance(X, TopScores):
            return self._fit_top(X, y, sample_weight)
        if is_chunked(X):
            return self._fit_parts(as_source(X, y, sample_weight), groups, verbose=verbose)
        scores, codes, weight, classes = check_predictions(
            y, X, sample_weight, self.classes, inputs=self.inputs, hint=LOGITS_HINT
        )
        remark_few_weights(weight)
        self._fit_checked(scores, codes, weight, classes, check_groups(groups, len(codes)))
        self._keep_columns(X)
        is_possible = self._takes_logarithms and remark_impossible(
            type(self).__name__, scores, codes, weight, self.inputs
        )
        self.training_ = training_summary(
            scores,
            codes,
            weight,
            self.class_weights_,
            self.inputs,
            self._log_true_of,
            self._known_losses(scores, is_possible),
        )
        parts = list(self._parts())
        warn_unless_converged(
            type(self).__name__, parts or [self], self._part_name if parts else None
        )
        return self

    def cite(self) -> str:
        """How to write about it: a sentence for a methods section, and the references.

        Examples
        --------
        >>> from calibrant import TemperatureScaling
        >>> model = TemperatureScaling(prior_scale=0.25)
        >>> print(model.fit([[0.9, 0.1], [0.2, 0.8]], [0, 1]).cite())
        Probabilities were calibrated by temperature scaling (Guo et al. 2017), fitted to 2 rows of
        2 classes with Calibrant ...
        """
        check_fitted(self)
        return methods_paragraph(self)

    def _fit_top(
        self, X: TopScores, y: LabelsLike, sample_weight: WeightsLike | None = None
    ) -> Self:
        """Fit on the best classes of each row; no summary is made, which would need whole rows."""
        data = as_top_sample(y, X, sample_weight, self.classes)
        self._check_parameters(X.n_classes)
        self.classes_ = X.names_with(self.classes)
        self.n_classes_ = self.n_features_in_ = X.n_classes
        self.class_weights_ = np.bincount(data.y, data.weight, minlength=self.n_classes_)
        self._fit_known(data)
        parts = list(self._parts())
        warn_unless_converged(
            type(self).__name__, parts or [self], self._part_name if parts else None
        )
        return self

    def _fit_parts(self, parts: ChunkSource, groups: Any = None, *, verbose: bool = False) -> Self:
        """Fit on scores that come in parts, of which nothing but sums is gathered."""
        self._check_parted()
        if groups is not None:
            raise TypeError("groups are for scores in memory: parts of scores are not cut by them")
        reader = reader_for(parts, self.classes, self.inputs)
        self._check_parameters(reader.n_classes)
        sample = check_chunks(parts, reader)
        self._fit_checked_parts(sample, check_classes(reader.classes, reader.n_classes))
        self.n_passes_ = sample.passes.n
        if verbose:
            said = f"{sample.passes.n} passes over {sample.shape[0]:,} rows"
            n_parts = len(sample.counts.class_rows)
            lines = [f"{type(self).__name__}: {said} in {n_parts} parts", self._words_of_parts()]
            print("\n".join(filter(None, lines)))  # noqa: T201  # asked for
        made = list(self._parts())
        warn_unless_converged(
            type(self).__name__, made or [self], self._part_name if made else None
        )
        return self

    def _fit_checked_parts(self, sample: ChunkedSample, classes: AnyArray | None = None) -> Self:
        """Fit on the checked scores of all parts: what a composite calls for its members."""
        self._check_parted()
        n_classes = sample.shape[1]
        self._check_parameters(n_classes)
        self.classes_ = check_classes(self.classes, n_classes) if classes is None else classes
        self.n_classes_ = self.n_features_in_ = n_classes
        self.class_weights_ = sample.class_weights
        self._fit_parted(sample)
        return self

    def _check_parted(self) -> None:
        """Raise where the method cannot be fitted to scores that come in parts."""
        raise TypeError(
            f"{type(self).__name__} is not fitted to scores that come in parts, such as dask "
            "arrays: pass X.compute() where they fit into memory, or some of the rows; the scaling "
            "family, StructuredScaling, DirichletCalibration, MulticlassToBinary of any binary "
            "calibrator and AutoCalibration take them as they are, and every fitted calibrator "
            "predicts them"
        )

    def _fit_parted(self, sample: ChunkedSample) -> None:
        """Fit on the checked scores of all parts, of a method that can."""
        self._check_parted()

    def _words_of_parts(self) -> str:
        """How a map that was fitted to parts differs from that of all rows at once; nothing where
        both are sums over rows.
        """
        return ""

    def _fit_known(self, data: TopSample) -> None:
        """Fit on checked top scores, where the method can."""
        np.asarray(data.top)  # says what takes them

    def _proba_of_known(self, top: TopScores) -> TopScores:
        """Calibrated top scores, where the method can make them."""
        raise TypeError(
            f"{type(self).__name__} makes whole rows of whole rows, and TopScores hold the best "
            f"{top.n_known} of {top.n_classes} classes; predict_claims and predict_top of "
            "MulticlassToBinary, and TemperatureScaling, take them"
        )

    def _check_new_top(self, top: TopScores) -> TopScores:
        """Top scores to predict, checked against those of the fit."""
        check_fitted(self)
        if top.n_classes != self.n_classes_:
            raise ValueError(
                f"X speaks of {top.n_classes} classes, but {type(self).__name__} was fitted with "
                f"{self.n_classes_}"
            )
        top.names_with(self.classes_)
        return top

    @property
    def class_prior_(self) -> FloatArray:
        """Class frequencies of the rows of the fit, (K,)."""
        prior: FloatArray = self.class_weights_ / self.class_weights_.sum()
        return prior

    def _keep_columns(self, X: ScoresLike) -> None:
        """``n_features_in_``, and ``feature_names_in_`` where a frame has column names that are
        text: in the order of ``classes_`` where they name the classes.
        """
        self.n_features_in_ = _frames.n_columns(X)
        names = _frames.fitted_names(X, self.classes_)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self._moved = _frames.moved_names(X, self.classes_)

    def _fit_checked(
        self,
        scores: FloatArray,
        y: IntArray,
        weight: FloatArray,
        classes: AnyArray | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Fit on checked scores and column codes: what a composite calls for its folds, members and
        claims. Nothing is checked again, no summary is made, and nothing is warned of.
        """
        self._check_parameters(scores.shape[1])
        self.classes_ = check_classes(self.classes, scores.shape[1]) if classes is None else classes
        self.n_classes_ = self.n_features_in_ = scores.shape[1]
        self.class_weights_ = class_sums(y, weight, self.n_classes_)
        with one_blas_thread(scores.size):
            self._fit_rows(scores, y, weight, groups)
        return self

    def _begin_like(self, fitted: Any) -> None:
        """Begin the next fit where that of a calibrator with the same parameters ended, on similar
        rows: the same optimum, found sooner. For methods that search.
        """

    def _parts(self) -> Iterable[Any]:
        """The fitted calibrators inside, whose outcomes `fit` warns of; none of a method that is
        not made of others.
        """
        return ()

    def _check_parameters(self, n_classes: int) -> None:
        """Raise on a parameter that makes no sense, before anything is computed."""

    def _check_together(self, fitted: Mapping[str, Any]) -> None:
        """Raise where fitted attributes of a file, each as `fitted_values` says, do not belong
        together.
        """

    def _fit_rows(
        self, scores: FloatArray, y: IntArray, weight: FloatArray, groups: IntArray | None
    ) -> None:
        """Fit on checked scores; ``groups``, codes or None, matter to a method that cuts folds."""
        self._fit_scores(scores, y, weight)

    @abstractmethod
    def _fit_scores(self, scores: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit on checked scores."""

    @abstractmethod
    def _proba_of(self, scores: FloatArray) -> FloatArray:
        """Calibrated probabilities of a block of checked scores, (m, K)."""

    def _log_true_of(self, scores: FloatArray, y: IntArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of the true classes of a block, floored as in
        the log-loss.
        """
        return log_true_class(self._proba_of(scores), y, "proba")

    def _known_losses(self, scores: FloatArray, is_possible: bool) -> tuple[float, float] | None:
        """Mean log-losses over all rows of checked scores and of the calibrated probabilities,
        floored like those, where the fit has met both on its way; None where it has not.
        """
        return None

    def predict_proba(self, X: ScoresLike) -> Any:
        """Calibrated probabilities of shape (n, K): NumPy, or a frame where `set_output` asks for
        one.

        `calibrant.TopScores` give `TopScores`, and float32 scores float32 probabilities. Works
        block by block: memory is that of the output.
        """
        return self._predict_rows(X, self._proba_of)

    def predict_log_proba(self, X: ScoresLike) -> Any:
        """Logarithms of `predict_proba`, of the same shape and kind; -inf where that is zero.

        A method that works in logarithms gives them as they are: a probability too small for a
        float has a finite logarithm all the same.
        """
        return self._predict_rows(X, self._log_proba_of)

    def _predict_rows(self, X: ScoresLike, of_rows: Callable[[FloatArray], FloatArray]) -> Any:
        if isinstance(X, TopScores):
            return self._proba_of_known(self._check_new_top(X))
        if is_dask(X):
            one = partial(self._predict_rows, of_rows=of_rows)
            return self._predict_chunks(one, X, (self.n_classes_,))
        scores = self._check_new(X)
        if scores.size <= (self._block_elements or BLOCK_ELEMENTS):
            out = of_rows(scores).astype(_output_dtype(scores), copy=False)
            out = out.copy() if np.may_share_memory(out, scores) else out
        else:
            out = np.empty(scores.shape, dtype=_output_dtype(scores))
            with one_blas_thread(scores.size):
                for rows in row_blocks(*scores.shape, elements=self._block_elements):
                    out[rows] = of_rows(scores[rows])
        return _frames.wrapped(out, X, self.classes_, self._output)

    def _predict_chunks(
        self, predict: Callable[[Any], Any], X: Any, shape: tuple[int, ...], dtype: Any = None
    ) -> Any:
        """``predict`` of every chunk of a dask array, lazily: (n, *shape)."""
        check_fitted(self)
        rows = whole_rows(X)
        dtype = _output_dtype(rows) if dtype is None else dtype
        chunks = (rows.chunks[0], *((size,) for size in shape))
        meta = np.empty((0,) * len(chunks), dtype=dtype)
        axes = {"new_axis": 1} if rows.ndim < len(chunks) else {}
        axes |= {"drop_axis": 1} if rows.ndim > len(chunks) else {}
        return rows.map_blocks(predict, dtype=dtype, chunks=chunks, meta=meta, **axes)

    def _log_proba_of(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the calibrated probabilities of a block of checked scores, (m, K)."""
        return log_of(self._proba_of(scores))

    def predict(self, X: ScoresLike) -> AnyArray:
        """Label of the highest entry of `predict_proba`; ties go to the lowest column."""
        if isinstance(X, TopScores):
            return self.classes_[self._proba_of_known(self._check_new_top(X)).labels[:, 0]]
        if is_dask(X):
            return self._predict_chunks(self.predict, X, (), self.classes_.dtype)
        scores = self._check_new(X)
        codes = map_blocks(
            lambda rows: self._codes_of(scores[rows]), *scores.shape, elements=self._block_elements
        )
        return self.classes_[np.concatenate(list(codes))]

    def _codes_of(self, scores: FloatArray) -> IntArray:
        """Columns of the highest probabilities of a block of checked scores, (m,), as they are
        rounded in `predict_proba`.
        """
        return self._proba_of(scores).astype(_output_dtype(scores), copy=False).argmax(axis=1)

    def explain(self) -> str:
        """What was learned, in words: what the map does, and on what it was fitted; a line for each
        of the first calibrators inside.
        """
        check_fitted(self)
        words = [
            f"{type(self).__name__}.",
            self._words(),
            words_of_fit(vars(self).get("training_")),
        ]
        return "\n".join([" ".join(filter(None, words)), *lines_of_parts(list(self._parts()))])

    def _words(self) -> str:
        """What the fitted map does, for `explain` and the report; a method has words of its own
        where it can say more than its settings and its numbers.
        """
        return plain_words(self)

    def _check_new(self, X: ScoresLike) -> FloatArray:
        """Scores to predict, checked against those of the fit."""
        check_fitted(self)
        self._raise_if_unclear(X)
        table = arrange_as_fitted(X, getattr(self, "feature_names_in_", None), self.classes_)
        self._check_rows(table)
        scores = check_scores(table, inputs=self.inputs)
        if scores.shape[1] != self.n_classes_:
            raise ValueError(
                f"X has {scores.shape[1]} columns, but {type(self).__name__} was fitted with "
                f"{self.n_classes_} classes"
            )
        return scores

    def _raise_if_unclear(self, X: ScoresLike) -> None:
        if self._moved is not None and len(np.shape(X)) == 2 and column_names(X) is None:
            raise ValueError(
                f"X has columns without names, and those of the frame of the fit "
                f"({shortened(self._moved)}) stood in another order than classes_ "
                f"({shortened(self.classes_)}): pass a frame with these names, "
                "pandas.DataFrame(X, columns=[...])"
            )

    def _check_rows(self, table: AnyArray) -> None:
        """One score a row is of two classes; several scores may be meant as a single row."""
        if table.ndim == 1 and self.n_classes_ > 2:
            raise ValueError(
                f"X has shape {table.shape}, one score a row of a binary problem, but "
                f"{type(self).__name__} was fitted with {self.n_classes_} classes: for one row "
                f"pass X[None], of shape (1, {self.n_classes_})"
            )
        if table.shape == (2,) and self.n_features_in_ == 2:
            remark(
                "X has shape (2,) and is taken for the scores of class 1 of two rows; for one row "
                "of two classes pass X[None]"
            )


def _output_dtype(scores: FloatArray) -> type[np.float32 | np.float64]:
    return np.float32 if scores.dtype == np.float32 else np.float64
