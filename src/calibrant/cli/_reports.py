"""Reports about files and about bundled data."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.cli._existing import check_output
from calibrant.cli._files import open_file, read_columns
from calibrant.cli._options import ReportArguments, WeightedFileArguments
from calibrant.cli._output import Output
from calibrant.datasets import digits_predictions
from calibrant.io import LoadedRows, ModelScores, ScoreFile
from calibrant.report import Report, check_form, render, summarize


def report_file(
    rows: ScoreFile | LoadedRows,
    file: ScoreFile,
    calibrator: Any,
    training: tuple[Any, ...] | None,
    options: ReportArguments,
    output: Path,
) -> Report:
    """Write a report about a file; without rows to fit on the calibrator is cross-fitted."""
    words = [*file.options.arguments(), *options.words(), "-o", output.name]
    report = summarize(
        rows.labels,
        rows.scores,
        calibrator=calibrator,
        calibration=training,
        by=read_columns(file, options.by),
        inputs=file.inputs,
        sample_weight=rows.weight,
        classes=file.classes,
        method=options.method,
        name=file.path.name,
        command=shlex.join(["calibrant", "report", *words]),
        cv=options.cv,
        random_state=options.seed,
    )
    render(report, output)
    return report


def training_rows(
    data: WeightedFileArguments, options: ReportArguments, file: ScoreFile, output: Output
) -> tuple[Any, ...] | None:
    """The rows of the file to fit on, which has the columns and classes of the evaluated one."""
    if options.fit_on is None:
        return None
    expected = ModelScores(file.classes, file.inputs, file.score_columns)
    other = replace(data, file=options.fit_on, classes=None, labels=None)
    rows = open_file(other, output, model=expected).load()
    return rows.scores, rows.labels, *([] if rows.weight is None else [rows.weight])


def check_report_path(output: Path, *inputs: Path | None) -> None:
    """Raise if a report cannot be written, before it is made."""
    check_output(output, "report", *inputs)
    check_form(output)


def demo_report(seed: int, output: Path) -> Report:
    """A report about a classifier of bundled data, fitted on some rows and evaluated on others."""
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
    render(report, output)
    return report
