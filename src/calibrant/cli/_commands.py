"""What the commands do, apart from how they are called and what they print: files in, results and
files out.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibrant import export
from calibrant._blocks import FILE_ELEMENTS, in_order, n_threads, row_blocks
from calibrant._crossfit.members import proba_of, set_up
from calibrant._data.sample import ArraySample
from calibrant._output.files import check_writable, write_text
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import (
    check_inputs,
    check_weight,
    look_like_proba,
    shortened,
    unknown_name,
)
from calibrant.cli._spool import Spool
from calibrant.cli._writers import open_writer
from calibrant.datasets import digits_predictions
from calibrant.evaluation import Evaluation, MetricAccumulator, TopEvaluation
from calibrant.io import save
from calibrant.io._columns import KINDS, PREFIXES, Columns, FileOptions
from calibrant.io._labels import LabelRule, label_rule
from calibrant.io._sources import (
    Block,
    Notes,
    Source,
    check_block,
    check_promise,
    open_source,
)
from calibrant.report import Report, render, summarise
from calibrant.report._render import check_form
from calibrant.selection import method

_ROUND_OFF = 1e-9
"""Sums that differ less from one are one: far above what float64 loses, far below what is seen."""

BYTES_OF_SCORE = 8
"""Of a score."""

Say = Callable[[str], None]
Watch = Callable[[Iterator[Block], int | None], Iterator[Block]]


class FilePredictions(NamedTuple):
    """All rows of a file: checked scores, column codes, weights or None, and the classes."""

    scores: FloatArray
    y: IntArray
    weight: FloatArray | None
    classes: AnyArray
    inputs: str

    @classmethod
    def of_blocks(
        cls,
        blocks: Iterable[tuple[FloatArray, IntArray, FloatArray | None]],
        classes: AnyArray,
        inputs: str,
    ) -> FilePredictions:
        """Scores, codes and weights block by block."""
        parts = list(blocks)
        scores, codes = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
        weights = [part[2] for part in parts if part[2] is not None]
        return cls(scores, codes, np.concatenate(weights) if weights else None, classes, inputs)

    @property
    def labels(self) -> AnyArray:
        """The labels, values of ``classes``."""
        return self.classes[self.y]


def open_labelled(options: FileOptions, say: Say) -> tuple[Source, LabelRule]:
    """A file of scores with labels, and how these are read; what was guessed is said."""
    source = open_source(options, needs_label=True)
    rule = label_rule(source, options)
    for line in (source.said, rule.said):
        if line:
            say(line)
    return source, rule


def read_all(options: FileOptions, say: Say, watch: Watch) -> FilePredictions:
    """A whole file, for what needs all rows at once; scores that are many stay on disk."""
    source, rule = open_labelled(options, say)
    check_promise(source.path, (source.n_rows or 0) * source.n_classes * BYTES_OF_SCORE)
    notes = Notes()
    codes: list[IntArray] = []
    weights: list[Any] = []
    with Spool() as spool:
        for block in watch(source.blocks(), source.n_rows):
            spool.add(check_scores_of(block, source, options, say, notes))
            codes.append(rule.codes(block.labels, block.start))
            weights.append(block.weight)
        scores = spool.rows()
    notes.tell(say)
    weight = None if weights[0] is None else np.concatenate(weights)
    return FilePredictions(scores, np.concatenate(codes), weight, rule.classes, source.inputs)


def check_scores_of(
    block: Block, source: Source, options: FileOptions, say: Say, notes: Notes
) -> FloatArray:
    """Scores of a block; of the first one it is said where they look like another kind."""
    scores = check_block(block, source, options.renormalize, notes)
    if block.start == 0 and source.inputs == "logits" and look_like_proba(scores):
        say(
            "note: the logits are between 0 and 1 and every row sums to one: if these are "
            "probabilities, say --proba"
        )
    return scores


def evaluate_file(options: FileOptions, n_bins: int, say: Say, watch: Watch) -> Evaluation:
    """The evaluation of a file of any size, block by block; blocks are evaluated by threads while
    the next is read.
    """
    source, rule = open_labelled(options, say)
    total, notes = MetricAccumulator(n_bins), Notes()

    def evaluated(block: Block) -> MetricAccumulator:
        scores = check_scores_of(block, source, options, say, notes)
        codes = rule.codes(block.labels, block.start)
        part = MetricAccumulator(n_bins, inputs=check_inputs(source.inputs))
        return part._update_checked(
            ArraySample(scores, codes, check_weight(block.weight, len(codes)))
        )

    with ThreadPoolExecutor(n_threads()) as pool:
        blocks = watch(source.blocks(), source.n_rows)
        for part in in_order(pool, evaluated, blocks, ahead=n_threads() + 1):
            total.merge(part)
    notes.tell(say)
    return total.compute()


class KnownScores(Protocol):
    """Scores of which it is known what they hold, and of which classes."""

    @property
    def inputs(self) -> str: ...
    @property
    def classes(self) -> AnyArray: ...


class LabelledScores(KnownScores, Protocol):
    """The same with labels and weights, in memory or read at every pass."""

    @property
    def scores(self) -> Any: ...
    @property
    def labels(self) -> Any: ...
    @property
    def weight(self) -> Any: ...


def make_calibrator(name: str, notion: str | None, data: KnownScores, seed: int) -> Any:
    """The unfitted calibrator of a method's name, for the scores of a file."""
    calibrator = method(name, notion=notion)
    for one in (calibrator, calibrator.get_params(deep=False).get("calibrator")):
        if one is not None and "random_state" in one.get_params(deep=False):
            one.set_params(random_state=seed)
    return set_up(calibrator, data.inputs, len(data.classes), data.classes)


