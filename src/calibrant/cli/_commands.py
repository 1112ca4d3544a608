"""What the commands do, apart from how they are called and what they print: files in, results and
files out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant._blocks import in_order, n_threads
from calibrant._crossfit.members import set_up
from calibrant._files import check_writable
from calibrant._typing import AnyArray, FloatArray
from calibrant._validation import check_weight
from calibrant.cli._columns import Columns, Request
from calibrant.cli._labels import LabelRule, label_rule
from calibrant.cli._sources import Block, Source, checked_scores, open_source
from calibrant.cli._writers import open_writer
from calibrant.datasets import digits_predictions
from calibrant.evaluation import Evaluation, MetricAccumulator, evaluate
from calibrant.io import save
from calibrant.reductions import MulticlassToBinary
from calibrant.report import Report, render, summarise
from calibrant.report._render import check_form
from calibrant.selection._methods import BINARY, WHOLE, method_named

METHODS = (*WHOLE, *BINARY, "auto")

Say = Callable[[str], None]
Watch = Callable[[Iterator[Block], int | None], Iterator[Block]]


class Predictions(NamedTuple):
    """All rows of a file: checked scores, labels (values of ``classes``), weights or None."""

    scores: FloatArray
    labels: AnyArray
    weight: FloatArray | None
    classes: AnyArray
    inputs: str


def opened(request: Request, say: Say) -> tuple[Source, LabelRule]:
    """A file of scores with labels, and how these are read; what was guessed is said."""
    source = open_source(request, needs_label=True)
    rule = label_rule(source, request)
    for line in (source.said, rule.said):
        if line:
            say(line)
    return source, rule


def read_all(request: Request, say: Say, watch: Watch) -> Predictions:
    """A whole file, for what needs all rows at once."""
    source, rule = opened(request, say)
    parts = [
        (
            checked_scores(block, source, request.renormalize),
            rule.codes(block.labels, block.start),
            block.weight,
        )
        for block in watch(source.blocks(), source.n_rows)
    ]
    scores, codes = (np.concatenate(column) for column in list(zip(*parts, strict=True))[:2])
    weight = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    return Predictions(scores, rule.classes[codes], weight, rule.classes, source.inputs)


def evaluate_file(request: Request, n_bins: int, say: Say, watch: Watch) -> Evaluation:
    """The evaluation of a file of any size, block by block; blocks are evaluated by threads while
    the next is read.
    """
    source, rule = opened(request, say)
    total = MetricAccumulator(n_bins)

    def evaluated(block: Block) -> MetricAccumulator:
        scores = checked_scores(block, source, request.renormalize)
        codes = rule.codes(block.labels, block.start)
        part = MetricAccumulator(n_bins, inputs=source.inputs)
        return part._update_checked(scores, codes, check_weight(block.weight, len(codes)))

    with ThreadPoolExecutor(n_threads()) as pool:
        blocks = watch(source.blocks(), source.n_rows)
        for part in in_order(pool, evaluated, blocks, ahead=n_threads() + 1):
            total.merge(part)
    return total.compute()


def made_calibrator(method: str, notion: str | None, data: Predictions, seed: int | None) -> Any:
    """The unfitted calibrator of a method's name, for the scores of a file."""
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    if notion is not None and method not in BINARY:
        raise ValueError(
            f"--notion goes with the methods {', '.join(BINARY)}; {method} calibrates the whole "
            f"vector"
        )
    made = method_named(method)
    if seed is not None and "random_state" in made.get_params(deep=False):
        made.set_params(random_state=seed)
    if notion is not None:
        made = MulticlassToBinary(made, notion=notion, normalize=notion == "class-wise")
    return set_up(made, data.inputs, len(data.classes), data.classes)


