"""Reports about prediction files and about bundled data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from calibrant.cli._commands import load_calibrator
from calibrant.cli._existing import check_output
from calibrant.cli._files import digest_file, open_file, read_columns, read_model_columns
from calibrant.cli._options import ReportArguments, WeightedFileArguments
from calibrant.cli._output import Output
from calibrant.datasets import digits_predictions
from calibrant.io import FileOptions, LoadedRows, ModelScores, ScoreFile
from calibrant.report import Report, check_form, render, summarize
from calibrant.report._code import spelled, with_loading

_DEMO_LOADING = (
    "from calibrant.datasets import digits_predictions",
    "",
    "data = digits_predictions()",
    "scores, labels = data.test_proba, data.test_labels",
    "fit_scores, fit_labels = data.val_proba, data.val_labels",
)
"""Code that loads the data of the demo."""


def report_file(
    rows: ScoreFile | LoadedRows,
    file: ScoreFile,
    calibrator: Any,
    training: tuple[Any, ...] | None,
    options: ReportArguments,
    output: Path,
) -> Report:
    """Write a report about a file. Without a second file, the calibrator is cross-fitted."""
    by = _group_columns(file, calibrator, options)
    arguments = [*file.options.arguments(), *options.arguments(), "-o", output.name]
    report = summarize(
        rows.labels,
        rows.scores,
        **{"calibrator" if options.model is None else "model": calibrator},
        calibration=training,
        by=by,
        min_rows=options.min_rows,
        inputs=file.inputs,
        sample_weight=rows.weight,
        classes=file.classes,
        method=options.method if options.model is None else options.model.name,
        name=file.path.name,
        command=shlex.join(["calibrant", "report", *arguments]),
        cv=options.cv,
        random_state=options.seed,
    )
    report = replace(
        report,
        code=with_loading(report.code, [*_loading(rows, file, options, tuple(by or ()))]),
        data_sha256=digest_file(file.path),
    )
    render(report, output)
    return report


def _group_columns(file: ScoreFile, calibrator: Any, options: ReportArguments) -> Any:
    """Return the columns of ``--by``, or the group columns of a fitted model."""
    if options.by or options.model is None:
        return read_columns(file, options.by)
    return read_model_columns(file, calibrator)


def _loading(
    rows: ScoreFile | LoadedRows,
    file: ScoreFile,
    options: ReportArguments,
    names: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yield code that reads the files of a report, to be run in the folder of these files.

    ``names`` are the group columns.
    """
    yield "# Run this code in the folder of the files."
    yield f"from calibrant.io import {'' if options.model is None else 'load, '}open_scores"
    yield ""
    yield f"file = {_open_call(file.options, file.path)}"
    # Scores in memory and scores in blocks have different folds.
    source = "file.scores, file.labels, file.weight" if rows is file else "file.load()"
    yield f"scores, labels, weight = {source}"
    if names:
        texts = (f"{spelled(name)}: file.reader.text_column({spelled(name)})" for name in names)
        yield f"by = {{{', '.join(texts)}}}"
    if options.model is not None:
        yield f"model = load({spelled(options.model.name)})"
    if options.fit_on is not None:
        other = _open_call(replace(file.options, classes=None, labels=None), options.fit_on)
        yield f"fit_scores, fit_labels, fit_weight = {other}.load()"


def _open_call(options: FileOptions, path: Path) -> str:
    """Write the call of ``open_scores`` with the options of a file."""
    arguments = [spelled(path.name)]
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name != "path" and value not in (None, False):
            value = value.name if isinstance(value, Path) else value
            arguments.append(f"{field.name}={spelled(value)}")
    return f"open_scores({', '.join(arguments)})"


def load_model(options: ReportArguments) -> Any:
    """Return the saved calibrator to evaluate, or None without ``--model``."""
    if options.model is None:
        return None
    if options.fit_on is not None or options.notion is not None:
        raise ValueError(
            "With --model, a fitted calibrator is evaluated, so --fit-on and --notion do not "
            "apply. Remove --fit-on and --notion, or remove --model."
        )
    return load_calibrator(options.model)


def training_rows(
    data: WeightedFileArguments, options: ReportArguments, file: ScoreFile, output: Output
) -> tuple[Any, ...] | None:
    """Read the rows to fit on, with the columns and classes of the evaluated file."""
    if options.fit_on is None:
        return None
    expected = ModelScores(file.classes, file.inputs, file.score_columns)
    other = replace(data, file=options.fit_on, classes=None, labels=None)
    rows = open_file(other, output, model=expected).load()
    return rows.scores, rows.labels, *([] if rows.weight is None else [rows.weight])


def check_report_path(output: Path, *inputs: Path | None) -> None:
    """Raise if a report cannot be written, before anything is computed."""
    check_output(output, "report", *inputs)
    check_form(output)


def demo_report(seed: int, output: Path) -> Report:
    """Report a classifier of bundled data, with separate rows to fit the calibrator."""
    check_report_path(output)
    data = digits_predictions()
    report = summarize(
        data.test_labels,
        data.test_proba,
        calibration=(data.val_proba, data.val_labels),
        classes=data.class_names,
        name="naive Bayes on handwritten digits",
        command="calibrant demo",
        random_state=seed,
    )
    report = replace(report, code=with_loading(report.code, _DEMO_LOADING))
    render(report, output)
    return report