@dataclass(frozen=True)
class Fitted:
    """A calibrator that was fitted to a file, how its own rows look before and after, a remark
    about that, and one about a fit in passes that is not quite that of all rows.
    """

    method: str
    model: Any
    before: Evaluation | TopEvaluation
    after: Evaluation | TopEvaluation
    passes: str = ""

    @property
    def remark(self) -> str:
        """How the numbers are to be taken."""
        said = (
            "These are the rows that the calibrator was fitted to, so that the numbers after it "
            "are a little too good; "
            "calibrant compare and calibrant report judge it on others."
        )
        return f"{said}\n{self.passes}" if self.passes else said

    def _training(self) -> dict[str, Any]:
        """What is known of the rows; nothing where they were not whole."""
        summary = vars(self.model).get("training_")
        return {} if summary is None else {"training": summary.to_dict()}

    def to_dict(self, output: Path) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.method,
            "model": str(output),
            "calibrator": repr(self.model),
            **self._training(),
            **({"passes": self.passes} if self.passes else {}),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


def fit_file(
    data: FilePredictions, name: str, notion: str | None, seed: int, output: Path
) -> Fitted:
    """Fit a method to all rows of a file and save it."""
    model = make_calibrator(name, notion, data, seed)
    check_writable(output)
    model.fit(data.scores, data.labels, sample_weight=data.weight)
    weight = check_weight(data.weight, len(data.y))
    before = MetricAccumulator(inputs=check_inputs(data.inputs))
    before._update_checked(ArraySample(data.scores, data.y, weight))
    after = _evaluate_map(model, data, weight)
    save(model, output)
    return Fitted(name, model, before.compute(), after)


def _evaluate_map(model: Any, data: FilePredictions, weight: FloatArray) -> Evaluation:
    """The evaluation of calibrated rows, block by block."""
    total = MetricAccumulator()
    for rows in row_blocks(*data.scores.shape, elements=FILE_ELEMENTS):
        proba = on_simplex(proba_of(model, data.scores[rows], data.inputs))
        total._update_checked(ArraySample(proba, data.y[rows], weight[rows]))
    return total.compute()


def on_simplex(proba: FloatArray) -> FloatArray:
    """Rows divided by their sum where that is not one; a row of zeros becomes uniform."""
    sums = proba.sum(axis=1, keepdims=True)
    uniform = np.full(proba.shape, 1.0 / proba.shape[1])
    divided = np.divide(proba, sums, out=uniform, where=sums > 0)
    # A division by 1 up to round-off would move values that lie on the edge of a bin.
    return np.where(np.abs(sums - 1.0) > _ROUND_OFF, divided, proba)


def file_report(
    data: LabelledScores,
    name: str,
    notion: str | None,
    cv: int,
    seed: int,
    options: FileOptions,
    output: Path,
) -> Report:
    """A report about a file, cross-fitted, written to ``output``."""
    calibrator = make_calibrator(name, notion, data, seed)
    check_report_path(output)
    said = ["-m", name, *(["--notion", notion] if notion else []), "--cv", cv, "--seed", seed]
    report = summarise(
        data.labels,
        data.scores,
        calibrator=calibrator,
        inputs=data.inputs,
        sample_weight=data.weight,
        classes=data.classes,
        method=name,
        name=options.path.name,
        command=shlex.join(
            ["calibrant", "report", *options.arguments(), *map(str, said), "-o", output.name]
        ),
        cv=cv,
        random_state=seed,
    )
    render(report, output)
    return report


def check_report_path(output: Path) -> None:
    """Raise where a report cannot be written, before it is made."""
    check_writable(output)
    check_form(output)


