"""Fits of a report.

The report describes a calibrator that is fitted on all rows. A separate fit per fold predicts the
held-out rows of the fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from calibrant._crossfit.members import fit_folds, fit_on, proba_blocks, proba_of
from calibrant._data.read import as_sample
from calibrant._data.sample import ArraySample, Sample
from calibrant._output.progress import next_step
from calibrant._typing import AnyArray, FloatArray
from calibrant.base import Calibrator
from calibrant.base.outcome import convergence_note
from calibrant.base.training import summarize_training
from calibrant.multiclass import Identity
from calibrant.report._request import Request
from calibrant.report._rows import FoldOf, ReportRows, first_fold
from calibrant.selection.methods import needs_rows


class Predictor(NamedTuple):
    """Predict every row with the calibrator of the fold that holds out the row."""

    fits: Sequence[Any]
    fold_of: FoldOf
    inputs: str

    def predict(self, chunk: ArraySample) -> ArraySample:
        """Return a chunk of original probabilities, with a column of calibrated probabilities."""
        scores = chunk.u[:]
        rows = chunk.with_scores(self._before(scores))
        rows.columns = (self._after(scores, chunk), *chunk.columns)
        return rows

    def _before(self, scores: FloatArray) -> FloatArray:
        if self.inputs == "proba":
            return np.asarray(scores, dtype=np.float64)
        # Logits are converted block by block, which needs less memory.
        return proba_of(Identity().set_params(inputs=self.inputs), scores, self.inputs)

    def _after(self, scores: FloatArray, chunk: ArraySample) -> FloatArray:
        fold, proba = self.fold_of(chunk), np.empty(scores.shape)
        for number, fit in enumerate(self.fits):
            rows = np.flatnonzero(fold == number)
            for part, block in proba_blocks(fit, scores, self.inputs, rows, chunk.columns):
                proba[rows[part]] = block
        return proba


def before_of(chunk: ArraySample) -> ArraySample:
    """Return the rows of a predicted chunk before calibration, with their group columns."""
    rows = chunk.with_scores(chunk.u)
    rows.columns = chunk.columns[1:]
    return rows


def after_of(chunk: ArraySample) -> ArraySample:
    """Return the rows of a predicted chunk after calibration, with their group columns."""
    rows = chunk.with_scores(chunk.columns[0])
    rows.columns = chunk.columns[1:]
    return rows


@dataclass(frozen=True, eq=False)
class Fits:
    """The fitted calibrator, and the fits that predict held-out rows.

    ``class_weights`` are the sums of the weights of the training rows per class. ``notes`` are
    warnings about the fits. ``chunked_note`` describes how a fit on chunked rows differs from a fit
    in memory.
    """

    model: Any
    predictor: Predictor
    class_weights: FloatArray
    notes: tuple[str, ...]
    chunked_note: str
    is_held_out: bool

    @property
    def n_folds(self) -> int:
        """Number of fits that predict held-out rows."""
        return len(self.predictor.fits)


def fit_rows(rows: ReportRows, training: ReportRows | None, request: Request) -> Fits:
    """Fit the calibrator on the training rows, or cross-fit if there are no training rows."""
    calibrator, inputs = request.calibrator, request.inputs
    if request.is_fitted:
        return _given_fit(calibrator, rows, inputs)
    fitted = rows if training is None else training
    next_step("Fitting the calibrator")
    model = _fit_model(calibrator, fitted.sample, inputs)
    if training is None:
        folds = rows.cut_folds(request.cv, request.seed)
        start = partial(next_step, "Fitting on folds")
        fits = fit_folds(calibrator, folds.plan, inputs, start)
        predictor = Predictor(fits, folds.fold_of, inputs)
        fold_fits = predictor.fits
    else:
        predictor, fold_fits = Predictor([model], first_fold, inputs), []
    # Convergence is read from the fits, because catching warnings changes the filters of all
    # threads.
    owner = type(calibrator).__name__
    notes = convergence_note(owner, [model]), convergence_note(owner, fold_fits, "folds")
    return Fits(
        model=model,
        predictor=predictor,
        class_weights=fitted.sample.class_weights,
        notes=tuple(note for note in notes if note),
        chunked_note="" if fitted.places is None else model._chunked_note(),
        is_held_out=training is not None,
    )


def _given_fit(model: Any, rows: ReportRows, inputs: str) -> Fits:
    """Return the `Fits` for a calibrator that was already fitted on other rows."""
    training = vars(model).get("training_")
    weights = rows.sample.class_weights if training is None else np.array(training.class_weights)
    predictor = Predictor([model], first_fold, inputs)
    return Fits(model, predictor, weights, notes=(), chunked_note="", is_held_out=True)


def _fit_model(calibrator: Any, sample: Sample, inputs: str) -> Any:
    if needs_rows(calibrator):
        sample.rows(type(calibrator).__name__)
    model = fit_on(clone(calibrator), sample, inputs)
    # Some descriptions use these losses to state whether the fit is significant.
    if isinstance(model, Calibrator):
        training = summarize_training(
            sample, inputs, model._log_true_of, with_columns=model._uses_columns
        )
        if training is not None:
            model.training_ = training
    return model


def check_calibration(calibration: tuple[Any, ...], labels: AnyArray, inputs: str) -> Sample:
    """Return the calibration rows that the user passed, as a sample."""
    if len(calibration) not in (2, 3):
        raise ValueError(
            "calibration must be (scores, labels) or (scores, labels, weights), got a sequence of "
            f"length {len(calibration)}. Pass calibration=(scores, labels)."
        )
    scores, y, *weights = calibration
    shape: tuple[int, ...] = getattr(scores, "shape", ())
    if len(shape) == 2 and shape[1] != len(labels):
        raise ValueError(
            f"The calibration rows have {shape[1]} columns, but the rows to evaluate have "
            f"{len(labels)}. Pass scores of the same classes."
        )
    sample, _ = as_sample(scores, y, weights[0] if weights else None, classes=labels, inputs=inputs)
    return sample