@dataclass(frozen=True)
class Fitted:
    """A calibrator that was fitted to a file, how its own rows look before and after, and a remark
    about that.
    """

    method: str
    model: Any
    before: Evaluation
    after: Evaluation

    @property
    def remark(self) -> str:
        """How the numbers are to be taken."""
        return (
            "These are the rows that the calibrator was fitted to, so that the numbers after it "
            "are a little too good; "
            "calibrant compare and calibrant report judge it on others."
        )

    def to_dict(self, output: Path) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "method": self.method,
            "model": str(output),
            "calibrator": repr(self.model),
            "training": self.model.training_.to_dict(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }


def fit_file(data: Predictions, method: str, notion: str | None, seed: int, output: Path) -> Fitted:
    """Fit a method to all rows of a file and save it."""
    model = made_calibrator(method, notion, data, seed)
    check_writable(output)
    model.fit(data.scores, data.labels, sample_weight=data.weight)
    before = evaluate(
        data.labels,
        data.scores,
        inputs=data.inputs,
        sample_weight=data.weight,
        classes=data.classes,
    )
    after = _evaluated(model, data)
    save(model, output)
    return Fitted(method, model, before, after)


def _evaluated(model: Any, data: Predictions) -> Evaluation:
    """The evaluation of calibrated rows, whose class-wise claims need not sum to one."""
    proba = np.asarray(model.predict_proba(data.scores), dtype=np.float64)
    total = proba.sum(axis=1, keepdims=True)
    proba = np.divide(proba, total, out=np.full(proba.shape, 1.0 / proba.shape[1]), where=total > 0)
    return evaluate(data.labels, proba, sample_weight=data.weight, classes=data.classes)


def file_report(
    data: Predictions, method: str, notion: str | None, cv: int, seed: int, name: str, output: Path
) -> Report:
    """A report about a file, cross-fitted, written to ``output``."""
    calibrator = made_calibrator(method, notion, data, seed)
    check_report_path(output)
    options = f" --notion {notion}" if notion else ""
    made = summarise(
        data.labels,
        data.scores,
        calibrator=calibrator,
        inputs=data.inputs,
        classes=data.classes,
        method=method,
        name=name,
        command=(
            f"calibrant report {name} -m {method}{options} --cv {cv} --seed {seed} -o {output.name}"
        ),
        cv=cv,
        random_state=seed,
    )
    render(made, output)
    return made


def check_report_path(output: Path) -> None:
    """Raise where a report cannot be written, before it is made."""
    check_writable(output)
    check_form(output)


def demo_report(seed: int, output: Path) -> Report:
    """A report about a classifier of bundled data, fitted on one part and judged on another."""
    check_report_path(output)
    data = digits_predictions()
    made = summarise(
        data.test_labels,
        data.test_proba,
        calibration=(data.val_proba, data.val_labels),
        classes=data.class_names,
        name="naive Bayes on handwritten digits",
        command="calibrant demo",
        random_state=seed,
    )
    render(made, output)
    return made


def apply_file(model: Any, request: Request, output: Path, say: Say, watch: Watch) -> int:
    """Calibrated probabilities of a file of any size; the number of rows."""
    names = tuple(str(label) for label in model.classes_.tolist())
    expected = Columns((), names, model.inputs, None, None, was_guessed=True)
    is_text = {request.path.suffix.lower(), output.suffix.lower()} <= {".csv", ".tsv"}
    source = open_source(request, needs_label=False, expected=expected, as_text=is_text)
    _check_fits(source, model, names)
    if source.said:
        say(source.said)
    n_rows = 0
    with open_writer(output, source, names) as writer:
        for block in watch(source.blocks(whole=True), source.n_rows):
            scores = checked_scores(block, source, request.renormalize)
            writer.write(block, np.asarray(model.predict_proba(scores)))
            n_rows += len(scores)
    return n_rows


def _check_fits(source: Source, model: Any, names: tuple[str, ...]) -> None:
    if source.inputs != model.inputs:
        kinds = {"proba": "probabilities", "logits": "logits"}
        raise ValueError(
            f"the model takes {kinds[model.inputs]} and the file holds {kinds[source.inputs]}"
        )
    if source.n_classes != len(names):
        raise ValueError(
            f"the model has {len(names)} classes and the file {source.n_classes} columns of scores"
        )