def demo_report(seed: int, output: Path) -> Report:
    """A report about a classifier of bundled data, fitted on one part and judged on another."""
    check_report_path(output)
    data = digits_predictions()
    report = summarise(
        data.test_labels,
        data.test_proba,
        calibration=(data.val_proba, data.val_labels),
        classes=data.class_names,
        name="naive Bayes on handwritten digits",
        command="calibrant demo",
        random_state=seed,
    )
    render(report, output)
    return report


def apply_file(model: Any, options: FileOptions, output: Path, say: Say, watch: Watch) -> int:
    """Calibrated probabilities of a file of any size; the number of rows."""
    names = tuple(str(label) for label in model.classes_.tolist())
    expected = Columns((), names, model.inputs, None, None, was_guessed=True)
    is_text = {options.path.suffix.lower(), output.suffix.lower()} <= {".csv", ".tsv"}
    source = open_source(options, needs_label=False, expected=expected, as_text=is_text)
    order = _check_fits(source, model, names)
    if source.said:
        say(source.said)
    n_rows, notes = 0, Notes()
    with open_writer(output, source, names) as writer:
        for block in watch(source.blocks(whole=True), source.n_rows):
            scores = check_scores_of(block, source, options, say, notes)
            # Rows in C order, as `predict_proba` gets them: the order of sums decides the last bit.
            scores = np.ascontiguousarray(scores[:, order])
            writer.write(block, _predict(model, scores))
            n_rows += len(scores)
    notes.tell(say)
    return n_rows


def _predict(model: Any, scores: FloatArray) -> FloatArray:
    try:
        return np.asarray(model.predict_proba(scores))
    except (IndexError, KeyError, AttributeError, ArithmeticError) as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"the model is damaged, and cannot predict these rows ({said})") from None


def _check_fits(source: Source, model: Any, names: tuple[str, ...]) -> list[int]:
    """Raise where scores are not those of a model; the order of its columns in the file."""
    if source.inputs != model.inputs:
        raise ValueError(
            f"the model takes {KINDS[model.inputs]} and the file holds {KINDS[source.inputs]}"
        )
    if source.n_classes != len(names):
        raise ValueError(
            f"the model has {len(names)} classes and the file {source.n_classes} columns of scores"
        )
    if sorted(source.names) == sorted(names):
        return [source.names.index(name) for name in names]
    if source.names != tuple(map(str, range(len(names)))):
        raise ValueError(
            f"the model has the classes {shortened(names)} and the file {shortened(source.names)}"
        )
    return list(range(len(names)))


def check_other_file(output: Path, *inputs: Path | None) -> None:
    """Raise where what is written would replace what is read."""
    for path in inputs:
        if path is not None and output.exists() and path.exists() and output.samefile(path):
            raise ValueError(f"{output} is the input, which would be lost: write another file")


class ExportOptions(NamedTuple):
    """Where a calibrator goes, and what that target has to know; names are lists with commas."""

    to: str
    dialect: str = "duckdb"
    table: str = "scores"
    columns: str | None = None
    keep: str | None = None
    compose: Path | None = None
    classifier_output: str | None = None


def export_file(model: Any, options: ExportOptions, output: Path) -> None:
    """Write a calibrator for other programs."""
    if options.to not in EXPORTS:
        raise ValueError(unknown_name("target", options.to, EXPORTS))
    if options.compose is not None and options.to != "onnx":
        raise ValueError(f"--compose goes with --to onnx, not {options.to}")
    check_writable(output)
    EXPORTS[options.to](model, options, output)


def _export_onnx(model: Any, options: ExportOptions, output: Path) -> None:
    export.to_onnx(model, output, model=options.compose, output=options.classifier_output)


def _export_sql(model: Any, options: ExportOptions, output: Path) -> None:
    start = PREFIXES[model.inputs][0]
    columns = _listed(options.columns) or [f"{start}{label}" for label in model.classes_.tolist()]
    query = export.to_sql(
        model,
        table=options.table,
        columns=columns,
        dialect=options.dialect,
        keep=_listed(options.keep),
    )
    write_text(output, query)


def _listed(names: str | None) -> list[str]:
    return names.split(",") if names else []


EXPORTS: dict[str, Callable[[Any, ExportOptions, Path], None]] = {
    "onnx": _export_onnx,
    "torch": lambda model, options, output: export.save_torch(model, output),
    "sql": _export_sql,
    "python": lambda model, options, output: write_text(output, export.to_python(model)),
    "javascript": lambda model, options, output: write_text(output, export.to_javascript(model)),
}
"""How a calibrator is written, by the name of the target."""
