"""Decide on the rows of a file: answers with a guarantee, actions of lowest cost, or sets."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import AnyArray
from calibrant._validation import shortened
from calibrant.base import Calibrator
from calibrant.cli._commands import scores_of
from calibrant.cli._files import open_file
from calibrant.cli._options import DecideArguments, WeightedFileArguments
from calibrant.cli._output import Output
from calibrant.decisions import (
    DecisionClassifier,
    DecisionRule,
    PredictionSets,
    Selection,
    SelectiveClassifier,
    select_answers,
)
from calibrant.io import ModelScores, ScoreFile, load, read_metadata, save

Columns = dict[str, AnyArray]


class Decision(NamedTuple):
    """A decision about rows of scores: new columns, guarantee, and the object to save."""

    columns: Callable[[Any], Columns]
    scores: ModelScores
    guarantee: str
    saved: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        saved = self.saved
        if isinstance(saved, SelectiveClassifier | PredictionSets):
            return {"guarantee": saved.guarantee().to_dict()}
        return {"guarantee": {"text": self.guarantee}} if self.guarantee else {}


def decide_file(
    model: Path,
    data: WeightedFileArguments,
    options: DecideArguments,
    output_path: Path,
    output: Output,
) -> dict[str, Any]:
    """Write the decisions for the rows of a file, and return the result as plain values."""
    from calibrant.io._writers import write_columns

    decision = make_decision(model, data, options, output)
    file = _open_new(data, decision.scores, output_path, output)
    n_rows = 0

    def decision_blocks() -> Iterator[tuple[Any, Columns]]:
        nonlocal n_rows
        for block in output.watch(file.blocks(all_columns=True), file.n_rows):
            yield block, decision.columns(block.scores)
            n_rows += len(block.scores)

    write_columns(output_path, decision_blocks())
    if decision.guarantee:
        output.say(decision.guarantee)
    if options.save is not None:
        save(decision.saved, options.save)
    return {"n_rows": n_rows, "output": str(output_path), **decision.to_dict()}


def _open_new(
    data: WeightedFileArguments, scores: ModelScores, output_path: Path, output: Output
) -> ScoreFile:
    """Open the rows to decide on, which need no label."""
    is_text = {data.file.suffix.lower(), output_path.suffix.lower()} <= {".csv", ".tsv"}
    unlabeled = replace(data, label=None, labels=None, weight=None, classes=None)
    return open_file(unlabeled, output, model=scores, needs_label=False, keeps_text=is_text)


def make_decision(
    path: Path, data: WeightedFileArguments, options: DecideArguments, output: Output
) -> Decision:
    """Return the decision that the options describe, or the saved decision."""
    model = load(path)
    names = [name for name in ("cost", "risk", "sets") if getattr(options, name) is not None]
    if not isinstance(model, Calibrator):
        if names or options.calibration or options.batch or options.abstain is not None:
            raise ValueError(
                f"{path} is a saved {type(model).__name__}, which already contains a decision "
                f"rule. Remove --cost, --abstain, --risk, --sets, --batch and --calibration, or "
                f"pass a calibrator."
            )
        return _saved_decision(model)
    if len(names) != 1:
        actual = " and ".join(f"--{name}" for name in names) or "none of them"
        raise ValueError(
            "For a calibrator, pass exactly one of --cost FILE, --risk SHARE and --sets SHARE, "
            f"got {actual}. For example, pass --risk 0.05 --calibration labeled.csv."
        )
    if options.cost is not None:
        if options.calibration is not None or options.batch:
            raise ValueError(
                "--calibration and --batch have no effect on decisions by costs. Remove both "
                "options, or replace --cost by --risk or --sets."
            )
        return _by_cost(model, options)
    if options.abstain is not None:
        raise ValueError("--abstain requires --cost. Remove --abstain, or add --cost costs.csv.")
    return _by_proof(model, path, data, options, output)


def _by_cost(model: Calibrator, options: DecideArguments) -> Decision:
    cost, actions = read_costs(Path(str(options.cost)), model.classes_)
    rule = DecisionRule(cost, options.abstain, classes=model.classes_, actions=actions)
    return _saved_decision(rule.wrap(model))


def _by_proof(
    model: Calibrator,
    path: Path,
    data: WeightedFileArguments,
    options: DecideArguments,
    output: Output,
) -> Decision:
    if options.calibration is None:
        raise ValueError(
            "A guarantee needs labeled rows that were not used to fit the calibrator. Pass "
            "--calibration FILE."
        )
    _check_other_data(path, options.calibration)
    other = replace(data, file=options.calibration, classes=None)
    rows = open_file(other, output, model=scores_of(model)).load()
    if options.batch:
        return _by_batch(model, rows, data, options, output)
    decision: Any
    if options.sets is not None:
        decision = PredictionSets(model, coverage=options.sets)
    elif options.risk is not None:
        decision = SelectiveClassifier(
            model, risk=options.risk, delta=options.delta, score=options.score
        )
    with output.working("Proving the guarantee"):
        decision.fit(rows.scores, rows.labels, sample_weight=rows.weight)
    return _saved_decision(decision)


def _by_batch(
    model: Calibrator, rows: Any, data: WeightedFileArguments, options: DecideArguments, out: Output
) -> Decision:
    """Decide on all rows of the file together."""
    risk = _batch_risk(options, rows)
    _check_other_rows(data, options)
    file = _open_new(data, scores_of(model), options.calibration or data.file, out)
    new = np.concatenate([block.scores for block in file.blocks(all_columns=True)])
    selection = select_answers(
        rows.labels, rows.scores, new, risk, estimator=model, score=options.score
    )
    return Decision(_InOrder(selection).columns, scores_of(model), str(selection))


def _batch_risk(options: DecideArguments, rows: Any) -> float:
    """Return the maximum error rate, or raise for options that do not apply to a batch."""
    if options.risk is None or rows.weight is not None:
        raise ValueError(
            "--batch requires --risk and cannot be combined with --weight. For example, pass "
            "--risk 0.05."
        )
    if options.save is not None:
        raise ValueError(
            "With --batch, the decision applies only to one file, so the decision cannot be saved. "
            "Remove --save."
        )
    return options.risk


def _check_other_rows(data: WeightedFileArguments, options: DecideArguments) -> None:
    if options.calibration is None or data.file.samefile(options.calibration):
        raise ValueError(
            f"{data.file} is also the file of labeled rows. The guarantee of a batch needs other "
            "rows with labels. Pass another file to --calibration."
        )


class _InOrder:
    """The columns of a selection, block by block in the order of the file."""

    def __init__(self, selection: Selection) -> None:
        self.selection, self.start = selection, 0

    def columns(self, scores: Any) -> Columns:
        rows = slice(self.start, self.start + len(scores))
        self.start = rows.stop
        return {
            "decision": self.selection.labels[rows],
            "answered": self.selection.answered[rows],
            "p_value": self.selection.p_values[rows],
        }


def _saved_decision(model: Any) -> Decision:
    """Return the decision of a fitted or loaded object of `calibrant.decisions`."""
    if isinstance(model, DecisionRule):
        scores = ModelScores(model.classes_, "proba", ())
        return Decision(lambda X: _rule_columns(model, X), scores, "", model)
    if isinstance(model, DecisionClassifier):
        return Decision(
            lambda X: _rule_columns(model.rule_, model._proba_of_rule(X)),
            scores_of(model.estimator_),
            "",
            model,
        )
    columns = _set_columns if isinstance(model, PredictionSets) else _answer_columns
    # The estimator stores the kind of scores and the names of their columns.
    scores = scores_of(model.estimator_)
    return Decision(lambda X: columns(model, X), scores, str(model.guarantee()), model)


def _rule_columns(rule: DecisionRule, scores: Any) -> Columns:
    return {"decision": rule.decide(scores), "expected_cost": rule.expected_cost(scores)}


def _answer_columns(model: SelectiveClassifier, scores: Any) -> Columns:
    return {"decision": model.predict(scores), "answered": model.answers(scores)}


def _set_columns(model: PredictionSets, scores: Any) -> Columns:
    sets = model.predict_set(scores)
    names = [f"in_{label}" for label in model.classes_.tolist()]
    return {**dict(zip(names, sets.T, strict=True)), "set_size": sets.sum(axis=1)}


def _check_other_data(model: Path, calibration: Path) -> None:
    """Raise if a calibrator was fitted on this file."""
    digest = read_metadata(model)["metadata"].get("data_sha256")
    with calibration.open("rb") as file:
        is_same = hashlib.file_digest(file, "sha256").hexdigest() == digest
    if is_same:
        raise ValueError(
            f"{model} was fitted on {calibration}. The calibrator makes fewer errors on these rows "
            "than on new rows, so these rows cannot support a guarantee. Pass a file with other "
            "rows to --calibration."
        )


def read_costs(path: Path, classes: AnyArray) -> tuple[AnyArray, list[str] | None]:
    """Read the costs (K, A) of a CSV file in the order of the classes, and the names of actions.

    The file contains only numbers, or a table with the actions in the first line and the true
    classes in the first column. Without a first line, the names of actions are None.
    """
    lines = _read_table(path)
    if all(map(_is_number, lines[0])):
        return _as_numbers(path, lines), None
    names = [line[0] for line in lines[1:]]
    labels = list(map(str, classes.tolist()))
    if sorted(names) != sorted(labels):
        raise ValueError(
            f"The first column of {path} contains {shortened(names)}, but the classes are "
            f"{shortened(labels)}. Write one line per class."
        )
    table = _as_numbers(path, [line[1:] for line in lines[1:]])
    return table[[names.index(label) for label in labels]], lines[0][1:]


def _read_table(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [[cell.strip() for cell in line] for line in csv.reader(file) if any(line)]
    if len(set(map(len, lines))) != 1:
        raise ValueError(
            f"{path} must be a table of costs with the same number of values in every line. Write "
            "one line per class and one cost per action."
        )
    return lines


def _as_numbers(path: Path, lines: list[list[str]]) -> AnyArray:
    for line in lines:
        for cell in line:
            if not _is_number(cell):
                raise ValueError(
                    f"{path} contains {cell!r:.60}, but costs must be numbers. Write a number such "
                    "as 2.5."
                )
    return np.array(lines, dtype=np.float64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
