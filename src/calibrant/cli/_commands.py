"""The work of the commands evaluate, fit and apply.

`calibrant.cli._app` defines how commands are called and what they print. Functions import modules
that only they need, because imports take most of the time of a command.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant._data.sample import ArraySample
from calibrant._kernels.blocks import WORK_MEMORY, row_blocks
from calibrant._output.clock import current_time
from calibrant._typing import AnyArray, FloatArray, Inputs
from calibrant.base import Calibrator
from calibrant.cli._existing import check_other_file
from calibrant.cli._files import digest_file, open_file, read_model_columns
from calibrant.cli._options import FileArguments
from calibrant.cli._output import Output
from calibrant.io import LOADED_BYTES, LoadedRows, ModelScores, ScoreFile

if TYPE_CHECKING:
    from calibrant.inference import Interval
    from calibrant.metrics import Evaluation, GroupedEvaluation, MetricAccumulator, TopEvaluation

_ROUND_OFF = 1e-9
"""Row sums that differ from 1 by less than this value count as 1. The value is far above the
rounding error of float64 and far below any visible difference."""


def evaluate_file(
    file: ScoreFile, n_bins: int, by: dict[str, AnyArray] | None = None, min_rows: int = 0
) -> Evaluation | GroupedEvaluation | TopEvaluation:
    """Evaluate a file block by block. Top scores, and small files with groups, are loaded."""
    from calibrant.metrics import evaluate

    if file.has_top_scores or by:
        options: dict[str, Any] = {}
        if by:
            options = {"by": by, "min_rows": min_rows, "inputs": file.inputs}
        # Only rows in memory are tested for a difference between groups.
        is_small = bool(by) and not file.has_top_scores and file.n_bytes <= LOADED_BYTES
        rows = file.load() if is_small else file
        options |= {"classes": file.classes} if is_small else {}
        return evaluate(
            rows.labels, rows.scores, n_bins=n_bins, sample_weight=rows.weight, **options
        )
    rule = partial(_evaluate_chunk, file.inputs, n_bins)
    metrics: MetricAccumulator = file.sample(file.classes).sum_chunks(rule)
    return metrics.compute()


def evaluate_model(model: Any, arguments: FileArguments, n_bins: int, output: Output) -> None:
    """Print the evaluation of a file before and after a saved calibrator."""
    from calibrant.cli._tables import before_after

    file = open_file(arguments, output, model=scores_of(model), takes_top_scores=True)
    before, after = _evaluate_fit(model, file, file, n_bins, read_model_columns(file, model))
    output.show(before_after(before, after))
    output.result({"before": before.to_dict(), "after": after.to_dict()})


def estimate_intervals(file: ScoreFile, *, progress: bool = False) -> dict[str, Interval]:
    """Compute confidence intervals of proper scores and of the debiased error, by name."""
    from calibrant.inference import bootstrap_interval, debiased_interval

    rows = file.load()
    options: dict[str, Any] = {
        # Log-probabilities are valid logits, because their softmax gives the probabilities.
        "inputs": "proba" if file.inputs == "proba" else "logits",
        "sample_weight": rows.weight,
        "classes": file.classes,
    }
    data = rows.labels, rows.scores
    names = ("accuracy", "log_loss", "brier_score")
    intervals = {
        name: bootstrap_interval(name, *data, rng=0, progress=progress, **options) for name in names
    }
    return intervals | {"debiased_error": debiased_interval(*data, **options)}


def _evaluate_chunk(inputs: Inputs, n_bins: int, chunk: ArraySample) -> MetricAccumulator:
    from calibrant.metrics import MetricAccumulator

    metrics = MetricAccumulator(n_bins, inputs=inputs)
    return metrics._update_checked(chunk) if chunk.total > 0 else metrics


def make_calibrator(
    name: str, notion: str | None, file: ScoreFile, seed: int, *, has_groups: bool = False
) -> Any:
    """Return the unfitted calibrator of a method, set up for the scores of a file.

    With groups, the method is the pooled calibrator of a `GroupCalibration`.
    """
    from calibrant._crossfit.members import set_up
    from calibrant.multiclass import TemperatureScaling
    from calibrant.selection import GroupCalibration, method

    calibrator = method(name, notion=notion)
    for inner in (calibrator, calibrator.get_params(deep=False).get("calibrator")):
        if inner is not None and "random_state" in inner.get_params(deep=False):
            inner.set_params(random_state=seed)
    if has_groups:
        calibrator = GroupCalibration(calibrator, random_state=seed)
    calibrator = set_up(calibrator, file.inputs, file.n_classes, file.classes)
    if file.has_top_scores and not isinstance(calibrator, TemperatureScaling):
        raise ValueError(
            f"The method {name} needs the scores of all classes, but {file.path} has only the top "
            "scores of each row. Pass -m temperature."
        )
    return calibrator


class FitResult(NamedTuple):
    """A calibrator that was fitted on a file, and the evaluation of the same rows before and after.

    ``notes`` are printed. ``note`` describes how a fit on blocks differs from a fit on all rows.
    ``note`` is empty if both fits are equal.
    """

    method: str
    model: Any
    before: Evaluation | TopEvaluation
    after: Evaluation | TopEvaluation
    notes: str
    chunked: bool
    note: str

    def to_dict(self, output: Path) -> dict[str, Any]:
        """The result as plain values for JSON."""
        training = vars(self.model).get("training_")
        return {
            "method": self.method,
            "model": str(output),
            "calibrator": repr(self.model),
            "chunked": self.chunked,
            **({} if training is None else {"training": training.to_dict()}),
            **({"note": self.note} if self.note else {}),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


def fit_file(
    rows: ScoreFile | LoadedRows,
    file: ScoreFile,
    calibrator: Any,
    name: str,
    output: Path,
    by: dict[str, AnyArray] | None = None,
    *,
    progress: bool = False,
) -> FitResult:
    """Fit a calibrator on the rows of a file and save it. ``by`` contains group columns."""
    from calibrant.io import save

    options: dict[str, Any] = {"by": by} if by else {}
    if progress:
        calibrator.set_params(progress=True)
    calibrator.fit(rows.scores, rows.labels, sample_weight=rows.weight, **options)
    if progress:
        calibrator.set_params(progress=False)  # a saved calibrator does not depend on the terminal
    before, after = _evaluate_fit(calibrator, file, rows, by=by)
    if file.score_columns:  # calibrant apply reads the same columns
        calibrator.feature_names_in_ = np.array(file.score_columns, dtype=object)
        calibrator.n_features_in_ = len(file.score_columns)
    save(calibrator, output, metadata=_describe_fit(file.path, name))
    note = calibrator._chunked_note() if rows is file else ""
    notes = "\n".join([*_class_notes(calibrator), *_fit_notes(file, rows is file, note)])
    return FitResult(name, calibrator, before, after, notes, rows is file, note)


def _describe_fit(path: Path, method: str) -> dict[str, str]:
    """Return the date of a fit, the method, and the name and the digest of the data."""
    return {
        "created": current_time().isoformat(timespec="seconds"),
        "method": method,
        "data": path.name,
        "data_sha256": digest_file(path),
    }


def _class_notes(model: Any) -> Iterator[str]:
    """Yield a note if all rows of a fit belong to one class."""
    present = np.flatnonzero(model.class_weights_)
    if len(present) == 1:
        label = model.classes_.tolist()[present[0]]
        yield (
            f"All rows have the label {label!r}, so the calibrator cannot learn the probabilities "
            "of other classes. Check the label column, or fit on rows of at least two classes."
        )


def _fit_notes(file: ScoreFile, chunked: bool, note: str) -> Iterator[str]:
    """Yield notes about in-sample figures and about how the file was read."""
    yield (
        "These figures are in-sample. The calibrator was fitted on the same rows, so the values "
        "after calibration are too optimistic."
    )
    if not file.has_top_scores:
        yield "Use calibrant compare or calibrant report for held-out figures."
    if chunked and note:
        yield "The file was read in blocks. Pass --in-memory to fit on all rows at once."
        yield note
    elif chunked:
        yield "The file was read in blocks, which does not change the fit."


def _evaluate_fit(
    model: Any,
    file: ScoreFile,
    rows: ScoreFile | LoadedRows,
    n_bins: int = 15,
    by: dict[str, AnyArray] | None = None,
) -> tuple[Any, Any]:
    """Evaluate rows before and after calibration, in one pass."""
    from calibrant.metrics import evaluate

    if file.has_top_scores:
        rule = partial(evaluate, rows.labels, n_bins=n_bins, sample_weight=rows.weight)
        return rule(rows.scores), rule(model.predict_proba(rows.scores))
    sample = rows.sample(file.classes, tuple((by or {}).values()))
    before, after = sample.sum_chunks(partial(_evaluate_both, model, n_bins))
    return before.compute(), after.compute()


def _evaluate_both(
    model: Any, n_bins: int, chunk: ArraySample
) -> tuple[MetricAccumulator, MetricAccumulator]:
    from calibrant._crossfit.members import proba_of
    from calibrant.metrics import MetricAccumulator

    before, after = MetricAccumulator(n_bins, inputs=model.inputs), MetricAccumulator(n_bins)
    for part in row_blocks(*chunk.shape, elements=WORK_MEMORY // 2):
        rows = chunk.subset(part)
        if rows.total > 0:  # rows with weight zero cannot be evaluated
            proba = proba_of(model, rows.u[:], model.inputs, columns=rows.columns)
            proba = on_simplex(proba)
            before._update_checked(rows)
            after._update_checked(rows.with_scores(proba))
    return before, after


def on_simplex(proba: FloatArray) -> FloatArray:
    """Divide rows by their sum if it is not 1. A row of zeros becomes uniform."""
    sums = proba.sum(axis=1, keepdims=True)
    uniform = np.full(proba.shape, 1.0 / proba.shape[1])
    divided = np.divide(proba, sums, out=uniform, where=sums > 0)
    # A division by a sum that differs from 1 by a rounding error could move values across the edge
    # of a bin.
    return np.where(np.abs(sums - 1.0) > _ROUND_OFF, divided, proba)


def apply_file(
    model: Any,
    arguments: FileArguments,
    output_path: Path,
    output: Output,
    by: list[str] | None = None,
) -> int:
    """Write the calibrated probabilities of a file of any size, and return the number of rows.

    ``by`` contains the names of group columns, if these names differ from the names in the fit.
    """
    from calibrant.io._writers import write_scores

    if output_path.suffix.lower() == ".npy":  # replacing the input would lose the old scores
        check_other_file(output_path, arguments.file)
    is_text = {arguments.file.suffix.lower(), output_path.suffix.lower()} <= {".csv", ".tsv"}
    file = open_file(
        arguments,
        output,
        model=scores_of(model),
        needs_label=False,
        keeps_text=is_text,
        takes_top_scores=True,
    )
    n_rows = 0
    columns = read_model_columns(file, model, by) or {}

    def predict() -> Iterator[tuple[Any, Any]]:
        nonlocal n_rows
        for block in output.watch(file.blocks(all_columns=True), file.n_rows):
            rows = slice(n_rows, n_rows + len(block.scores))
            n_rows = rows.stop
            groups = {name: column[rows] for name, column in columns.items()}
            yield block, _predict(model, block.scores, groups)

    write_scores(output_path, file, predict())
    return n_rows


def load_calibrator(path: Path) -> Calibrator:
    """Load the calibrator of a file, and raise for a saved decision."""
    from calibrant.io import load

    model = load(path)
    if not isinstance(model, Calibrator):
        raise ValueError(
            f"{path} is a saved {type(model).__name__}, not a calibrator. Use calibrant decide, or "
            f"pass the file of a calibrator."
        )
    return model


def scores_of(model: Any) -> ModelScores:
    columns = vars(model).get("feature_names_in_", ())
    return ModelScores(model.classes_, model.inputs, tuple(map(str, columns)))


def _predict(model: Any, scores: Any, groups: dict[str, AnyArray]) -> Any:
    options = {"by": groups} if groups else {}
    try:
        return model.predict_proba(scores, **options)
    except (IndexError, KeyError, AttributeError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"The model is damaged and cannot predict these rows ({reason}). Fit and save the "
            "model again."
        ) from None
